#version 450
#extension GL_GOOGLE_include_directive : require
#include "row_layout.glsl"
// Embedding rows of the tokens: x = row * scale.
//   tokens [T]   w  rows first .. last - 1 of the embedding   x [T][D] f32
//   grid (T), threads 64.  Tokens of other parts are left to these.
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Tokens { uint tokens[]; };
layout(std430, binding = 1) readonly buffer Weights { uint w[]; };
layout(std430, binding = 2) buffer Out { float x[]; };
layout(push_constant) uniform Sizes {
  RowLayout row;
  uint width, first, last;
  float scale;
} s;
#include "weights.glsl"

void main() {
  const uint t = gl_WorkGroupID.x;
  const uint token = tokens[t];
  if (token < s.first || token >= s.last) return;
  const uint at = (token - s.first) * s.row.row_words;
  for (uint k = gl_LocalInvocationID.x; k < s.width; k += gl_WorkGroupSize.x)
    x[t * s.width + k] = weight_at(at, k) * s.scale;
}
