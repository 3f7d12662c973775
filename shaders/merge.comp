#version 450
#extension GL_GOOGLE_include_directive : require
// Joins the splits of attention, in their order.
//   records [T][H][splits][2 + E]   rows [T] (position, ...)   result [T][H E] in its forms, times scale
//   grid (T, H E / 256), threads 64: four elements each
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Records { float records[]; };
layout(std430, binding = 1) readonly buffer Rows { uvec2 rows[]; };
layout(std430, binding = 2) writeonly buffer Floats { float result_floats[]; };
layout(std430, binding = 3) writeonly buffer Quants { uint result_quants[]; };
layout(std430, binding = 4) writeonly buffer Scales { vec2 result_scales[]; };
layout(push_constant) uniform Sizes {
  uint heads, head_width, split_pages, splits;
  float scale;
  uint floats, quants;
} s;
#include "forms.glsl"
#include "joined.glsl"

float merged(uint t, uint at) {
  const uint width = 2 + s.head_width;
  const uint begin = (t * s.heads + at / s.head_width) * s.splits * width;
  const uint count = s.splits == 1 ? 1 : rows[t].x / 32 / s.split_pages + 1;
  Joined joined = Joined(kNone, 0);
  float value = 0;
  for (uint i = 0; i < count; ++i) {
    const uint record = begin + i * width;
    const vec2 shares = take(joined, records[record], records[record + 1]);
    value = join(value, records[record + 2 + at % s.head_width], shares);
  }
  return value / joined.sum * s.scale;
}

void main() {
  const uint all = s.heads * s.head_width, t = gl_WorkGroupID.x;
  const uint first = 4 * (gl_WorkGroupID.y * gl_WorkGroupSize.x + gl_LocalInvocationID.x);
  const uint inside = first < all ? min(4, all - first) : 0;
  vec4 values = vec4(0);
  for (uint i = 0; i < inside; ++i) values[i] = merged(t, first + i);
  write_form(t * all + first, values, inside);
}
