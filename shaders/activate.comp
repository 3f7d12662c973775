#version 450
#extension GL_GOOGLE_include_directive : require
// activation(gate) * up * scale, or activation(x) * scale, element by element.
//   x [T][2 F] f32, gates first, or [T][F]   result [T][F] in its forms
//   grid (F / 256, T), threads 64: four elements each
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) writeonly buffer Floats { float result_floats[]; };
layout(std430, binding = 2) writeonly buffer Quants { uint result_quants[]; };
layout(std430, binding = 3) writeonly buffer Scales { vec2 result_scales[]; };
layout(push_constant) uniform Sizes {
  uint width, gated, gelu;
  float scale;
  uint floats, quants;
} s;
#include "forms.glsl"

float activated(uint row, uint k) {
  const uint from = row * s.width * (s.gated != 0 ? 2 : 1) + k;
  const float gate = x[from];
  // 1.59576912 is 2 sqrt(2 / pi).
  const float slope = s.gelu != 0 ? 1.59576912 * (gate + 0.044715 * gate * gate * gate) : gate;
  const float value = gate / (1 + exp(-slope));
  return (s.gated != 0 ? value * x[from + s.width] : value) * s.scale;
}

void main() {
  const uint row = gl_WorkGroupID.y, first = 4 * gl_GlobalInvocationID.x;
  const uint inside = first < s.width ? min(4, s.width - first) : 0;
  vec4 values = vec4(0);
  for (uint i = 0; i < inside; ++i) values[i] = activated(row, first + i);
  write_form(row * s.width + first, values, inside);
}
