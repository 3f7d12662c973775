#include "engine/model/architecture.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/engine/model/open_model.h"
#include "tests/support/model_writer.h"

namespace efimd::test {
namespace {

using engine::Activation;
using engine::Norm;
using engine::RopePairs;

GgufWriter tiny(const std::string& architecture) {
  TinyModel model;
  model.architecture = architecture;
  return tiny_model(model);
}

GgufWriter tiny_scaled(TinyModel::RopeScaling scaling) {
  TinyModel model;
  model.rope_scaling = scaling;
  return tiny_model(model);
}

std::string description(const engine::Model& model) {
  return describe(model.shape(), model.weights());
}

}  // namespace

TEST_CASE("qwen3 has norms of heads and turns halves") {
  const auto model = opened(tiny("qwen3"));
  CHECK(model->shape().rope_pairs == RopePairs::kHalves);
  CHECK(model->weights().layers[1].query_norm.cols == 16);
  CHECK(model->weights().layers[1].key_norm.cols == 16);
  CHECK(description(*model) == "qwen3: RMS norm, SiLU gate, norms of heads");
  check_refused(tiny("qwen3").remove_tensor("blk.1.attn_k_norm.weight"), Fault::kBadInput,
                "has no tensor blk.1.attn_k_norm.weight");
}

TEST_CASE("starcoder2 has layer norms, biases everywhere and no gate") {
  const auto model = opened(tiny("starcoder2"));
  const engine::ModelShape& shape = model->shape();
  CHECK(shape.norm == Norm::kLayer);
  CHECK(shape.activation == Activation::kGelu);
  CHECK(shape.rope_pairs == RopePairs::kHalves);
  CHECK(shape.attention_window == 0);
  const engine::LayerWeights& layer = model->weights().layers[0];
  CHECK_FALSE(layer.gate.present());
  for (const auto& bias :
       {layer.attention_norm_bias, layer.query_bias, layer.key_bias, layer.value_bias,
        layer.attention_output_bias, layer.feed_forward_norm_bias, layer.up_bias, layer.down_bias})
    CHECK(bias.present());
  CHECK(model->weights().output_norm_bias.present());
  CHECK(description(*model) == "starcoder2: layer norm, GELU without a gate, biases");
  check_refused(tiny("starcoder2").remove_tensor("blk.0.ffn_up.bias"), Fault::kBadInput,
                "has no tensor blk.0.ffn_up.bias");
}

TEST_CASE("a window that the file names is kept, and layer norms read their own epsilon") {
  GgufWriter writer = tiny("starcoder2");
  writer.u32("starcoder2.attention.sliding_window", 4096);
  writer.f32("starcoder2.attention.layer_norm_epsilon", 2e-5F);
  const auto model = opened(writer);
  CHECK(model->shape().attention_window == 4096);
  CHECK(model->shape().norm_epsilon == 2e-5F);
  CHECK_THAT(description(*model), Catch::Contains("a window of 4096 tokens"));
  check_refused(tiny("starcoder2").u32("starcoder2.attention.sliding_window", 0), Fault::kBadInput,
                "starcoder2.attention.sliding_window = 0");
}

TEST_CASE("gemma scales its embedding, gates by GELU and ties its output") {
  const auto model = opened(tiny("gemma"));
  CHECK(model->shape().embedding_scale == 8);  // sqrt(64)
  CHECK(model->shape().activation == Activation::kGelu);
  CHECK(model->weights().output.data == model->weights().token_embedding.data);
  CHECK(description(*model) == "gemma: RMS norm, GELU gate");
}

TEST_CASE("granite's four multipliers are read") {
  const auto model = opened(tiny("granite"));
  const engine::ModelShape& shape = model->shape();
  CHECK(shape.rope_pairs == RopePairs::kAdjacent);
  CHECK(shape.embedding_scale == 12);
  CHECK(shape.residual_scale == 0.22F);
  CHECK(shape.attention_scale == 0.09F);
  CHECK(shape.score_scale() == 0.09F);
  CHECK(shape.logit_scale == Approx(1 / 3.0));
}

TEST_CASE("granite's multipliers may be missing or 0, but for that of the logits") {
  GgufWriter writer = tiny("granite");
  writer.remove("granite.embedding_scale").f32("granite.residual_scale", 0);
  writer.remove("granite.attention.scale");
  const auto model = opened(writer);
  CHECK(model->shape().embedding_scale == 1);
  CHECK(model->shape().residual_scale == 1);
  CHECK(model->shape().score_scale() == 0.25F);  // heads of 16
  check_refused(tiny("granite").remove("granite.logit_scale"), Fault::kBadInput,
                "has no granite.logit_scale");
  check_refused(tiny("granite").f32("granite.logit_scale", 1e-45F), Fault::kBadInput,
                "granite.logit_scale");
  check_refused(tiny("granite").boolean("granite.rope.scaling.finetuned", false),
                Fault::kUnsupported, "no RoPE");
}

TEST_CASE("qwen3moe has experts, of which a token uses some") {
  const auto model = opened(tiny("qwen3moe"));
  const engine::ModelShape& shape = model->shape();
  CHECK(shape.experts == 8);
  CHECK(shape.experts_used == 3);
  CHECK(shape.feed_forward == 128);
  const engine::LayerWeights& layer = model->weights().layers[0];
  CHECK(layer.router.rows == 8);
  CHECK(layer.gate.rows == 8 * 128);
  CHECK(layer.down.rows == 8 * 64);
  CHECK(layer.down.cols == 128);
  CHECK_THAT(description(*model), Catch::Contains("8 experts of which 3 are used"));
  const std::uint64_t idle = 2 * 5 * 3 * 128 * 64;  // layers, experts, matrices
  CHECK(model->parameters() - model->active_parameters() == idle);
}

TEST_CASE("an expert's width may follow from the whole") {
  GgufWriter writer = tiny("qwen3moe");
  writer.remove("qwen3moe.expert_feed_forward_length").u32("qwen3moe.feed_forward_length", 384);
  CHECK(opened(writer)->shape().feed_forward == 128);
}

TEST_CASE("impossible counts of experts are refused") {
  check_refused(tiny("qwen3moe").u32("qwen3moe.expert_used_count", 9), Fault::kBadInput,
                "uses 9 of 8 experts");
  check_refused(tiny("qwen3moe").u32("qwen3moe.expert_count", 100000), Fault::kBadInput,
                "100000 experts");
  check_refused(tiny("qwen3moe").remove("qwen3moe.expert_used_count"), Fault::kBadInput,
                "has no qwen3moe.expert_used_count");
  check_refused(tiny("qwen3moe").u32("qwen3moe.expert_count", 7), Fault::kBadInput,
                "blk.0.ffn_gate_inp.weight is [8][64], the model's sizes ask for [7][64]");
}

TEST_CASE("a dense model uses all of its parameters") {
  const auto model = opened(tiny("llama"));
  CHECK(model->parameters() == model->active_parameters());
}

TEST_CASE("llama files may bring biases") {
  GgufWriter writer = tiny("llama");
  for (const char* const name : {"attn_q.bias", "attn_output.bias", "ffn_down.bias"})
    writer.tensor(zeros("blk.0." + std::string(name), {64}));
  const auto model = opened(writer);
  CHECK(model->weights().layers[0].query_bias.present());
  CHECK(model->weights().layers[0].attention_output_bias.present());
  CHECK(model->weights().layers[0].down_bias.present());
  CHECK_FALSE(model->weights().layers[0].up_bias.present());
}

TEST_CASE("linear RoPE scaling divides positions") {
  GgufWriter writer = tiny_model({});
  writer.f32("llama.rope.scaling.factor", 4);
  CHECK(opened(writer)->shape().rope_scale == 0.25F);
  writer.text("llama.rope.scaling.type", "linear");
  CHECK(opened(writer)->shape().rope_scale == 0.25F);
  writer.text("llama.rope.scaling.type", "none");
  CHECK(opened(writer)->shape().rope_scale == 1.0F);
  writer = tiny_model({});
  writer.f32("llama.rope.scale_linear", 2);
  CHECK(opened(writer)->shape().rope_scale == 0.5F);
}

TEST_CASE("YaRN reads its ramp and makes rotated vectors longer") {
  GgufWriter writer = tiny_scaled(TinyModel::RopeScaling::kYarn);
  const engine::ModelShape shape = opened(writer)->shape();
  CHECK(shape.rope_scale == 0.25F);
  CHECK(shape.rope_magnitude == Approx(1 + 0.1 * std::log(4.0)));
  CHECK(shape.yarn.extrapolation == 1);
  CHECK(shape.yarn.original_context_tokens == 128);
  CHECK(shape.yarn.turns_fast == 32);
  CHECK(shape.yarn.turns_slow == 1);
  writer.remove("llama.rope.scaling.original_context_length");
  writer.f32("llama.rope.scaling.attn_factor", 2).f32("llama.rope.scaling.yarn_beta_fast", 16);
  const engine::ModelShape other = opened(writer)->shape();
  CHECK(other.yarn.original_context_tokens == 512);
  CHECK(other.rope_magnitude == Approx(2 + 0.2 * std::log(4.0)));
  CHECK(other.yarn.turns_fast == 16);
  CHECK_THAT(description(*opened(writer)), Catch::Contains("RoPE stretched 4 times by YaRN"));
  check_refused(writer.f32("llama.rope.scaling.yarn_beta_slow", 0), Fault::kBadInput, "YaRN");
}

TEST_CASE("the factors of llama 3 are read where its architectures have them") {
  const auto model = opened(tiny_scaled(TinyModel::RopeScaling::kLlama3));
  CHECK(model->weights().rope_factors.cols == 8);
  CHECK_THAT(description(*model), Catch::Contains("llama3"));
  GgufWriter named = tiny_scaled(TinyModel::RopeScaling::kLlama3);
  CHECK(open(named.text("llama.rope.scaling.type", "llama3")));
  check_refused(tiny_model({}).tensor(zeros("rope_freqs.weight", {8})), Fault::kBadInput,
                "rope_freqs.weight");
  check_refused(tiny("qwen2").tensor(zeros("rope_freqs.weight", {8})), Fault::kUnsupported,
                "rope_freqs.weight");
}

TEST_CASE("other RoPE scalings are refused") {
  for (const char* const type : {"longrope", "llama3", "\xFF"})
    check_refused(tiny_model({}).text("llama.rope.scaling.type", type), Fault::kUnsupported,
                  "this build runs none, linear, yarn");
}

TEST_CASE("architectures that this build does not run are refused with what it runs") {
  for (const char* const name : {"phi3", "gemma2", "mamba", "\xFF"})
    check_refused(tiny_model({}).text("general.architecture", name), Fault::kUnsupported,
                  "this build runs llama, qwen2, qwen3, qwen3moe, starcoder2, gemma and granite");
  check_refused(tiny_model({}).remove("general.architecture"), Fault::kBadInput,
                "general.architecture");
}

TEST_CASE("models that cannot be rewound, have no RoPE or write no text are refused with that") {
  for (const char* const name : {"mamba", "rwkv7", "jamba", "qwen35", "qwen3next", "qwen35moe",
                                 "granitehybrid", "lfm2", "falcon-h1", "nemotron_h"})
    check_refused(tiny_model({}).text("general.architecture", name), Fault::kUnsupported,
                  "is a " + std::string(name) + " model, which keeps a recurrent state");
  for (const char* const name : {"starcoder", "gpt2", "mpt", "bloom", "refact"})
    check_refused(tiny_model({}).text("general.architecture", name), Fault::kUnsupported,
                  "is a " + std::string(name) + " model, which has no RoPE");
  check_refused(tiny_model({}).text("general.architecture", "bert"), Fault::kUnsupported,
                "reads text to embed");
}

TEST_CASE("variants of llama that compute something else are refused") {
  check_refused(tiny_model({}).u32("llama.expert_count", 8), Fault::kUnsupported, "experts");
  check_refused(tiny_model({}).boolean("llama.attention.causal", false), Fault::kUnsupported,
                "both directions");
  check_refused(tiny_model({}).tensor(zeros("blk.0.attn_q_norm.weight", {16})), Fault::kUnsupported,
                "blk.0.attn_q_norm.weight");
  check_refused(tiny_model({}).u32("llama.attention.value_length", 8), Fault::kUnsupported,
                "values of 8");
}

}  // namespace efimd::test
