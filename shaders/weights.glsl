// Packed weights (engine/backend/gpu/packed_weights.h) in the buffer `w`, of the type kType. The
// file that includes this declares `w` and the push constants `s` with a RowLayout `row`. The type
// is a specialization constant: what another type would need is gone when the pipeline is made.
layout(constant_id = 0) const uint kType = 0;
const uint kF32 = 0, kF16 = 1, kBF16 = 2, kQ8_0 = 3, kQ4_0 = 4, kQ4_1 = 5, kQ5_0 = 6, kQ5_1 = 7, kQ4_K = 8, kQ5_K = 9,
           kQ6_K = 10;
const bool kQuantized = kType >= kQ8_0;
const uint kCenter = kType == kQ4_0 ? 8 : kType == kQ5_0 ? 16 : kType == kQ6_K ? 32 : 0;
const bool kMinimum = kType == kQ4_1 || kType == kQ5_1 || kType == kQ4_K || kType == kQ5_K;

// Quants 4i .. 4i + 3 of a group as signed bytes; `at` is the row's first word.
uint quad(uint at, uint group, uint i) {
  if (kType == kQ8_0) return w[at + group * 8 + i];
  uint quants = w[at + group * 4 + i / 2] >> (4 * (i % 2)) & 0x0F0F0F0Fu;
  if (kType == kQ5_0 || kType == kQ5_1 || kType == kQ5_K)
    quants |= (w[at + s.row.high_at + group] >> i & 0x01010101u) << 4;
  if (kType == kQ6_K)
    quants |= (w[at + s.row.high_at + group * 2 + i / 4] >> (2 * (i % 4)) & 0x03030303u) << 4;
  // Four subtractions at once: bit 7 of each byte keeps the borrow in.
  if (kCenter != 0) quants = ((quants | 0x80808080u) - kCenter * 0x01010101u) ^ 0x80808080u;
  return quants;
}

int byte_of(uint quants, uint i) { return bitfieldExtract(int(quants), int(8 * i), 8); }

// x, y: scales of the first and the last 16 weights of a group; z: its minimum. A weight is scale * quant - minimum.
vec3 scales_of(uint at, uint group) {
  if (kType == kQ4_1 || kType == kQ5_1) {
    const vec2 both = unpackHalf2x16(w[at + s.row.scale_at + group]);
    return vec3(both.x, both.x, -both.y);
  }
  const uint bits = w[at + s.row.scale_at + group / 2] >> (16 * (group % 2)) & 0xFFFFu;
  if (kType == kQ8_0 || kType == kQ4_0 || kType == kQ5_0) return vec3(vec2(unpackHalf2x16(bits).x), 0);
  const vec2 of_super = unpackHalf2x16(w[at + s.row.super_at + group / 8]);
  if (kType == kQ6_K)
    return vec3(of_super.x * vec2(byte_of(bits, 0), byte_of(bits, 1)), 0);
  return vec3(vec2(of_super.x * float(bits & 0xFFu)), of_super.y * float(bits >> 8));
}

float half_at(uint at, uint k) { return unpackHalf2x16(w[at + k / 2])[k % 2]; }

float bfloat_at(uint at, uint k) {
  return uintBitsToFloat((w[at + k / 2] >> (16 * (k % 2))) << 16);
}

float weight_at(uint at, uint k) {
  if (kType == kF32) return uintBitsToFloat(w[at + k]);
  if (kType == kF16) return half_at(at, k);
  if (kType == kBF16) return bfloat_at(at, k);
  const vec3 scales = scales_of(at, k / 32);
  const float quant = float(byte_of(quad(at, k / 32, k % 32 / 4), k % 4));
  precise const float weight = (k % 32 < 16 ? scales.x : scales.y) * quant - scales.z;
  return weight;
}
