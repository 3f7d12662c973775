#version 450
// Rows in groups of 32: scale = max|x| / 127, quant = nearest(x / scale); a group under 1e-30 is all zero.
//   x [...] f32   quants [.../4] four a word   scales [.../32] (scale, sum of quants * scale)
//   grid (groups / 64), a thread for each group
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) writeonly buffer Quants { uint quants[]; };
layout(std430, binding = 2) writeonly buffer Scales { vec2 scales[]; };
layout(push_constant) uniform Sizes { uint groups; } s;

void main() {
  const uint group = gl_GlobalInvocationID.x;
  if (group >= s.groups) return;
  float largest = 0;
  for (uint i = 0; i < 32; ++i) largest = max(largest, abs(x[group * 32 + i]));
  const bool zero = largest < 1e-30;
  const float inverse = zero ? 0 : 127 / largest;
  const float scale = zero ? 0 : largest / 127;
  int sum = 0;
  for (uint i = 0; i < 8; ++i) {
    uint word = 0;
    for (uint j = 0; j < 4; ++j) {
      const int level = int(clamp(roundEven(x[group * 32 + 4 * i + j] * inverse), -127, 127));
      sum += level;
      word |= (uint(level) & 0xFFu) << (8 * j);
    }
    quants[group * 8 + i] = word;
  }
  scales[group] = vec2(scale, float(sum) * scale);
}
