#include "engine/model/model_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace efimd::engine {
namespace {

// Past these a file is refused; the largest models have 128 layers, widths of 18432 and 2^23
// positions.
constexpr int kLayersMax = 1024;
constexpr int kSizeMax = 1 << 24;

/// Their state cannot be rewound to an earlier token, which is what reuse rests on.
constexpr std::array<std::string_view, 17> kRecurrent = {
    "mamba", "mamba2",        "rwkv6",     "rwkv6qwen2", "rwkv7",      "arwkv7",
    "jamba", "granitehybrid", "falcon-h1", "nemotron_h", "lfm2",       "plamo2",
    "bamba", "qwen3next",     "qwen35",    "qwen35moe",  "kimi-linear"};

std::string axes_text(std::int64_t rows, std::int64_t cols) {
  return rows == 1 ? fmt::format("[{}]", cols) : fmt::format("[{}][{}]", rows, cols);
}

}  // namespace

void ModelReader::refuse(Fault fault, std::string what, std::string remedy) {
  if (!error_) error_ = Error{fault, file_.name() + ": " + std::move(what), std::move(remedy)};
}

Result<ModelShape> ModelReader::read_shape() {
  read_architecture();
  if (!error_) read_sizes();
  if (!error_) read_heads();
  if (!error_) read_norm_and_rope();
  if (!error_) read_rope_scaling();
  if (!error_) refuse_variants();
  if (error_) return tl::unexpected<Error>(*error_);
  return shape_;
}

void ModelReader::read_architecture() {
  const auto name = file_.string("general.architecture");
  if (!name) return damaged("has no general.architecture");
  architecture_ = *name;
  constexpr std::string_view kSupported = "; this build runs llama and qwen2";
  if (*name == "llama") {
    shape_.architecture = Architecture::kLlama;
    shape_.rope_pairs = RopePairs::kAdjacent;
  } else if (*name == "qwen2") {
    shape_.architecture = Architecture::kQwen2;
    shape_.rope_pairs = RopePairs::kHalves;
  } else if (std::find(kRecurrent.begin(), kRecurrent.end(), *name) != kRecurrent.end()) {
    unsupported("is a " + architecture_ + " model, whose recurrent state cannot be rewound" +
                std::string(kSupported));
  } else {
    unsupported("is a " + architecture_ + " model" + std::string(kSupported));
  }
}

int ModelReader::size_at(std::string_view key, std::optional<int> fallback) {
  const std::string name = key_of(key);
  std::optional<std::int64_t> value = file_.integer(name);
  // Some converters write one number per layer; a model whose layers differ is another
  // architecture.
  if (const auto* const each = file_.integers(name); each != nullptr && !each->empty()) {
    if (std::adjacent_find(each->begin(), each->end(), std::not_equal_to<>()) != each->end()) {
      unsupported("has a " + name + " that differs from layer to layer");
      return 1;
    }
    value = each->front();
  }
  if (!value && file_.metadata().contains(name)) {
    damaged("has a " + name + " that is no integer");
    return 1;
  }
  if (!value) {
    if (!fallback) damaged("has no " + name);
    return fallback.value_or(1);
  }
  if (*value >= 1 && *value <= kSizeMax) return static_cast<int>(*value);
  damaged("has " + name + " = " + std::to_string(*value) + ", not 1 to " +
          std::to_string(kSizeMax));
  return 1;
}

float ModelReader::real_at(std::string_view key, float fallback) {
  const std::string name = key_of(key);
  if (!file_.metadata().contains(name)) return fallback;
  const auto value = file_.real(name);
  const auto narrow = static_cast<float>(value.value_or(NAN));
  if (std::isfinite(narrow) && narrow >= 0) return narrow;
  damaged("has a " + name + " that is not a number from 0 up");
  return fallback;
}

void ModelReader::read_sizes() {
  shape_.layers = size_at("block_count");
  shape_.width = size_at("embedding_length");
  shape_.feed_forward = size_at("feed_forward_length");
  shape_.context_tokens = size_at("context_length");
  if (shape_.layers > kLayersMax)
    damaged("has " + key_of("block_count") + " = " + std::to_string(shape_.layers) +
            ", more than " + std::to_string(kLayersMax));
}

void ModelReader::read_heads() {
  shape_.heads = size_at("attention.head_count");
  shape_.kv_heads = size_at("attention.head_count_kv", shape_.heads);
  const bool given = file_.metadata().contains(key_of("attention.key_length"));
  if (!given && shape_.width % shape_.heads != 0)
    return damaged("has a width of " + std::to_string(shape_.width) + " that its " +
                   std::to_string(shape_.heads) + " heads do not divide");
  const int share = std::max(shape_.width / shape_.heads, 1);
  shape_.head_width = size_at("attention.key_length", share);
  if (shape_.heads % shape_.kv_heads != 0)
    return damaged("has " + std::to_string(shape_.heads) + " heads, no multiple of its " +
                   std::to_string(shape_.kv_heads) + " KV heads");
  const int value_width = size_at("attention.value_length", shape_.head_width);
  if (value_width != shape_.head_width)
    return unsupported("has keys of " + std::to_string(shape_.head_width) +
                       " elements and values of " + std::to_string(value_width));
  const std::int64_t rows = std::int64_t{shape_.heads} * shape_.head_width;
  if (shape_.head_width % 2 != 0 || rows > kSizeMax)
    damaged("has heads of " + std::to_string(shape_.head_width) + " elements");
}

