#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "engine/model/model_reader.h"

namespace efimd::engine {
namespace {

std::string axes_text(std::int64_t rows, std::int64_t cols) {
  return rows == 1 ? fmt::format("[{}]", cols) : fmt::format("[{}][{}]", rows, cols);
}

Presence norm_bias(Norm norm) {
  return norm == Norm::kLayer ? Presence::kRequired : Presence::kNone;
}

}  // namespace

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
      matrix("token_embd.weight", shape.vocabulary, shape.width, Presence::kRequired);
  for (int layer = 0; layer < shape.layers && !error_; ++layer)
    weights.layers.push_back(read_layer(shape, layer));
  weights.output_norm = vector("output_norm.weight", shape.width, Presence::kRequired);
  weights.output_norm_bias = vector("output_norm.bias", shape.width, norm_bias(shape.norm));
  weights.output = matrix("output.weight", shape.vocabulary, shape.width, Presence::kOptional);
  if (!weights.output.present()) weights.output = weights.token_embedding;
  read_rope_factors(shape, weights);
  refuse_unused();
  if (error_) return tl::unexpected<Error>(*error_);
  return weights;
}

void ModelReader::read_rope_factors(const ModelShape& shape, ModelWeights& weights) {
  if (!kind_->rope_factors) return;
  constexpr const char* kName = "rope_freqs.weight";
  weights.rope_factors = vector(kName, shape.rope_width / 2, Presence::kOptional);
  for (std::int64_t i = 0; !error_ && i < weights.rope_factors.cols; ++i) {
    float factor = 0;
    std::memcpy(&factor, weights.rope_factors.data + i * 4, sizeof factor);
    if (!std::isfinite(factor) || factor <= 0)
      damaged("tensor " + std::string(kName) + " divides a frequency by " + std::to_string(factor));
  }
}

LayerWeights ModelReader::read_layer(const ModelShape& shape, int layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  LayerWeights weights;
  read_attention(shape, prefix, weights);
  read_feed_forward(shape, prefix, weights);
  return weights;
}

void ModelReader::read_attention(const ModelShape& shape, const std::string& prefix,
                                 LayerWeights& weights) {
  const std::int64_t query_rows = std::int64_t{shape.heads} * shape.head_width;
  const std::int64_t kv_rows = std::int64_t{shape.kv_heads} * shape.head_width;
  const Presence biases = kind_->projection_biases;
  weights.attention_norm = vector(prefix + "attn_norm.weight", shape.width, Presence::kRequired);
  weights.attention_norm_bias =
      vector(prefix + "attn_norm.bias", shape.width, norm_bias(shape.norm));
  weights.query = matrix(prefix + "attn_q.weight", query_rows, shape.width, Presence::kRequired);
  weights.key = matrix(prefix + "attn_k.weight", kv_rows, shape.width, Presence::kRequired);
  weights.value = matrix(prefix + "attn_v.weight", kv_rows, shape.width, Presence::kRequired);
  weights.query_bias = vector(prefix + "attn_q.bias", query_rows, biases);
  weights.key_bias = vector(prefix + "attn_k.bias", kv_rows, biases);
  weights.value_bias = vector(prefix + "attn_v.bias", kv_rows, biases);
  weights.query_norm = vector(prefix + "attn_q_norm.weight", shape.head_width, kind_->head_norms);
  weights.key_norm = vector(prefix + "attn_k_norm.weight", shape.head_width, kind_->head_norms);
  weights.attention_output =
      matrix(prefix + "attn_output.weight", shape.width, query_rows, Presence::kRequired);
  weights.attention_output_bias =
      vector(prefix + "attn_output.bias", shape.width, kind_->other_biases);
}

void ModelReader::read_feed_forward(const ModelShape& shape, const std::string& prefix,
                                    LayerWeights& weights) {
  weights.feed_forward_norm = vector(prefix + "ffn_norm.weight", shape.width, Presence::kRequired);
  weights.feed_forward_norm_bias =
      vector(prefix + "ffn_norm.bias", shape.width, norm_bias(shape.norm));
  const bool experts = shape.experts > 0;
  const std::string ending = experts ? "_exps.weight" : ".weight";
  const std::int64_t count = experts ? shape.experts : 1;
  const Presence gate = kind_->gated ? Presence::kRequired : Presence::kNone;
  if (experts)
    weights.router =
        matrix(prefix + "ffn_gate_inp.weight", count, shape.width, Presence::kRequired);
  const std::int64_t rows = count * shape.feed_forward;
  weights.gate = matrix(prefix + "ffn_gate" + ending, rows, shape.width, gate);
  weights.up = matrix(prefix + "ffn_up" + ending, rows, shape.width, Presence::kRequired);
  weights.down = matrix(prefix + "ffn_down" + ending, count * shape.width, shape.feed_forward,
                        Presence::kRequired);
  weights.gate_bias = vector(prefix + "ffn_gate.bias", shape.feed_forward,
                             kind_->gated ? kind_->other_biases : Presence::kNone);
  weights.up_bias = vector(prefix + "ffn_up.bias", shape.feed_forward, kind_->other_biases);
  weights.down_bias = vector(prefix + "ffn_down.bias", shape.width, kind_->other_biases);
}

TensorView ModelReader::matrix(const std::string& name, std::int64_t rows, std::int64_t cols,
                               Presence need) {
  const TensorView* const found = need == Presence::kNone ? nullptr : file_.tensor(name);
  if (found == nullptr) {
    if (need == Presence::kRequired) damaged("has no tensor " + name);
    return {};
  }
  used_.insert(name);
  if (found->rows == rows && found->cols == cols) return *found;
  damaged("tensor " + name + " is " + axes_text(found->rows, found->cols) +
          ", the model's sizes ask for " + axes_text(rows, cols));
  return {};
}

TensorView ModelReader::vector(const std::string& name, std::int64_t size, Presence need) {
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
