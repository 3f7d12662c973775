#include "engine/model/model_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/utf8.h"

namespace efimd::engine {
namespace {

// Past these a file is refused; the largest models have 128 layers, widths of 18432 and 2^23
// positions.
constexpr int kLayersMax = 1024;
constexpr int kSizeMax = 1 << 24;
constexpr int kExpertsMax = 1024;

/// A text from the file as a message may show it.
std::string shown(std::string_view text) { return utf8::sanitized(text.substr(0, 80)); }

}  // namespace

void ModelReader::refuse(Fault fault, std::string what, std::string remedy) {
  if (!error_) error_ = Error{fault, file_.name() + ": " + std::move(what), std::move(remedy)};
}

Result<ModelShape> ModelReader::read_shape() {
  read_architecture();
  if (!error_) read_sizes();
  if (!error_) read_heads();
  if (!error_) read_experts();
  if (!error_) read_norm();
  if (!error_) read_rope();
  if (!error_) read_rope_scaling();
  if (!error_) read_multipliers();
  if (!error_) refuse_variants();
  if (error_) return tl::unexpected<Error>(*error_);
  return shape_;
}

void ModelReader::read_architecture() {
  const auto name = file_.string("general.architecture");
  if (!name) return damaged("has no general.architecture");
  architecture_ = *name;
  kind_ = find_architecture(architecture_);
  if (kind_ == nullptr) {
    const std::string_view reason = reason_against(architecture_);
    return unsupported("is a " + shown(architecture_) + " model" +
                       (reason.empty() ? "" : ", which " + std::string(reason)) +
                       "; this build runs " + supported_architectures());
  }
  shape_.architecture = kind_->name;
  shape_.activation = kind_->activation;
  shape_.rope_pairs = kind_->rope_pairs;
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

float ModelReader::scale_at(std::string_view key) {
  const float scale = real_at(key, 1);
  return scale == 0 ? 1 : scale;
}

void ModelReader::read_sizes() {
  shape_.layers = size_at("block_count");
  shape_.width = size_at("embedding_length");
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
                   std::to_string(shape_.heads) + " heads do not divide (" +
                   key_of("attention.head_count") + ")");
  const int share = std::max(shape_.width / shape_.heads, 1);
  shape_.head_width = size_at("attention.key_length", share);
  if (shape_.heads % shape_.kv_heads != 0)
    return damaged("has " + std::to_string(shape_.heads) + " heads, no multiple of its " +
                   std::to_string(shape_.kv_heads) + " KV heads (" +
                   key_of("attention.head_count_kv") + ")");
  const int value_width = size_at("attention.value_length", shape_.head_width);
  if (value_width != shape_.head_width)
    return unsupported("has keys of " + std::to_string(shape_.head_width) +
                       " elements and values of " + std::to_string(value_width) + " (" +
                       key_of("attention.value_length") + ")");
  const std::int64_t rows = std::int64_t{shape_.heads} * shape_.head_width;
  if (shape_.head_width % 2 != 0 || rows > kSizeMax)
    damaged("has heads of " + std::to_string(shape_.head_width) + " elements (" +
            key_of("attention.key_length") + ")");
}

void ModelReader::read_experts() {
  if (!kind_->experts) {
    shape_.feed_forward = size_at("feed_forward_length");
    return;
  }
  shape_.experts = size_at("expert_count");
  shape_.experts_used = size_at("expert_used_count");
  if (shape_.experts > kExpertsMax || shape_.experts_used > shape_.experts)
    return damaged("uses " + std::to_string(shape_.experts_used) + " of " +
                   std::to_string(shape_.experts) + " experts; at most " +
                   std::to_string(kExpertsMax) + " exist (" + key_of("expert_used_count") + ")");
  const bool given = has("expert_feed_forward_length");
  shape_.feed_forward = given ? size_at("expert_feed_forward_length")
                              : size_at("feed_forward_length") / shape_.experts_used;
  if (std::int64_t{shape_.feed_forward} * shape_.experts > kSizeMax)
    damaged("has " + std::to_string(shape_.experts) + " experts of " +
            std::to_string(shape_.feed_forward) + " elements (" + key_of("expert_count") + ")");
}

void ModelReader::read_norm() {
  shape_.norm = kind_->norm;
  shape_.norm_epsilon = real_at(kind_->norm == Norm::kRms ? "attention.layer_norm_rms_epsilon"
                                                          : "attention.layer_norm_epsilon",
                                shape_.norm_epsilon);
}

void ModelReader::read_rope() {
  shape_.rope_base = real_at("rope.freq_base", shape_.rope_base);
  shape_.rope_width = size_at("rope.dimension_count", shape_.head_width);
  if (shape_.rope_base <= 0) damaged("has " + key_of("rope.freq_base") + " = 0");
  if (shape_.rope_width > shape_.head_width || shape_.rope_width % 2 != 0)
    damaged("rotates " + std::to_string(shape_.rope_width) + " elements of heads of " +
            std::to_string(shape_.head_width) + " (" + key_of("rope.dimension_count") + ")");
}

void ModelReader::read_rope_scaling() {
  const std::string type(file_.string(key_of("rope.scaling.type")).value_or("linear"));
  // Files of llama 3 bring rope_freqs.weight and, as a rule, no type.
  const bool known = type == "none" || type == "linear" || type == "yarn" ||
                     (type == "llama3" && file_.tensor("rope_freqs.weight") != nullptr);
  if (!known)
    return unsupported("has " + key_of("rope.scaling.type") + " = " + shown(type) +
                       "; this build runs none, linear, yarn and llama3 with its "
                       "rope_freqs.weight");
  const float factor = real_at("rope.scaling.factor", real_at("rope.scale_linear", 0));
  if ((type == "linear" || type == "yarn") && factor > 0) shape_.rope_scale = 1 / factor;
  if (!std::isfinite(shape_.rope_scale) || shape_.rope_scale <= 0)
    return damaged("has " + key_of("rope.scaling.factor") + " = " + std::to_string(factor));
  if (type == "yarn") read_yarn();
  shape_.rope_magnitude *= real_at("rope.scaling.attn_factor", 1);
}

void ModelReader::read_yarn() {
  YarnRamp& yarn = shape_.yarn;
  yarn.extrapolation = real_at("rope.scaling.yarn_ext_factor", 1);
  yarn.original_context_tokens =
      size_at("rope.scaling.original_context_length", shape_.context_tokens);
  yarn.turns_fast = real_at("rope.scaling.yarn_beta_fast", yarn.turns_fast);
  yarn.turns_slow = real_at("rope.scaling.yarn_beta_slow", yarn.turns_slow);
  if (yarn.turns_fast <= 0 || yarn.turns_slow <= 0 || shape_.rope_base <= 1)
    return damaged("has a ramp of YaRN from " + std::to_string(yarn.turns_fast) + " to " +
                   std::to_string(yarn.turns_slow) + " turns (" +
                   key_of("rope.scaling.yarn_beta_fast") + ") over a base of " +
                   std::to_string(shape_.rope_base));
  // Interpolated scores are too small by about this factor squared (the paper, section 3.4).
  if (yarn.extrapolation != 0 && shape_.rope_scale < 1)
    shape_.rope_magnitude = 1 - 0.1F * std::log(shape_.rope_scale);
}

void ModelReader::read_multipliers() {
  if (kind_->embedding_times_root_width)
    shape_.embedding_scale = std::sqrt(static_cast<float>(shape_.width));
  if (kind_->sliding_window && has("attention.sliding_window"))
    shape_.attention_window = size_at("attention.sliding_window");
  if (!kind_->multipliers) return;
  if (!has("logit_scale")) return damaged("has no " + key_of("logit_scale"));
  shape_.embedding_scale = scale_at("embedding_scale");
  shape_.residual_scale = scale_at("residual_scale");
  shape_.attention_scale = real_at("attention.scale", 0);
  shape_.logit_scale = 1 / scale_at("logit_scale");
  if (!std::isfinite(shape_.logit_scale)) damaged("has a " + key_of("logit_scale") + " too small");
  if (file_.integer(key_of("rope.scaling.finetuned")).value_or(1) == 0)
    unsupported("says with " + key_of("rope.scaling.finetuned") + " that it has no RoPE");
}

void ModelReader::refuse_variants() {
  if (!kind_->experts && file_.integer(key_of("expert_count")).value_or(0) > 0)
    unsupported("is a mixture of experts (" + key_of("expert_count") + "), which the " +
                architecture_ + " models of this build are not");
  if (file_.integer(key_of("attention.causal")).value_or(1) == 0)
    unsupported("attends in both directions (" + key_of("attention.causal") +
                "): it embeds text, but does not write any");
}

}  // namespace efimd::engine