void ModelReader::read_norm_and_rope() {
  shape_.norm_epsilon = real_at("attention.layer_norm_rms_epsilon", shape_.norm_epsilon);
  shape_.rope_base = real_at("rope.freq_base", shape_.rope_base);
  shape_.rope_width = size_at("rope.dimension_count", shape_.head_width);
  if (shape_.rope_base <= 0) damaged("has " + key_of("rope.freq_base") + " = 0");
  if (shape_.rope_width > shape_.head_width || shape_.rope_width % 2 != 0)
    damaged("rotates " + std::to_string(shape_.rope_width) + " elements of heads of " +
            std::to_string(shape_.head_width));
}

void ModelReader::read_rope_scaling() {
  const std::string type_key = key_of("rope.scaling.type");
  const std::string type(file_.string(type_key).value_or("linear"));
  if (type != "none" && type != "linear")
    return unsupported("has " + type_key + " = " + type + "; this build runs none and linear");
  const float older = real_at("rope.scale_linear", 0);
  const float factor = real_at("rope.scaling.factor", older);
  if (type == "linear" && factor > 0) shape_.rope_scale = 1 / factor;
  if (!std::isfinite(shape_.rope_scale) || shape_.rope_scale <= 0)
    return damaged("has " + key_of("rope.scaling.factor") + " = " + std::to_string(factor));
  for (const char* const name :
       {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"})
    if (file_.tensor(name) != nullptr)
      return unsupported("scales RoPE by the tensor " + std::string(name) +
                         " (llama3 or longrope); this build runs none and linear");
}

void ModelReader::refuse_variants() {
  if (file_.integer(key_of("expert_count")).value_or(0) > 0)
    unsupported("is a mixture of experts; this build runs dense models");
  if (file_.integer(key_of("attention.causal")).value_or(1) == 0)
    unsupported("attends in both directions: it embeds text, it does not write any");
}

Result<ModelWeights> ModelReader::read_weights(const ModelShape& shape) {
  if (!file_.unreadable().empty()) {
    const auto& [name, type] = *file_.unreadable().begin();
    return fail(Fault::kUnsupported,
                file_.name() + ": tensor " + name + " is " + ggml_type_name(type) +
                    "; this build runs " + std::string(readable_types()),
                "use the Q8_0 or F16 file of this model");
  }
  ModelWeights weights;
  weights.token_embedding =
      matrix("token_embd.weight", shape.vocabulary, shape.width, Need::kRequired);
  for (int layer = 0; layer < shape.layers && !error_; ++layer)
    weights.layers.push_back(read_layer(shape, layer));
  weights.output_norm = vector("output_norm.weight", shape.width, Need::kRequired);
  weights.output = matrix("output.weight", shape.vocabulary, shape.width, Need::kOptional);
  if (!weights.output.present()) weights.output = weights.token_embedding;
  refuse_unused();
  if (error_) return tl::unexpected<Error>(*error_);
  return weights;
}

LayerWeights ModelReader::read_layer(const ModelShape& shape, int layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  const std::int64_t query_rows = std::int64_t{shape.heads} * shape.head_width;
  const std::int64_t kv_rows = std::int64_t{shape.kv_heads} * shape.head_width;
  const Need biases =
      shape.architecture == Architecture::kQwen2 ? Need::kRequired : Need::kOptional;
  const Need required = Need::kRequired;

  LayerWeights weights;
  weights.attention_norm = vector(prefix + "attn_norm.weight", shape.width, required);
  weights.query = matrix(prefix + "attn_q.weight", query_rows, shape.width, required);
  weights.key = matrix(prefix + "attn_k.weight", kv_rows, shape.width, required);
  weights.value = matrix(prefix + "attn_v.weight", kv_rows, shape.width, required);
  weights.query_bias = vector(prefix + "attn_q.bias", query_rows, biases);
  weights.key_bias = vector(prefix + "attn_k.bias", kv_rows, biases);
  weights.value_bias = vector(prefix + "attn_v.bias", kv_rows, biases);
  weights.attention_output =
      matrix(prefix + "attn_output.weight", shape.width, query_rows, required);
  weights.feed_forward_norm = vector(prefix + "ffn_norm.weight", shape.width, required);
  weights.gate = matrix(prefix + "ffn_gate.weight", shape.feed_forward, shape.width, required);
  weights.up = matrix(prefix + "ffn_up.weight", shape.feed_forward, shape.width, required);
  weights.down = matrix(prefix + "ffn_down.weight", shape.width, shape.feed_forward, required);
  return weights;
}

TensorView ModelReader::matrix(const std::string& name, std::int64_t rows, std::int64_t cols,
                               Need need) {
  const TensorView* const found = file_.tensor(name);
  if (found == nullptr) {
    if (need == Need::kRequired) damaged("has no tensor " + name);
    return {};
  }
  used_.insert(name);
  if (found->rows == rows && found->cols == cols) return *found;
  damaged("tensor " + name + " is " + axes_text(found->rows, found->cols) +
          ", the model's sizes ask for " + axes_text(rows, cols));
  return {};
}

TensorView ModelReader::vector(const std::string& name, std::int64_t size, Need need) {
  const TensorView view = matrix(name, 1, size, need);
  if (view.present() && view.type != TensorType::kF32)
    unsupported("tensor " + name + " is " + std::string(tensor_type_name(view.type)) +
                "; vectors must be F32");
  return view;
}

void ModelReader::refuse_unused() {
  for (const auto& [name, view] : file_.tensors()) {
    // Frequencies that old converters wrote out; they follow from rope.freq_base.
    if (used_.contains(name) || name.ends_with("attn_rot_embd.weight")) continue;
    return unsupported("has the tensor " + name + ", which the " + architecture_ +
                       " models of this build do not have");
  }
}

}  // namespace efimd::engine
