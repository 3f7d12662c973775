#version 450
// x += the weighted sum of a row's experts, likeliest first.
//   parts [T][used][D]   weights [T][used]   x [T][D]
//   grid (T D / 64), a thread for each element
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Parts { float parts[]; };
layout(std430, binding = 1) readonly buffer Weights { float weights[]; };
layout(std430, binding = 2) buffer X { float x[]; };
layout(push_constant) uniform Sizes { uint rows, width, used; } s;

void main() {
  const uint at = gl_GlobalInvocationID.x;
  if (at >= s.rows * s.width) return;
  const uint row = at / s.width, k = at % s.width;
  float value = x[at];
  for (uint rank = 0; rank < s.used; ++rank)
    value += weights[row * s.used + rank] * parts[(row * s.used + rank) * s.width + k];
  x[at] = value;
}
