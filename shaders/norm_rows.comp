#version 450
#extension GL_GOOGLE_include_directive : require
#include "head.glsl"
// Norms of chosen rows of x: RMS, or layer norm with its bias.
//   rows [N] of x   x [.][D] f32   weight, bias [D]   result [N][D] in its forms
//   grid (N), threads 64.  Sums in f32, each thread its share, then over the threads.
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Rows { uint rows[]; };
layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(std430, binding = 2) readonly buffer Weight { float weight[]; };
layout(std430, binding = 3) readonly buffer Bias { float bias[]; };
layout(std430, binding = 4) writeonly buffer Floats { float result_floats[]; };
layout(std430, binding = 5) writeonly buffer Quants { uint result_quants[]; };
layout(std430, binding = 6) writeonly buffer Scales { vec2 result_scales[]; };
layout(push_constant) uniform Sizes {
  uint width, layer;
  float epsilon;
  uint floats, quants;
} s;
#include "forms.glsl"
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
  for (uint begin = 0; begin < s.width; begin += 4 * gl_WorkGroupSize.x) {
    const uint first = begin + 4 * lane;
    const uint inside = first < s.width ? min(4, s.width - first) : 0;
    vec4 values = vec4(0);
    for (uint i = 0; i < inside; ++i) {
      const uint k = first + i;
      const float value = (x[from + k] - mean) * scale * weight[k];
      values[i] = s.layer != 0 ? value + bias[k] : value;
    }
    write_form(to + first, values, inside);
  }
}
