#version 450
#extension GL_GOOGLE_include_directive : require
#include "head.glsl"
// Norms of heads, RoPE, and K and V into their pages.
//   qkv [T][H + 2 Hk][E] f32: queries, which stay there, times score_scale, then keys and values
//   rope_table [T][2][half]: cosines, sines
//   query_norm, key_norm [E]   kv [page][Hk][2] of kernels::Kv   places [T]: page * P + slot
//   grid (T, H + 2 Hk), threads 32.  To f16: nearest even, saturating.
layout(local_size_x = 32) in;
layout(std430, binding = 0) buffer Qkv { float qkv[]; };
layout(std430, binding = 1) readonly buffer RopeTable { float rope_table[]; };
layout(std430, binding = 2) readonly buffer QueryNorm { float query_norm[]; };
layout(std430, binding = 3) readonly buffer KeyNorm { float key_norm[]; };
layout(std430, binding = 4) writeonly buffer Pages { uint kv[]; };
layout(std430, binding = 5) readonly buffer Places { uint places[]; };
layout(push_constant) uniform Sizes {
  uint heads, kv_heads, head_width, half_width, adjacent, query_norm, key_norm;
  float epsilon, score_scale;
} s;
#include "kv.glsl"
#include "reduce.glsl"

shared float head[256];

// packHalf2x16 may round to zero; this rounds to nearest even.
uint to_half(float value) {
  const uint bits = floatBitsToUint(clamp(value, -65504.0, 65504.0));
  const uint sign = bits >> 16 & 0x8000u;
  const uint magnitude = bits & 0x7FFFFFFFu;
  if (magnitude < 0x33000000u) return sign;  // under half of the smallest
  const uint exponent = magnitude >> 23;
  const uint shift = exponent < 113 ? 126 - exponent : 13;  // below 2^-14 more bits fall
  const uint mantissa = exponent < 113 ? (magnitude & 0x7FFFFFu) | 0x800000u : magnitude - (112u << 23);
  const uint kept = mantissa >> shift;
  const uint rest = mantissa & ((1u << shift) - 1);
  const uint middle = 1u << (shift - 1);
  return sign | (kept + uint(rest > middle || (rest == middle && (kept & 1u) == 1u)));
}

void norm_head(uint lane, bool is_query) {
  if (is_query ? s.query_norm == 0 : s.key_norm == 0) return;
  float squares = 0;
  for (uint e = lane; e < s.head_width; e += 32) squares += head[e] * head[e];
  const float scale = 1 / sqrt(sum_threads(squares) / float(s.head_width) + s.epsilon);
  for (uint e = lane; e < s.head_width; e += 32)
    head[e] = head[e] * scale * (is_query ? query_norm[e] : key_norm[e]);
  barrier();
}

void rotate_head(uint lane, uint t) {
  for (uint i = lane; i < s.half_width; i += 32) {
    const float cosine = rope_table[t * 2 * s.half_width + i];
    const float sine = rope_table[(t * 2 + 1) * s.half_width + i];
    const uint first = s.adjacent != 0 ? 2 * i : i;
    const uint second = s.adjacent != 0 ? 2 * i + 1 : i + s.half_width;
    const float a = head[first], b = head[second];
    head[first] = a * cosine - b * sine;
    head[second] = a * sine + b * cosine;
  }
  barrier();
}

void store_halves(uint lane, uint block, uint slot) {
  const uint words = s.head_width / 2;
  for (uint pair = lane; pair < words; pair += 32)
    kv[block + slot * words + pair] = to_half(head[2 * pair]) | to_half(head[2 * pair + 1]) << 16;
}

float element_of(uint e) { return e < s.head_width ? head[e] : 0; }

// A scale is the smallest f16 that is no less than the largest of its 32 elements / 127. Elements
// past 60000 are cut to that. Its product with 127 is exact, so that every device finds the same
// one. Lane i makes word i of a group.
void store_bytes(uint lane, uint block, uint slot) {
  const uint words = quant_words_of(s.head_width), scale_words = scale_words_of(s.head_width);
  uint scales = 0;
  for (uint group = 0; group < 2 * scale_words; ++group) {
    const float largest = min(max_threads(abs(element_of(32 * group + lane))), 60000.0);
    uint bits = to_half(largest / 127);
    if (unpackHalf2x16(bits).x * 127 < largest) ++bits;  // the next half
    const float scale = unpackHalf2x16(bits).x;
    const float inverse = scale == 0 ? 0 : 1 / scale;
    if (lane < 8 && 8 * group + lane < words) {
      uint word = 0;
      for (uint byte = 0; byte < 4; ++byte) {
        const float value = element_of(32 * group + 4 * lane + byte);
        word |= (uint(int(clamp(roundEven(value * inverse), -127, 127))) & 0xFFu) << (8 * byte);
      }
      kv[block + slot * words + 8 * group + lane] = word;
    }
    scales |= bits << (16 * (group % 2));
    if (group % 2 == 0) continue;
    if (lane == 0) kv[block + 32 * words + slot * scale_words + group / 2] = scales;
    scales = 0;
  }
}

void main() {
  const uint t = gl_WorkGroupID.x, y = gl_WorkGroupID.y, lane = gl_LocalInvocationID.x;
  const bool is_query = y < s.heads;
  const bool is_key = !is_query && y < s.heads + s.kv_heads;
  const uint from = (t * (s.heads + 2 * s.kv_heads) + y) * s.head_width;
  for (uint e = lane; e < s.head_width; e += 32) head[e] = qkv[from + e];
  barrier();
  if (is_query || is_key) {
    norm_head(lane, is_query);
    rotate_head(lane, t);
  }
  if (is_query) {
    for (uint e = lane; e < s.head_width; e += 32) qkv[from + e] = head[e] * s.score_scale;
    return;
  }
  const uint page = places[t] / 32, slot = places[t] % 32;
  const uint block = ((page * s.kv_heads + (y - s.heads) % s.kv_heads) * 2 + (is_key ? 0 : 1)) * 32 * token_words_of(s.head_width);
  if (kForm == kQ8)
    store_bytes(lane, block, slot);
  else
    store_halves(lane, block, slot);
}
