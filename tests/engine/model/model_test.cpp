#include "engine/model/model.h"

#include <catch2/catch.hpp>

#include "tests/engine/model/open_model.h"
#include "tests/support/model_writer.h"

namespace efimd::test {
namespace {

using engine::RopePairs;
using engine::TensorType;

TinyModel qwen2() {
  TinyModel model;
  model.architecture = "qwen2";
  model.vocab = TinyModel::Vocab::kByteBpe;
  model.tied = true;
  model.type = TensorType::kQ8_0;
  return model;
}

}  // namespace

TEST_CASE("a llama model opens with its shape, weights and tokenizer") {
  TinyModel tiny;
  tiny.rope_base = 50000;
  const auto model = opened(tiny_model(tiny));
  const engine::ModelShape& shape = model->shape();
  CHECK(shape.architecture == "llama");
  CHECK(shape.rope_pairs == RopePairs::kAdjacent);
  CHECK(shape.layers == 2);
  CHECK(shape.width == 64);
  CHECK(shape.heads == 4);
  CHECK(shape.kv_heads == 2);
  CHECK(shape.head_width == 16);
  CHECK(shape.feed_forward == 128);
  CHECK(shape.vocabulary == 320);
  CHECK(shape.context_tokens == 512);
  CHECK(shape.rope_width == 16);
  CHECK(shape.rope_base == 50000.0F);
  CHECK(shape.rope_scale == 1.0F);
  CHECK(shape.norm_epsilon == 1e-5F);
  CHECK(shape.kv_bytes_per_token() == 2U * 2 * 2 * 2 * 16);
  const engine::ModelWeights& weights = model->weights();
  CHECK(weights.layers.size() == 2);
  CHECK(weights.layers[1].key.rows == 32);
  CHECK(weights.layers[1].down.cols == 128);
  CHECK_FALSE(weights.layers[0].query_bias.present());
  CHECK(weights.output.data != weights.token_embedding.data);
  CHECK(model->tokenizer().size() == 320);
  CHECK(model->tokenizer().fim().order == engine::FimOrder::kPsm);
  CHECK(model->name() == "tiny");
  CHECK(model->file_type() == "F32");
  CHECK_FALSE(model->fragment_trained());
}

TEST_CASE("a qwen2 model opens with biases, halves and a tied output") {
  const auto model = opened(tiny_model(qwen2()));
  CHECK(model->shape().architecture == "qwen2");
  CHECK(model->shape().rope_pairs == RopePairs::kHalves);
  CHECK(model->weights().layers[0].key_bias.cols == 32);
  CHECK(model->weights().output.data == model->weights().token_embedding.data);
  CHECK(model->file_type() == "Q8_0");
}

TEST_CASE("matrices of every readable type open") {
  for (const auto type :
       {TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ8_0, TensorType::kQ4_0,
        TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ4_K,
        TensorType::kQ5_K, TensorType::kQ6_K}) {
    TinyModel tiny;
    tiny.type = type;
    tiny.width = 256;
    tiny.feed_forward = 512;
    const auto model = opened(tiny_model(tiny));
    CHECK(model->weights().layers[0].gate.type == type);
    CHECK(model->file_type() == engine::tensor_type_name(type));
  }
}

TEST_CASE("parameters and weight bytes are counted") {
  const auto model = opened(tiny_model(qwen2()));
  const std::uint64_t matrices = 320 * 64 + 2 * (64 * 64 * 2 + 32 * 64 * 2 + 3 * 128 * 64);
  const std::uint64_t vectors = 64 + 2 * (64 + 64 + 64 + 32 + 32);
  CHECK(model->parameters() == matrices + vectors);
  CHECK(model->weight_bytes() == matrices / 32 * 34 + vectors * 4);
}

TEST_CASE("keys that the file leaves out have the format's defaults") {
  TinyModel tiny;
  tiny.kv_heads = 4;
  GgufWriter writer = tiny_model(tiny);
  for (const char* const key :
       {"attention.head_count_kv", "attention.key_length", "attention.value_length",
        "rope.dimension_count", "rope.freq_base", "attention.layer_norm_rms_epsilon", "vocab_size"})
    writer.remove("llama." + std::string(key));
  writer.remove("general.name");
  const auto model = opened(writer);
  CHECK(model->shape().kv_heads == 4);
  CHECK(model->shape().head_width == 16);
  CHECK(model->shape().rope_width == 16);
  CHECK(model->shape().rope_base == 10000.0F);
  CHECK(model->shape().norm_epsilon == 1e-5F);
  CHECK(model->name() == "m");
}

TEST_CASE("heads may be wider than their share of the width") {
  TinyModel tiny;
  tiny.head_width = 32;
  const auto model = opened(tiny_model(tiny));
  CHECK(model->shape().head_width == 32);
  CHECK(model->weights().layers[0].query.rows == 128);
  CHECK(model->weights().layers[0].attention_output.cols == 128);
}

TEST_CASE("the digest names the content, not the path") {
  const auto digest = [](std::uint64_t seed) {
    TinyModel tiny;
    tiny.seed = seed;
    return opened(tiny_model(tiny))->digest();
  };
  CHECK(digest(1) == digest(1));
  CHECK(digest(1) != digest(2));
  GgufWriter renamed = tiny_model({});
  renamed.text("general.name", "tine");
  CHECK(opened(renamed)->digest() != digest(1));
  GgufWriter nudged = tiny_model({});
  nudged.find_tensor("blk.1.ffn_down.weight")->data[5] ^= 1;
  CHECK(opened(nudged)->digest() != digest(1));
}

TEST_CASE("a model says that it was trained on fragments") {
  TinyModel tiny;
  tiny.fragment_trained = true;
  CHECK(opened(tiny_model(tiny))->fragment_trained());
}

TEST_CASE("a tensor type that this build does not run is refused by tensor and type") {
  GgufWriter writer = tiny_model({});
  writer.tensor({"blk.0.attn_k.weight", {64, 32}, 10, std::string(672, '\0'), {}});
  check_refused(
      writer, Fault::kUnsupported,
      "tensor blk.0.attn_k.weight is Q2_K; this build runs F32, F16, BF16, Q8_0, Q4_0, Q4_1, "
      "Q5_0, Q5_1, Q4_K, Q5_K and Q6_K");
}

TEST_CASE("vectors in another type than F32 are refused") {
  GgufWriter writer = tiny_model({});
  writer.tensor({"output_norm.weight", {64}, 1, std::string(128, '\0'), {}});
  check_refused(writer, Fault::kUnsupported, "output_norm.weight is F16");
}

TEST_CASE("a part of a split model says so") {
  check_refused(tiny_model({}).u32("split.count", 3), Fault::kUnsupported, "split.count");
  CHECK(open(tiny_model({}).u32("split.count", 1)));
}

TEST_CASE("a file that goes with a model and is none says what it is") {
  const auto of_type = [](const char* type) {
    return tiny_model({}).text("general.type", type).remove("llama.block_count");
  };
  check_refused(of_type("adapter"), Fault::kUnsupported, "is a LoRA adapter");
  check_refused(of_type("imatrix").remove("general.architecture"), Fault::kUnsupported,
                "is an importance matrix");
  check_refused(of_type("mmproj"), Fault::kUnsupported, "pictures or sound");
  CHECK(open(tiny_model({}).text("general.type", "model")));
}

TEST_CASE("a file without weights says so") {
  GgufWriter writer = tiny_model(qwen2());
  for (const char* const name : {"token_embd.weight", "output_norm.weight"})
    writer.remove_tensor(name);
  for (int layer = 0; layer < 2; ++layer)
    for (const char* const part :
         {"attn_norm.weight", "attn_q.weight", "attn_q.bias", "attn_k.weight", "attn_k.bias",
          "attn_v.weight", "attn_v.bias", "attn_output.weight", "ffn_norm.weight",
          "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"})
      writer.remove_tensor("blk." + std::to_string(layer) + "." + part);
  check_refused(writer, Fault::kUnsupported, "has no weights");
}

TEST_CASE("a missing or misshapen tensor is named") {
  check_refused(tiny_model({}).remove_tensor("blk.1.ffn_up.weight"), Fault::kBadInput,
                "has no tensor blk.1.ffn_up.weight");
  check_refused(tiny_model(qwen2()).remove_tensor("blk.0.attn_v.bias"), Fault::kBadInput,
                "has no tensor blk.0.attn_v.bias");
  check_refused(tiny_model({}).tensor(zeros("blk.1.ffn_up.weight", {64, 64})), Fault::kBadInput,
                "tensor blk.1.ffn_up.weight is [64][64], the model's sizes ask for [128][64]");
  check_refused(tiny_model({}).tensor(zeros("output_norm.weight", {63})), Fault::kBadInput,
                "output_norm.weight is [63]");
}

TEST_CASE("an embedding that does not fit the tokenizer is refused") {
  check_refused(tiny_model({}).tensor(zeros("token_embd.weight", {64, 319})), Fault::kBadInput,
                "token_embd.weight is [319][64], the model's sizes ask for [320][64]");
}

TEST_CASE("a tokenizer that this build does not run is refused") {
  check_refused(tiny_model({}).text("tokenizer.ggml.model", "bert"), Fault::kUnsupported, "bert");
}

}  // namespace efimd::test
