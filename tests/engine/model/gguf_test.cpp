#include "engine/model/gguf.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <ctime>
#include <span>
#include <string>

#include "tests/support/model_writer.h"
#include "tests/support/temp_dir.h"

namespace efimd::test {
namespace {

using engine::GgufFile;
using engine::TensorType;

std::span<const std::byte> view(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

/// The message with which `bytes` are refused; "accepted" when they are not.
std::string refusal(const std::string& bytes) {
  const auto file = GgufFile::parse(view(bytes), "m.gguf");
  return file ? std::string("accepted") : file.error().message();
}
std::string refusal(const GgufWriter& writer) { return refusal(writer.bytes()); }

GgufWriter small_file() {
  GgufWriter writer;
  writer.u32("n", 7).text("t", "text").tensor({"w", {2, 3}, 0, std::string(24, '\0'), {}});
  return writer;
}

std::string number(std::uint64_t value, std::size_t size = 8) {
  std::string bytes(size, '\0');
  std::memcpy(bytes.data(), &value, size);
  return bytes;
}

}  // namespace

TEST_CASE("metadata of every type is read") {
  GgufWriter writer;
  writer.raw("u8", 0, number(200, 1)).raw("i8", 1, number(0xFF, 1)).raw("u16", 2, number(65535, 2));
  writer.raw("i16", 3, number(0xFFFE, 2)).u32("u32", 0xFFFFFFFFU).i32("i32", -3);
  writer.f32("f32", 1.5F).boolean("bool", true).text("text", "häh").u64("u64", 1U << 31U);
  writer.raw("i64", 11, number(~std::uint64_t{0})).raw("f64", 12, number(0x3FD0000000000000U));
  writer.raw("huge", 10, number(~std::uint64_t{0}));
  writer.texts("texts", {"a", "", "c"}).i32s("ints", {-1, 2}).f32s("reals", {0.5F});
  const std::string bytes = writer.bytes();
  const auto file = GgufFile::parse(view(bytes), "m.gguf");
  REQUIRE(file);
  CHECK(file->integer("u8") == 200);
  CHECK(file->integer("i8") == -1);
  CHECK(file->integer("u16") == 65535);
  CHECK(file->integer("i16") == -2);
  CHECK(file->integer("u32") == 0xFFFFFFFF);
  CHECK(file->integer("i32") == -3);
  CHECK(file->integer("u64") == 1LL << 31);
  CHECK(file->integer("i64") == -1);
  CHECK(file->integer("huge") == INT64_MAX);
  CHECK(file->integer("bool") == 1);
  CHECK(file->real("f32") == 1.5);
  CHECK(file->real("f64") == 0.25);
  CHECK(file->real("u8") == 200.0);
  CHECK(file->string("text") == "häh");
  CHECK(*file->strings("texts") == std::vector<std::string_view>{"a", "", "c"});
  CHECK(*file->integers("ints") == std::vector<std::int64_t>{-1, 2});
  CHECK(*file->reals("reals") == std::vector<double>{0.5});
}

TEST_CASE("a key that is absent or of another type reads as nothing") {
  const std::string bytes = small_file().bytes();
  const auto file = GgufFile::parse(view(bytes), "m.gguf");
  REQUIRE(file);
  CHECK_FALSE(file->integer("absent"));
  CHECK_FALSE(file->integer("t"));
  CHECK_FALSE(file->real("t"));
  CHECK_FALSE(file->string("n"));
  CHECK(file->strings("n") == nullptr);
  CHECK(file->integers("t") == nullptr);
  CHECK(file->tensor("absent") == nullptr);
}

TEST_CASE("tensors are found where their offsets say") {
  GgufWriter writer;
  writer.tensor({"a", {2}, 0, number(0x3F800000) + number(0), {}});
  writer.tensor({"b", {32, 2}, 8, std::string(67, '\1') + '\2', {}});
  writer.tensor({"c", {4, 2, 3}, 1, std::string(48, '\3'), {}});
  const std::string bytes = writer.bytes();
  const auto file = GgufFile::parse(view(bytes), "m.gguf");
  REQUIRE(file);
  CHECK(file->data_start() % 32 == 0);
  CHECK(file->tensors().size() == 3);
  CHECK(file->tensor("a")->rows == 1);
  CHECK(file->tensor("a")->cols == 2);
  const engine::TensorView b = *file->tensor("b");
  CHECK(b.type == TensorType::kQ8_0);
  CHECK(b.row_bytes() == 34);
  CHECK(b.row(1)[33] == std::byte{2});
  CHECK(file->tensor("c")->rows == 6);
  CHECK(file->tensor("c")->data[47] == std::byte{3});
}

TEST_CASE("versions 2 and 3 and every allowed alignment are read") {
  for (const std::uint32_t version : {2U, 3U}) {
    for (const std::uint32_t alignment : {8U, 32U, 64U, 4096U}) {
      GgufWriter writer = small_file();
      writer.version = version;
      writer.alignment = alignment;
      writer.u32("general.alignment", alignment);
      writer.tensor({"v", {1}, 0, "1234", {}});
      const std::string bytes = writer.bytes();
      const auto file = GgufFile::parse(view(bytes), "m.gguf");
      REQUIRE(file);
      CHECK(file->data_start() % alignment == 0);
      CHECK(file->tensor("v")->data[0] == std::byte{'1'});
    }
  }
}

TEST_CASE("the last tensor needs no padding behind it") {
  std::string bytes = small_file().bytes();
  bytes.resize(bytes.size() - 8);  // 24 bytes of data were padded to 32
  CHECK(refusal(bytes) == "accepted");
  bytes.pop_back();
  CHECK_THAT(refusal(bytes), Catch::Contains("tensor w needs"));
}

TEST_CASE("tensors of types that this build does not run are told apart") {
  GgufWriter writer = small_file();
  writer.tensor({"q", {256}, 10, std::string(84, '\0'), {}});
  writer.tensor({"x", {256}, 99, std::string(144, '\0'), {}});
  const std::string bytes = writer.bytes();
  const auto file = GgufFile::parse(view(bytes), "m.gguf");
  REQUIRE(file);
  CHECK(file->tensor("q") == nullptr);
  CHECK(file->unreadable().at("q") == 10);
  CHECK(engine::ggml_type_name(10) == "Q2_K");
  CHECK(engine::ggml_type_name(99) == "type 99");
}

TEST_CASE("a file that is no GGUF file says what it starts with") {
  CHECK(refusal(std::string("<!DOCTYPE html>")) ==
        "m.gguf: starts with \"<!DO\", not GGUF; name a model in GGUF format");
  CHECK_THAT(refusal(std::string("PK\3\4\0\0", 6)), Catch::Contains("\"PK??\""));
  CHECK_THAT(refusal(std::string()), Catch::Contains("m.gguf: is empty"));
  CHECK_THAT(refusal(std::string("GG")), Catch::Contains("ends at byte 2, inside the header"));
}

TEST_CASE("other versions and big-endian files are refused as such") {
  GgufWriter writer = small_file();
  writer.version = 1;
  CHECK_THAT(refusal(writer), Catch::Contains("version 1; versions 2 and 3 are read"));
  writer.version = 0x03000000;
  CHECK_THAT(refusal(writer), Catch::Contains("big-endian"));
}

TEST_CASE("a truncated file says where it ends and what is missing") {
  const std::string bytes = small_file().bytes();
  CHECK_THAT(
      refusal(bytes.substr(0, bytes.size() - 20)),
      Catch::Contains("ends at byte " + std::to_string(bytes.size() - 20) + ", tensor w needs " +
                      std::to_string(bytes.size() - 8) + "; download the file again"));
  CHECK_THAT(refusal(bytes.substr(0, 60)), Catch::Contains("ends at byte 60, inside "));
  CHECK_THAT(refusal(bytes.substr(0, 30)), Catch::Contains("only"));
}

TEST_CASE("counts that the file cannot hold are refused before anything is allocated") {
  GgufWriter writer = small_file();
  writer.metadata_count = 60'000;
  CHECK_THAT(refusal(writer), Catch::Contains("claims 60000 metadata entries, but only"));
  writer.metadata_count = ~std::uint64_t{0};
  CHECK_THAT(refusal(writer), Catch::Contains("at most"));
  writer = small_file();
  writer.tensor_count = 1U << 20U;
  CHECK_THAT(refusal(writer), Catch::Contains("tensors; at most"));
  CHECK_THAT(refusal(small_file().raw("a", 9, number(8, 4) + number(1U << 23U))),
             Catch::Contains("inside key a, an array of 8388608"));
  CHECK_THAT(refusal(small_file().raw("a", 9, number(5, 4) + number(~std::uint64_t{0}))),
             Catch::Contains("key a claims"));
  CHECK_THAT(refusal(small_file().raw("a", 8, number(~std::uint64_t{0}))),
             Catch::Contains("key a has a string of"));
}

TEST_CASE("arrays of arrays and unknown value types are refused") {
  CHECK_THAT(refusal(small_file().raw("a", 9, number(9, 4) + number(1))),
             Catch::Contains("key a is an array of arrays"));
  CHECK_THAT(refusal(small_file().raw("a", 9, number(77, 4) + number(1))),
             Catch::Contains("unknown type 77"));
  CHECK_THAT(refusal(small_file().raw("a", 13, number(1))),
             Catch::Contains("key a has the unknown type 13"));
}

TEST_CASE("a key or tensor that is there twice is refused") {
  CHECK_THAT(refusal(small_file().duplicate("n")), Catch::Contains("has the key n twice"));
  CHECK_THAT(refusal(small_file().extra_tensor({"w", {1}, 0, "1234", {}})),
             Catch::Contains("has the tensor w twice"));
  GgufWriter unreadable = small_file();
  unreadable.extra_tensor({"w", {256}, 10, std::string(84, '\0'), {}});
  CHECK_THAT(refusal(unreadable), Catch::Contains("twice"));
}

TEST_CASE("alignments that are no power of two from 8 up are refused") {
  for (const std::uint32_t alignment : {0U, 1U, 4U, 24U, 1U << 30U})
    CHECK_THAT(refusal(small_file().u32("general.alignment", alignment)),
               Catch::Contains("general.alignment " + std::to_string(alignment)));
  CHECK_THAT(refusal(small_file().text("general.alignment", "32")),
             Catch::Contains("general.alignment"));
}

TEST_CASE("tensor shapes that make no sense are refused") {
  const auto with = [](std::vector<std::uint64_t> axes, std::uint32_t type = 0) {
    return refusal(small_file().tensor({"w", std::move(axes), type, std::string(24, '\0'), {}}));
  };
  CHECK_THAT(with({}), Catch::Contains("tensor w has 0 axes"));
  CHECK_THAT(with({1, 1, 1, 1, 1}), Catch::Contains("tensor w has 5 axes"));
  CHECK_THAT(with({2, 0}), Catch::Contains("tensor w has 0 elements on axis 1"));
  CHECK_THAT(with({1ULL << 40U, 1ULL << 40U}), Catch::Contains("on axis 1"));
  CHECK_THAT(with({~0ULL}), Catch::Contains("on axis 0"));
  CHECK_THAT(with({31}, 8), Catch::Contains("Q8_0 with rows of 31"));
  CHECK_THAT(with({128}, 12), Catch::Contains("Q4_K with rows of 128, no multiple of 256"));
  CHECK_THAT(with({1ULL << 40U}), Catch::Contains("tensor w needs"));
}

TEST_CASE("tensor offsets outside the file or off the alignment are refused") {
  const auto at = [](std::uint64_t offset, std::uint32_t type) {
    return refusal(small_file().tensor({"w", {2}, type, std::string(24, '\0'), offset}));
  };
  CHECK_THAT(at(8, 0), Catch::Contains("offset 8, no multiple of 32"));
  CHECK_THAT(at(1U << 20U, 0), Catch::Contains("tensor w needs"));
  CHECK_THAT(at(~std::uint64_t{31}, 0), Catch::Contains("tensor w needs"));
  CHECK_THAT(at(~std::uint64_t{31}, 10), Catch::Contains("tensor w needs"));
}

TEST_CASE("names that are no text are shown as text") {
  const std::string message = refusal(small_file().raw("\xFF\n" + std::string(500, 'k'), 13, ""));
  CHECK_THAT(message, Catch::Contains("\uFFFD?kkk"));
  CHECK(message.size() < 200);
}

TEST_CASE("a vocabulary of 150,000 is parsed in well under a second") {
  GgufWriter writer;
  std::vector<std::string> texts;
  for (int i = 0; i < 150'000; ++i) texts.push_back("token" + std::to_string(i));
  writer.texts("tokens", texts).texts("merges", texts);
  writer.i32s("kinds", std::vector<std::int32_t>(texts.size(), 1));
  const std::string bytes = writer.bytes();
  const std::clock_t begin = std::clock();  // of this process: what others do does not count
  const auto file = GgufFile::parse(view(bytes), "m.gguf");
  const double took_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  REQUIRE(file);
  INFO(took_s << " s");
  CHECK(took_s < 1);  // 5 ms on one core; sanitizers are slower
}

TEST_CASE("a file is opened from disk, a missing or empty one refused by name") {
  const TempDir folder;
  small_file().write(folder / "m.gguf");
  const auto file = GgufFile::open(folder / "m.gguf");
  REQUIRE(file);
  CHECK(file->name() == "m.gguf");
  CHECK(file->string("t") == "text");
  const auto missing = GgufFile::open(folder / "none.gguf");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().fault == Fault::kNotFound);
  CHECK_THAT(missing.error().message(), Catch::Contains("none.gguf"));
  CHECK_FALSE(GgufFile::open(folder.path()));
}

}  // namespace efimd::test
