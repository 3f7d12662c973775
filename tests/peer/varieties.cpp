#include "tests/peer/varieties.h"

#include <algorithm>

namespace efimd::test {

const std::vector<PeerVariety>& peer_varieties() {
  using Scaling = TinyModel::RopeScaling;
  static const std::vector<PeerVariety> kVarieties = {
      {.name = "llama", .architecture = "llama", .spoilt_by = "a RoPE base twice as large"},
      {.name = "llama-linear",
       .architecture = "llama",
       .rope_scaling = Scaling::kLinear,
       .spoilt_by = "RoPE unscaled"},
      {.name = "llama-llama3",
       .architecture = "llama",
       .rope_scaling = Scaling::kLlama3,
       .spoilt_by = "RoPE unscaled"},
      {.name = "llama-yarn",
       .architecture = "llama",
       .rope_scaling = Scaling::kYarn,
       .spoilt_by = "linear scaling instead"},
      {.name = "llama-biases",
       .architecture = "llama",
       .all_biases = true,
       .spoilt_by = "no biases"},
      {.name = "qwen2", .architecture = "qwen2", .tied = true, .spoilt_by = "no biases"},
      {.name = "qwen3", .architecture = "qwen3", .spoilt_by = "norms of heads without weights"},
      {.name = "qwen3moe", .architecture = "qwen3moe", .spoilt_by = "one expert fewer"},
      {.name = "starcoder2", .architecture = "starcoder2", .tied = true, .spoilt_by = "no biases"},
      {.name = "gemma", .architecture = "gemma", .spoilt_by = "a RoPE base twice as large"},
      {.name = "granite", .architecture = "granite", .spoilt_by = "a residual scale of 0.18"}};
  return kVarieties;
}

const PeerVariety* find_peer_variety(std::string_view name) {
  const auto found = std::ranges::find(peer_varieties(), name, &PeerVariety::name);
  return found == peer_varieties().end() ? nullptr : &*found;
}

TinyModel peer_model(const PeerVariety& variety) {
  TinyModel model;
  model.architecture = variety.architecture;
  model.rope_scaling = variety.rope_scaling;
  model.tied = variety.tied;
  model.all_biases = variety.all_biases;
  model.width = 256;
  model.heads = 8;
  model.kv_heads = 2;
  model.head_width = 32;
  model.feed_forward = variety.architecture == "qwen3moe" ? 256 : 512;
  model.bias_deviation = 0.3F;
  // Layers add about as much as the embedding brings, as in trained models: else every rounding is
  // amplified from layer to layer until near ties fall otherwise.
  const bool gemma = variety.architecture == "gemma";  // gemma and granite scale it themselves
  model.embedding_gain = gemma ? 1.5F : variety.architecture == "granite" ? 1 : 24;
  model.router_gain = 3;
  // Granite divides its logits by 3; a tied output has the embedding's size.
  model.output_gain = variety.architecture == "granite" ? 4.5F : 1.5F;
  if (variety.tied || gemma) model.output_gain /= model.embedding_gain;
  return model;
}

GgufWriter spoilt(const PeerVariety& variety, TinyModel model) {
  if (variety.spoilt_by == "no biases") model.bias_deviation = 0;
  if (variety.spoilt_by == "a RoPE base twice as large") model.rope_base *= 2;
  if (variety.spoilt_by == "RoPE unscaled") model.rope_scaling = TinyModel::RopeScaling::kNone;
  if (variety.spoilt_by == "linear scaling instead")
    model.rope_scaling = TinyModel::RopeScaling::kLinear;
  if (variety.spoilt_by == "one expert fewer") model.experts_used -= 1;
  GgufWriter writer = tiny_model(model);
  if (variety.spoilt_by == "a residual scale of 0.18") writer.f32("granite.residual_scale", 0.18F);
  if (variety.spoilt_by == "norms of heads without weights") {
    const std::vector<float> ones(static_cast<std::size_t>(model.head_width), 1.0F);
    for (int layer = 0; layer < model.layers; ++layer)
      for (const char* const name : {".attn_q_norm.weight", ".attn_k_norm.weight"})
        writer.find_tensor("blk." + std::to_string(layer) + name)->data =
            encode_tensor(ones, engine::TensorType::kF32);
  }
  return writer;
}

}  // namespace efimd::test
