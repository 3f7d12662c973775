#version 450
#extension GL_GOOGLE_include_directive : require
#include "head.glsl"
// Norms of chosen rows of x: RMS, or layer norm with its bias.
//   rows [N] of x   x [.][D] f32   weight, bias [D]   result [N][D]
//   grid (N), threads 64.  Sums in f32, each thread its share, then over the threads.
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Rows { uint rows[]; };
layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(std430, binding = 2) readonly buffer Weight { float weight[]; };
layout(std430, binding = 3) readonly buffer Bias { float bias[]; };
layout(std430, binding = 4) writeonly buffer Out { float result[]; };
layout(push_constant) uniform Sizes {
  uint width, layer;
  float epsilon;
} s;
#include "reduce.glsl"

void main() {
  const uint from = rows[gl_WorkGroupID.x] * s.width;
  const uint to = gl_WorkGroupID.x * s.width;
  const uint lane = gl_LocalInvocationID.x;
  float mean = 0;
  if (s.layer != 0) {
    float sum = 0;
    for (uint k = lane; k < s.width; k += gl_WorkGroupSize.x) sum += x[from + k];
    mean = sum_threads(sum) / float(s.width);
  }
  float squares = 0;
  for (uint k = lane; k < s.width; k += gl_WorkGroupSize.x)
    squares += (x[from + k] - mean) * (x[from + k] - mean);
  const float scale = 1 / sqrt(sum_threads(squares) / float(s.width) + s.epsilon);
  for (uint k = lane; k < s.width; k += gl_WorkGroupSize.x) {
    const float value = (x[from + k] - mean) * scale * weight[k];
    result[to + k] = s.layer != 0 ? value + bias[k] : value;
  }
}
