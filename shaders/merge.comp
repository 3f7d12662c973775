#version 450
#extension GL_GOOGLE_include_directive : require
// Joins the splits of attention, in their order.
//   partials [T][H][splits][2 + E]   rows [T] (position, ...)   result [T][H E] in its forms, times scale
//   grid (T, H E / 256), threads 64: four elements each
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Partials { float partials[]; };
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

// Elements at .. at + count - 1 of a row, of one head.
vec4 merged(uint t, uint at, uint count) {
  const uint width = 2 + s.head_width;
  const uint begin = (t * s.heads + at / s.head_width) * s.splits * width, element = at % s.head_width;
  const uint all = s.splits == 1 ? 1 : rows[t].x / 32 / s.split_pages + 1;
  Joined joined = Joined(kNone, 0);
  vec4 values = vec4(0);
  // A partial takes as long to come as a batch of them.
  const uint kBatch = 8;
  for (uint first = 0; first < all; first += kBatch) {
    vec2 softmax[kBatch];
    vec4 next[kBatch];
    for (uint i = 0; i < kBatch; ++i) {
      const uint partial = begin + min(first + i, all - 1) * width;
      softmax[i] = vec2(partials[partial], partials[partial + 1]);
      for (uint j = 0; j < 4; ++j) next[i][j] = partials[partial + 2 + element + min(j, count - 1)];
    }
    for (uint i = 0; i < kBatch; ++i) {
      const bool there = first + i < all;
      Joined with_next = joined;
      const vec4 joined_values = join(values, next[i], take(with_next, softmax[i].x, softmax[i].y));
      joined.most = there ? with_next.most : joined.most;
      joined.sum = there ? with_next.sum : joined.sum;
      values = there ? joined_values : values;
    }
  }
  return values / joined.sum * s.scale;
}

void main() {
  const uint all = s.heads * s.head_width, t = gl_WorkGroupID.x;
  const uint first = 4 * (gl_WorkGroupID.y * gl_WorkGroupSize.x + gl_LocalInvocationID.x);
  const uint inside = first < all ? min(4, all - first) : 0;
  vec4 values = vec4(0);
  // Heads of an odd number of pairs may meet within the four.
  const uint in_head = inside == 0 ? 0 : min(inside, s.head_width - first % s.head_width);
  if (in_head > 0) values = merged(t, first, in_head);
  if (in_head < inside) {
    const vec4 rest = merged(t, first + in_head, inside - in_head);
    for (uint i = in_head; i < inside; ++i) values[i] = rest[i - in_head];
  }
  write_form(t * all + first, values, inside);
}
