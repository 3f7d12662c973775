#include "engine/model/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace efimd::engine {
namespace {

// Source: llama.cpp's model loaders (src/models/*.cpp): which tensors it asks for, the kind of
// RoPE, norm and activation. StarCoder2 was trained with a window of 4096 tokens, but its converter
// writes no key for it and llama.cpp attends to everything. This build does the same, unless the
// file names its window.
constexpr std::array kArchitectures = {
    Architecture{.name = "llama",
                 .rope_pairs = RopePairs::kAdjacent,
                 .projection_biases = Presence::kOptional,
                 .other_biases = Presence::kOptional,
                 .rope_factors = true},
    Architecture{.name = "qwen2", .projection_biases = Presence::kRequired},
    Architecture{.name = "qwen3",
                 .projection_biases = Presence::kOptional,
                 .head_norms = Presence::kRequired},
    Architecture{.name = "qwen3moe",
                 .projection_biases = Presence::kOptional,
                 .head_norms = Presence::kRequired,
                 .experts = true},
    Architecture{.name = "starcoder2",
                 .norm = Norm::kLayer,
                 .activation = Activation::kGelu,
                 .gated = false,
                 .projection_biases = Presence::kRequired,
                 .other_biases = Presence::kRequired,
                 .sliding_window = true},
    Architecture{
        .name = "gemma", .activation = Activation::kGelu, .embedding_times_root_width = true},
    Architecture{.name = "granite",
                 .rope_pairs = RopePairs::kAdjacent,
                 .projection_biases = Presence::kOptional,
                 .other_biases = Presence::kOptional,
                 .rope_factors = true,
                 .multipliers = true},
};

constexpr std::string_view kRecurrent =
    "keeps a recurrent state that cannot be rewound to an earlier token, and reuse of "
    "evaluated text rests on";
constexpr std::string_view kNoRope =
    "has no RoPE: its positions are learned or are biases by distance, which this build does not "
    "evaluate";
constexpr std::string_view kWritesNoText = "reads text to embed or to translate it";

struct Refused {
  std::string_view name;
  std::string_view reason;
};

/// Names as in llama.cpp. A name that is missing here is refused too, only without its reason.
constexpr std::array kRefused = {
    Refused{"mamba", kRecurrent},
    Refused{"mamba2", kRecurrent},
    Refused{"rwkv6", kRecurrent},
    Refused{"rwkv6qwen2", kRecurrent},
    Refused{"rwkv7", kRecurrent},
    Refused{"arwkv7", kRecurrent},
    // Attention in some layers, state in the others.
    Refused{"bamba", kRecurrent},
    Refused{"falcon-h1", kRecurrent},
    Refused{"granitehybrid", kRecurrent},
    Refused{"graniteswitch", kRecurrent},
    Refused{"jamba", kRecurrent},
    Refused{"kimi-linear", kRecurrent},
    Refused{"lfm2", kRecurrent},
    Refused{"lfm2moe", kRecurrent},
    Refused{"minimax-01", kRecurrent},
    Refused{"nemotron_h", kRecurrent},
    Refused{"nemotron_h_moe", kRecurrent},
    Refused{"plamo2", kRecurrent},
    Refused{"qwen35", kRecurrent},
    Refused{"qwen35moe", kRecurrent},
    Refused{"qwen3next", kRecurrent},
    Refused{"qwen4exp", kRecurrent},
    // Learned positions, or biases by distance (ALiBi).
    Refused{"bloom", kNoRope},
    Refused{"gpt2", kNoRope},
    Refused{"jais", kNoRope},
    Refused{"mpt", kNoRope},
    Refused{"refact", kNoRope},
    Refused{"starcoder", kNoRope},
    // No decoders of text.
    Refused{"bert", kWritesNoText},
    Refused{"gemma-embedding", kWritesNoText},
    Refused{"jina-bert-v2", kWritesNoText},
    Refused{"llama-embed", kWritesNoText},
    Refused{"modern-bert", kWritesNoText},
    Refused{"nomic-bert", kWritesNoText},
    Refused{"t5", kWritesNoText},
    Refused{"t5encoder", kWritesNoText},
};

void describe_layer(const ModelShape& shape, const LayerWeights& layer,
                    std::vector<std::string>& parts) {
  const std::string activation = shape.activation == Activation::kSilu ? "SiLU" : "GELU";
  parts.push_back(activation + (layer.gate.present() ? " gate" : " without a gate"));
  if (layer.query_bias.present()) parts.emplace_back("biases");
  if (layer.query_norm.present()) parts.emplace_back("norms of heads");
}

void describe_rope(const ModelShape& shape, const ModelWeights& weights,
                   std::vector<std::string>& parts) {
  const std::string by = shape.yarn.extrapolation != 0 ? " by YaRN" : "";
  if (shape.rope_scale != 1)
    parts.push_back(fmt::format("RoPE stretched {:g} times{}", 1 / shape.rope_scale, by));
  if (weights.rope_factors.present()) parts.emplace_back("RoPE with factors (llama3)");
}

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  const auto* const found = std::ranges::find(kArchitectures, name, &Architecture::name);
  return found == kArchitectures.end() ? nullptr : found;
}

std::string supported_architectures() {
  std::string names;
  for (std::size_t i = 0; i < kArchitectures.size(); ++i) {
    if (i > 0) names += i + 1 < kArchitectures.size() ? ", " : " and ";
    names += kArchitectures[i].name;
  }
  return names;
}

std::string_view reason_against(std::string_view name) {
  const auto* const found = std::ranges::find(kRefused, name, &Refused::name);
  return found == kRefused.end() ? std::string_view() : found->reason;
}

std::string describe(const ModelShape& shape, const ModelWeights& weights) {
  std::vector<std::string> parts = {shape.norm == Norm::kRms ? "RMS norm" : "layer norm"};
  if (!weights.layers.empty()) describe_layer(shape, weights.layers.front(), parts);
  describe_rope(shape, weights, parts);
  if (shape.attention_window > 0)
    parts.push_back(fmt::format("a window of {} tokens", shape.attention_window));
  if (shape.experts > 0)
    parts.push_back(
        fmt::format("{} experts of which {} are used", shape.experts, shape.experts_used));
  return fmt::format("{}: {}", shape.architecture, fmt::join(parts, ", "));
}

}  // namespace efimd::engine
