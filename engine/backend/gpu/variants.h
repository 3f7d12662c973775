#pragma once

namespace efimd::engine::gpu {

/// Kernels that replace plain ones. By counted bytes and instructions each takes at most 1 / 1.3 of
/// a plain one's time in prompts; the count stands beside the kernel. Where models have one or two
/// heads to a KV head, attention of one token gains nothing. It must have the bits of prompts.
struct Variants {
  bool quantized_products = false;  ///< on tensor cores: kernels/matmul_few.cuh, matmul_tiles.cuh
  bool half_products = false;       ///< of f16 and bf16 weights: kernels/matmul_halves.cuh
  bool tensor_attention = false;    ///< over f16 KV: kernels/attention_tiles.cuh
  bool shared_attention = false;    ///< rows of a workgroup share K and V: shaders/attention.comp

  bool operator==(const Variants&) const = default;
};

/// Those that a card has confirmed: `scripts/gpu bench` showed a gain of 10 % there at least. Say
/// the card, the date and the gain beside each that is added. None has run on a card yet.
inline constexpr Variants kConfirmedVariants = {};

inline constexpr Variants kAllVariants = {true, true, true, true};

}  // namespace efimd::engine::gpu
