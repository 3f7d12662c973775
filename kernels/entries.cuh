#pragma once

// The kernels by the names that the host asks for: the operation's own with the form of its values.
// For weights of a type it is the name and the type's number, for products also the tokens of a
// tile. attention_tiles has the pieces of a head.
#include "kernels/activate.cuh"
#include "kernels/attention.cuh"
#include "kernels/attention_tiles.cuh"
#include "kernels/combine.cuh"
#include "kernels/embed_rows.cuh"
#include "kernels/matmul.cuh"
#include "kernels/matmul_few.cuh"
#include "kernels/matmul_halves.cuh"
#include "kernels/matmul_tiles.cuh"
#include "kernels/merge.cuh"
#include "kernels/norm_rows.cuh"
#include "kernels/route.cuh"
#include "kernels/store_rows.cuh"

namespace efimd::kernels {

extern "C" {

__global__ void norm_rows_f32(const u32* rows, const float* x, const float* weight,
                              const float* bias, float* floats, u32* quants, float2* scales,
                              unsigned short* halves, NormSizes s) {
  norm_rows(rows, x, weight, bias, {floats, quants, scales, halves}, s);
}
__global__ void store_rows_f16(float* qkv, const float* rope_table, const float* query_norm,
                               const float* key_norm, u32* kv, const u32* places, StoreSizes s) {
  store_rows<Kv::kF16>(qkv, rope_table, query_norm, key_norm, kv, places, s);
}
__global__ void store_rows_q8(float* qkv, const float* rope_table, const float* query_norm,
                              const float* key_norm, u32* kv, const u32* places, StoreSizes s) {
  store_rows<Kv::kQ8>(qkv, rope_table, query_norm, key_norm, kv, places, s);
}
__global__ void attention_f16(const float* qkv, const u32* kv, const u32* pages, const uint2* rows,
                              float* partials, const float* key_bias, const float2* rope_table,
                              AttentionSizes s) {
  attention<Kv::kF16>(qkv, kv, pages, rows, partials, key_bias, rope_table, s);
}
__global__ void attention_q8(const float* qkv, const u32* kv, const u32* pages, const uint2* rows,
                             float* partials, const float* key_bias, const float2* rope_table,
                             AttentionSizes s) {
  attention<Kv::kQ8>(qkv, kv, pages, rows, partials, key_bias, rope_table, s);
}
// So many registers that a batch of partials is on its way at once.
__global__ void __launch_bounds__(kElementThreads, 8)
    merge_f32(const float* partials, const uint2* rows, float* floats, u32* quants, float2* scales,
              unsigned short* halves, MergeSizes s) {
  merge(partials, rows, {floats, quants, scales, halves}, s);
}
__global__ void activate_f32(const float* x, float* floats, u32* quants, float2* scales,
                             unsigned short* halves, ActivateSizes s) {
  activate(x, {floats, quants, scales, halves}, s);
}
__global__ void route_f32(const float* logits, u32* chosen, float* weights, RouteSizes s) {
  route(logits, chosen, weights, s);
}
__global__ void combine_f32(const float* parts, const float* weights, float* x, CombineSizes s) {
  combine(parts, weights, x, s);
}

#define EFIMD_ATTENTION_KERNELS(pieces)                                                        \
  __global__ void __launch_bounds__(2 * kHeadsOfTile)                                          \
      attention_tiles_##pieces(const float* qkv, const u32* kv, const u32* pages,              \
                               const uint2* rows, float* partials, AttentionSizes s) {         \
    attention_tiles<pieces, false>(qkv, kv, pages, rows, partials, s);                         \
  }                                                                                            \
  __global__ void __launch_bounds__(2 * kHeadsOfTile)                                          \
      attention_tiles_##pieces##_whole(const float* qkv, const u32* kv, const u32* pages,      \
                                       const uint2* rows, float* partials, AttentionSizes s) { \
    attention_tiles<pieces, true>(qkv, kv, pages, rows, partials, s);                          \
  }
EFIMD_ATTENTION_KERNELS(1)
EFIMD_ATTENTION_KERNELS(2)
EFIMD_ATTENTION_KERNELS(3)
EFIMD_ATTENTION_KERNELS(4)
EFIMD_ATTENTION_KERNELS(8)
#undef EFIMD_ATTENTION_KERNELS

