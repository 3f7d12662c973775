#include "tests/engine/backend/varieties.h"

#include <cmath>

namespace efimd::test {
namespace {

Variety llama3() {
  Variety llama{"llama, RoPE factors, all biases"};
  llama.options.all_biases = true;
  llama.options.rope_factors = true;
  llama.shape.rope_scale = 0.5F;
  return llama;
}

Variety qwen3() {
  Variety qwen{"qwen3"};
  qwen.shape.rope_pairs = engine::RopePairs::kHalves;
  qwen.options.head_norms = true;
  return qwen;
}

Variety starcoder2() {
  Variety coder{"starcoder2"};
  coder.shape.rope_pairs = engine::RopePairs::kHalves;
  coder.shape.norm = engine::Norm::kLayer;
  coder.shape.activation = engine::Activation::kGelu;
  coder.shape.attention_window = 37;
  coder.options.gated = false;
  coder.options.all_biases = true;
  return coder;
}

Variety gemma() {
  Variety gemma{"gemma"};
  gemma.shape.rope_pairs = engine::RopePairs::kHalves;
  gemma.shape.activation = engine::Activation::kGelu;
  gemma.shape.kv_heads = 1;
  gemma.shape.embedding_scale = std::sqrt(96.0F);
  return gemma;
}

Variety granite() {
  Variety granite{"granite"};
  granite.shape.embedding_scale = 12;
  granite.shape.attention_scale = 0.09F;
  granite.shape.residual_scale = 0.22F;
  granite.shape.logit_scale = 1 / 8.0F;
  granite.options.all_biases = true;
  return granite;
}

Variety qwen3moe() {
  Variety qwen = qwen3();
  qwen.name = "qwen3moe";
  qwen.shape.experts = 6;
  qwen.shape.experts_used = 3;
  qwen.shape.feed_forward = 64;
  return qwen;
}

Variety qwen2() {
  Variety qwen{"qwen2"};
  qwen.shape.rope_pairs = engine::RopePairs::kHalves;
  qwen.options.biases = true;
  return qwen;
}

}  // namespace

std::vector<Variety> varieties() {
  return {{"llama"}, qwen2(), llama3(), qwen3(), starcoder2(), gemma(), granite(), qwen3moe()};
}

Variety wide(Variety variety) {
  variety.shape.width = 256;
  variety.shape.heads = 8;
  variety.shape.feed_forward = 512;
  return variety;
}

}  // namespace efimd::test
