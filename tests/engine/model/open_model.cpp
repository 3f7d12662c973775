#include "tests/engine/model/open_model.h"

#include <catch2/catch.hpp>

#include "tests/support/temp_dir.h"

namespace efimd::test {

using engine::Model;

Result<std::shared_ptr<const Model>> open(const GgufWriter& writer) {
  const TempDir folder;
  writer.write(folder / "m.gguf");
  return Model::open(folder / "m.gguf");
}

std::shared_ptr<const Model> opened(const GgufWriter& writer) {
  auto model = open(writer);
  if (!model) FAIL(model.error().message());
  return *model;
}

void check_refused(const GgufWriter& writer, Fault fault, const std::string& part) {
  const auto model = open(writer);
  REQUIRE_FALSE(model);
  CHECK(model.error().fault == fault);
  CHECK_THAT(model.error().message(), Catch::StartsWith("m.gguf: ") && Catch::Contains(part));
  CHECK_FALSE(model.error().remedy.empty());
}

GgufWriter::Tensor zeros(std::string name, std::vector<std::uint64_t> axes) {
  std::uint64_t elements = 1;
  for (const std::uint64_t axis : axes) elements *= axis;
  return {std::move(name), std::move(axes), 0, std::string(elements * 4, '\0'), {}};
}

}  // namespace efimd::test