#define EFIMD_TYPED_KERNELS(number)                                                              \
  __global__ void embed_rows_##number(const u32* tokens, const u32* w, float* x, EmbedSizes s) { \
    embed_rows<static_cast<Packed>(number)>(tokens, w, x, s);                                    \
  }                                                                                              \
  __global__ void matmul_##number##_1(const u32* w, const u32* x, const float2* scales,          \
                                      const float* bias, const u32* experts, float* result,      \
                                      MatmulSizes s) {                                           \
    matmul<static_cast<Packed>(number), 1>(w, x, scales, bias, experts, result, s);              \
  }
EFIMD_TYPED_KERNELS(0)
EFIMD_TYPED_KERNELS(1)
EFIMD_TYPED_KERNELS(2)
EFIMD_TYPED_KERNELS(3)
EFIMD_TYPED_KERNELS(4)
EFIMD_TYPED_KERNELS(5)
EFIMD_TYPED_KERNELS(6)
EFIMD_TYPED_KERNELS(7)
EFIMD_TYPED_KERNELS(8)
EFIMD_TYPED_KERNELS(9)
EFIMD_TYPED_KERNELS(10)
#undef EFIMD_TYPED_KERNELS

#define EFIMD_FLOAT_KERNEL(number)                                                              \
  __global__ void matmul_##number##_8(const u32* w, const u32* x, const float2* scales,         \
                                      const float* bias, const u32* experts, float* result,     \
                                      MatmulSizes s) {                                          \
    matmul<static_cast<Packed>(number), kTokensOfTile>(w, x, scales, bias, experts, result, s); \
  }
EFIMD_FLOAT_KERNEL(0)
EFIMD_FLOAT_KERNEL(1)
EFIMD_FLOAT_KERNEL(2)
#undef EFIMD_FLOAT_KERNEL

#define EFIMD_QUANTIZED_KERNELS(number)                                                         \
  __global__ void __launch_bounds__(32 * kFewWarps, 2)                                          \
      matmul_##number##_8(const u32* w, const u32* x, const float2* scales, const float* bias,  \
                          const u32*, float* result, MatmulSizes s) {                           \
    matmul_few<static_cast<Packed>(number)>(w, x, scales, bias, result, s);                     \
  }                                                                                             \
  __global__ void __launch_bounds__(4 * kTileRows)                                              \
      matmul_##number##_32(const u32* w, const u32* x, const float2* scales, const float* bias, \
                           const u32*, float* result, MatmulSizes s) {                          \
    matmul_tiles<static_cast<Packed>(number)>(w, x, scales, bias, result, s);                   \
  }
EFIMD_QUANTIZED_KERNELS(3)
EFIMD_QUANTIZED_KERNELS(4)
EFIMD_QUANTIZED_KERNELS(5)
EFIMD_QUANTIZED_KERNELS(6)
EFIMD_QUANTIZED_KERNELS(7)
EFIMD_QUANTIZED_KERNELS(8)
EFIMD_QUANTIZED_KERNELS(9)
EFIMD_QUANTIZED_KERNELS(10)
#undef EFIMD_QUANTIZED_KERNELS

#define EFIMD_HALVES_KERNELS(number)                                                             \
  __global__ void __launch_bounds__(32 * kHalvesWarps)                                           \
      matmul_halves_##number##_8(const u32* w, const u32* x, const float* bias,                  \
                                 const u32* experts, float* result, MatmulSizes s) {             \
    matmul_halves<static_cast<Packed>(number)>(w, x, bias, experts, result, s);                  \
  }                                                                                              \
  __global__ void __launch_bounds__(2 * kHalvesTileSmall) matmul_halves_##number##_64(           \
      const u32* w, const u32* x, const float* bias, const u32*, float* result, MatmulSizes s) { \
    matmul_halves_tiles<static_cast<Packed>(number), kHalvesTileSmall>(w, x, bias, result, s);   \
  }                                                                                              \
  __global__ void __launch_bounds__(2 * kHalvesTileLarge) matmul_halves_##number##_128(          \
      const u32* w, const u32* x, const float* bias, const u32*, float* result, MatmulSizes s) { \
    matmul_halves_tiles<static_cast<Packed>(number), kHalvesTileLarge>(w, x, bias, result, s);   \
  }
EFIMD_HALVES_KERNELS(1)
EFIMD_HALVES_KERNELS(2)
#undef EFIMD_HALVES_KERNELS

}  // extern "C"

}  // namespace efimd::kernels
