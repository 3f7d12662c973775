#include "daemon/models/read_ahead.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "engine/model/model.h"
#include "tests/support/model_writer.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;
namespace fs = std::filesystem;

namespace {

Digest read(const fs::path& model, const ModelDigests& digests = {}) {
  return read_ahead(engine::GgufFile::open(model).value(), digests, [](double) {}, {}).value();
}

Digest sampled(const fs::path& model) { return engine::Model::open(model).value()->digest(); }

/// Changes one bit in the last byte of the file's largest tensor, which Model::digest() does not look at.
void change_one_bit(const fs::path& model) {
  std::size_t place = 0, most = 0;
  {
    const engine::GgufFile file = engine::GgufFile::open(model).value();
    for (const auto& [name, tensor] : file.tensors()) {
      const auto size = static_cast<std::size_t>(tensor.row_bytes() * tensor.rows);
      if (size <= most) continue;
      most = size;
      place = static_cast<std::size_t>(tensor.data - file.bytes().data()) + size - 1;
    }
  }
  REQUIRE(most > 4096);
  std::fstream stream(model, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(static_cast<std::streamoff>(place));
  const int byte = stream.get();
  stream.seekp(static_cast<std::streamoff>(place));
  stream.put(static_cast<char>(byte ^ 1));
}

}  // namespace

TEST_CASE("models that differ in one weight share no KV") {
  const test::TempDir folder;
  const fs::path one = test::write_tiny_model({}, folder.path());
  const fs::path other = folder / "other.gguf", copy = folder / "copy.gguf";
  fs::copy_file(one, other);
  fs::copy_file(one, copy);
  change_one_bit(other);
  CHECK(sampled(one) == sampled(other));
  CHECK(read(one) == read(copy));
  CHECK(read(one) != read(other));
}

TEST_CASE("nobody who lacks the key can tell a model's digest") {
  const test::TempDir folder;
  const fs::path model = test::write_tiny_model({}, folder.path());
  ModelDigests digests;
  digests.key[7] = std::byte{1};
  CHECK(read(model, digests) != read(model));
}

TEST_CASE("a file is digested once, and again if it was changed in place with its time set back") {
  const test::TempDir folder;
  const fs::path model = test::write_tiny_model({}, folder.path());
  const ModelDigests digests{{}, folder / "state/weights.json"};
  const Digest digest = read(model, digests);
  // What is kept is used.
  std::ifstream stream(digests.file);
  std::string kept(std::istreambuf_iterator<char>(stream), {});
  const std::string low = std::to_string(digest.low);
  REQUIRE(kept.find(low) != kept.npos);
  kept.replace(kept.find(low), low.size(), "7");
  std::ofstream(digests.file) << kept;
  CHECK(read(model, digests) == Digest{7, digest.high});

  struct stat before {};
  REQUIRE(::stat(model.c_str(), &before) == 0);
  change_one_bit(model);
  const timespec times[] = {before.st_atim, before.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, model.c_str(), times, 0) == 0);
  const Digest changed = read(model, digests);
  CHECK(changed != Digest{7, digest.high});
  CHECK(changed != digest);
}

TEST_CASE("a damaged file of digests counts as none, and is written anew") {
  const test::TempDir folder;
  const fs::path model = test::write_tiny_model({}, folder.path());
  const ModelDigests digests{{}, folder / "weights.json"};
  const std::string stamp = engine::GgufFile::open(model).value().stamp();
  for (const std::string& text : {std::string(), std::string("[1]"), std::string("{\"x"),
                                  "{\"" + stamp + "\": [1]}", "{\"" + stamp + "\": [-1, \"2\"]}"}) {
    std::ofstream(digests.file) << text;
    CHECK(read(model, digests) == read(model));
    fs::remove(digests.file);
  }
}
