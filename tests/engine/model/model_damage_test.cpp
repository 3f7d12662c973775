#include <catch2/catch.hpp>
#include <cmath>

#include "engine/model/model.h"
#include "tests/support/model_writer.h"
#include "tests/support/temp_dir.h"

namespace efimd::test {
namespace {

using engine::Model;

void check_refused(const GgufWriter& writer, const std::string& part) {
  const TempDir folder;
  writer.write(folder / "m.gguf");
  const auto model = Model::open(folder / "m.gguf");
  REQUIRE_FALSE(model);
  CHECK_THAT(model.error().message(), Catch::Contains(part));
}

}  // namespace

TEST_CASE("sizes that are missing, no integer or out of range are named") {
  for (const char* const key : {"block_count", "embedding_length", "feed_forward_length",
                                "context_length", "attention.head_count"}) {
    const std::string name = "llama." + std::string(key);
    check_refused(tiny_model({}).remove(name), "has no " + name);
    check_refused(tiny_model({}).text(name, "many"), name + " that is no integer");
    for (const std::int32_t value : {0, -1, 0x7FFFFFFF})
      check_refused(tiny_model({}).i32(name, value), name + " = " + std::to_string(value));
  }
  check_refused(tiny_model({}).u32("llama.block_count", 1025), "block_count = 1025");
}

TEST_CASE("heads that do not fit together are refused") {
  check_refused(tiny_model({}).u32("llama.attention.head_count_kv", 3), "multiple of its 3");
  check_refused(
      tiny_model({}).u32("llama.attention.key_length", 15).u32("llama.attention.value_length", 15),
      "heads of 15");
  check_refused(tiny_model({}).u32("llama.rope.dimension_count", 18), "rotates 18");
  check_refused(tiny_model({}).u32("llama.rope.dimension_count", 7), "rotates 7");
  GgufWriter writer = tiny_model({});
  writer.remove("llama.attention.key_length").u32("llama.attention.head_count", 5);
  check_refused(writer, "5 heads do not divide");
}

TEST_CASE("one number per layer is read when all layers agree") {
  const TempDir folder;
  tiny_model({}).i32s("llama.attention.head_count_kv", {2, 2}).write(folder / "m.gguf");
  const auto model = Model::open(folder / "m.gguf");
  REQUIRE(model);
  CHECK((*model)->shape().kv_heads == 2);
  check_refused(tiny_model({}).i32s("llama.attention.head_count_kv", {2, 4}), "layer to layer");
}

TEST_CASE("numbers of RoPE and norms that make no sense are refused") {
  check_refused(tiny_model({}).f32("llama.rope.freq_base", 0), "rope.freq_base");
  check_refused(tiny_model({}).f32("llama.rope.freq_base", -1), "rope.freq_base");
  check_refused(tiny_model({}).f32("llama.attention.layer_norm_rms_epsilon", NAN), "rms_epsilon");
  check_refused(tiny_model({}).f32("llama.rope.scaling.factor", INFINITY), "rope.scaling.factor");
  check_refused(tiny_model({}).text("llama.rope.scaling.factor", "4"), "rope.scaling.factor");
}

TEST_CASE("a model of many claimed layers is refused at the first that is missing") {
  check_refused(tiny_model({}).u32("llama.block_count", 1000), "blk.2.attn_norm.weight");
}

TEST_CASE("a truncated model file says so") {
  const TempDir folder;
  write_tiny_model({}, folder.path());
  const auto path = folder / "tiny-llama-spm-F32-1.gguf";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100'000);
  const auto model = Model::open(path);
  REQUIRE_FALSE(model);
  CHECK_THAT(model.error().message(), Catch::Contains("; download the file again"));
}

TEST_CASE("the bundled model opens as what its card says") {
  const auto path = std::filesystem::path(EFIMD_SOURCE_DIR) / "models" / "efim-boot.gguf";
  const auto opened = Model::open(path);
  if (!opened) FAIL(opened.error().message());
  const Model& model = **opened;
  CHECK(model.shape().layers == 11);
  CHECK(model.shape().kv_heads == 2);
  CHECK(model.shape().vocabulary == 8192);
  CHECK(model.file_type() == "Q8_0");
  CHECK_FALSE(model.fragment_trained());  // it was, and is better healed all the same
  CHECK(model.parameters() > 37'000'000);
  CHECK(std::filesystem::file_size(path) < 40'000'000);
  const engine::Tokenizer& tokenizer = model.tokenizer();
  CHECK(tokenizer.fim().order == engine::FimOrder::kPsm);
  CHECK_THAT(tokenizer.fim().reason, Catch::Contains("metadata"));
  CHECK(tokenizer.bos() == engine::kNoToken);
  CHECK(tokenizer.ends_generation(9));
  const std::string code = "for (int i = 0; i < 10; ++i) {\n\treturn \"naïve 你好\";\r\n}\n";
  for (const auto where : {engine::Fragment::kTextStart, engine::Fragment::kInside})
    CHECK(tokenizer.decode(tokenizer.encode(code, where)) == code);
}

TEST_CASE("vocabulary-only files are refused as models") {
  for (const char* const name : {"starcoder", "llama-spm", "deepseek-coder"}) {
    const auto path = std::filesystem::path(EFIMD_SHARED_DIR) / "vocab" /
                      ("ggml-vocab-" + std::string(name) + ".gguf");
    if (!std::filesystem::exists(path)) {
      WARN("skipped: no " << path << " (set EFIMD_SHARED_DIR)");
      continue;
    }
    const auto model = Model::open(path);
    REQUIRE_FALSE(model);
    CHECK_THAT(model.error().message(), Catch::Contains("has no weights"));
  }
}

}  // namespace efimd::test
