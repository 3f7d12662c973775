#version 450
#extension GL_GOOGLE_include_directive : require
#include "head.glsl"
#ifdef INTEGER_DOT
#extension GL_EXT_spirv_intrinsics : require
// OpSDot over four signed bytes a word (SPV_KHR_integer_dot_product); 0: PackedVectorFormat4x8Bit.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int packed_dot(uint a, uint b, spirv_literal int format);
#endif
#include "row_layout.glsl"
// Rows of a weight matrix times rows of inputs: out[t][first + n] = (or +=) w[n] . x[t / share] (+ bias[first + n]).
//   w  part of a packed matrix [N][K]; with experts [experts][N][K]   x  [T / share][K]: f32 bits for float types, for
//   quantized ones four quants a word   scales [T / share][K/32]   bias [..]   experts [T]   result [T][out_stride]
//   grid (min(N, 32768), T / kTile, N / 32768), threads 32: lane l takes groups l, l + 32, ... of 32 weights
//   must read the part once for each kTile tokens: bound by bandwidth.  Quantized: products of a group in integers,
//   exact; then f32. A token's sum has the same order for any kTile and T.
layout(local_size_x = 32) in;
layout(constant_id = 1) const uint kTile = 1;
layout(std430, binding = 0) readonly buffer Weights { uint w[]; };
layout(std430, binding = 1) readonly buffer X { uint x[]; };
layout(std430, binding = 2) readonly buffer Scales { vec2 scales[]; };
layout(std430, binding = 3) readonly buffer Bias { float bias[]; };
layout(std430, binding = 4) readonly buffer Experts { uint experts[]; };
layout(std430, binding = 5) buffer Out { float result[]; };
layout(push_constant) uniform Sizes {
  RowLayout row;
  uint cols, rows, first, out_stride, tokens, add, biased, experts, share;
} s;
#include "weights.glsl"
#include "reduce.glsl"

float sums[8];  // the first kTile are in use

int dot4(uint a, uint b) {
#ifdef INTEGER_DOT
  return packed_dot(a, b, 0);
#else
  return byte_of(a, 0) * byte_of(b, 0) + byte_of(a, 1) * byte_of(b, 1) + byte_of(a, 2) * byte_of(b, 2) +
         byte_of(a, 3) * byte_of(b, 3);
#endif
}

void add_group(uint at, uint group, uint token, uint count) {
  uint quants[8];
  for (uint i = 0; i < 8; ++i) quants[i] = quad(at, group, i);
  const vec3 weight = scales_of(at, group);
  for (uint t = 0; t < kTile && t < count; ++t) {
    const uint group_of_x = (token + t) / s.share * (s.cols / 32) + group;
    int low = 0, high = 0;
    for (uint i = 0; i < 4; ++i) {
      low += dot4(quants[i], x[group_of_x * 8 + i]);
      high += dot4(quants[4 + i], x[group_of_x * 8 + 4 + i]);
    }
    const vec2 of_x = scales[group_of_x];
    precise const float products = kType == kQ6_K
        ? float(low) * (weight.x * of_x.x) + float(high) * (weight.y * of_x.x)
        : float(low + high) * (weight.x * of_x.x);
    sums[t] += products;
    // By the type, not by the value, because Intel's compiler unrolls no loop with such a branch,
    // and compares for every sums[t].
    if (kMinimum) {
      precise const float minimum = weight.z * of_x.y;
      sums[t] -= minimum;
    }
  }
}

void add_float(uint at, uint k, uint token, uint count) {
  const float weight = weight_at(at, k);
  for (uint t = 0; t < kTile && t < count; ++t) {
    precise const float product = weight * uintBitsToFloat(x[(token + t) / s.share * s.cols + k]);
    sums[t] += product;
  }
}

void main() {
  const uint n = gl_WorkGroupID.z * 32768 + gl_WorkGroupID.x;
  const uint lane = gl_LocalInvocationID.x;
  const uint token = gl_WorkGroupID.y * kTile;
  if (n >= s.rows) return;
  const uint row = s.experts != 0 ? experts[token] * s.rows + n : n;
  const uint at = row * s.row.row_words;
  const uint count = s.tokens - token;
  for (uint t = 0; t < kTile; ++t) sums[t] = 0;
  if (kQuantized)
    for (uint group = lane; group < s.cols / 32; group += 32) add_group(at, group, token, count);
  else
    for (uint k = lane; k < s.cols; k += 32) add_float(at, k, token, count);
  for (uint t = 0; t < kTile && t < count; ++t) {
    const float sum = sum_threads(sums[t]);
    // Not by `continue`: the threads are to come together again for the next sum.
    if (lane == 0) {
      const uint to = (token + t) * s.out_stride + s.first + n;
      const float product = s.biased != 0 ? sum + bias[s.first + n] : sum;
      result[to] = s.add != 0 ? result[to] + product : product;
    }
  }
}
