#pragma once

namespace efimd::engine::gpu {

/// Kernels that replace plain ones. By counted bytes and instructions each takes at most 1 / 1.3 of
/// a plain one's time in prompts; the count stands beside the kernel.
struct Variants {
  bool quantized_products = false;  ///< on tensor cores: kernels/matmul_few.cuh, matmul_tiles.cuh
  bool half_products = false;       ///< of f16 and bf16 weights: kernels/matmul_halves.cuh
  bool tensor_attention = false;    ///< over f16 KV: kernels/attention_tiles.cuh
  bool shared_attention = false;    ///< rows of a workgroup share K and V: shaders/attention.comp

  bool operator==(const Variants&) const = default;
};

/// Those that a card has confirmed: `scripts/gpu bench` showed a gain of 10 % there at least. The
/// card was an H200, on 27 November 2026, with the shape of a 0.5B model. Milliseconds without and
/// with, of a prompt of 2,048 tokens, and of a step of 8 tokens after 4,096:
///   quantized_products  173 / 24.0   1.81 / 1.38   Q8_0
///   half_products       233 / 20.0   2.99 / 1.54   BF16
///   tensor_attention    86.9 / 24.0  2.69 / 1.38   Q8_0
/// shared_attention has the right bits on that card. Its speed was not measured.
inline constexpr Variants kConfirmedVariants = {
    .quantized_products = true, .half_products = true, .tensor_attention = true};

inline constexpr Variants kAllVariants = {true, true, true, true};

}  // namespace efimd::engine::gpu
