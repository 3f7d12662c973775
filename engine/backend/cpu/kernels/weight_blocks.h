#pragma once

#include <cstdint>

#include "engine/backend/cpu/kernels/kernels.h"

namespace efimd::engine::cpu {

// Blocks of quantized weights as files hold them, by byte offset; f16 and bit fields little-endian.
// A weight is scale * quant - minimum, with the scale and minimum of its group.
//
//   Q8_0   34 bytes, 32 weights    0 f16 d, 2 int8 q[32]
//                                  d * q
//   Q4_0   18 bytes, 32 weights    0 f16 d, 2 q[16]: byte i has weight i low, weight 16 + i high
//                                  d * (q - 8)
//   Q4_1   20 bytes, 32 weights    0 f16 d, 2 f16 m, 4 q[16] as Q4_0
//                                  d * q + m
//   Q5_0   22 bytes, 32 weights    0 f16 d, 2 u32 h: bit i is bit 4 of weight i, 6 q[16] as Q4_0
//                                  d * (q - 16)
//   Q5_1   24 bytes, 32 weights    0 f16 d, 2 f16 m, 4 u32 h, 8 q[16]
//                                  d * q + m
//   Q4_K  144 bytes, 256 weights   0 f16 d, 2 f16 dmin, 4 s[12]: eight 6-bit scales and minimums,
//                                  16 q[4][32]: byte i of part p has weight 64p + i low, 64p + 32 + i high
//                                  d * scale[w / 32] * q - dmin * minimum[w / 32]
//   Q5_K  176 bytes, 256 weights   as Q4_K, with 16 h[32]: bit j of byte i is bit 4 of weight 32j + i,
//                                  48 q[4][32]
//   Q6_K  210 bytes, 256 weights   0 q[2][64], 128 h[2][32], 192 int8 scale[16], 208 f16 d; half p, i < 32:
//                                  weight 128p + 32j + i has bits 0-3 in q[p][32 (j % 2) + i], low for j < 2,
//                                  bits 4-5 at bit 2j of h[p][i]
//                                  d * scale[w / 16] * (q - 32)
//   s      bytes 0-3: scale 0-3 in bits 0-5, bits 4-5 of scale 4-7 in bits 6-7; bytes 4-7 the same of the
//          minimums; bytes 8-11: bits 0-3 of scale 4-7 low, of minimum 4-7 high
//
// Source: the public description of the format; agreement with another engine is tested in tests/peer.

/// Weights from run to run: the shortest stretch that shares a scale in every type.
inline constexpr int kRunWeights = 16;

/// kRunWeights consecutive weights: scale * quants[i] - minimum.
struct WeightRun {
  float scale;
  float minimum;
  std::int8_t quants[kRunWeights];
};

bool is_quantized(WeightType type);
/// Weights 16 * run .. 16 * run + 15 of a row of a quantized type.
WeightRun read_run(WeightType type, const unsigned char* row, int run);

}  // namespace efimd::engine::cpu
