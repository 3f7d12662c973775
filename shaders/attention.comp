#version 450
#extension GL_GOOGLE_include_directive : require
#include "head.glsl"
// Causal attention of one row and head over one split of its pages.
//   q [T][H][E] f32, rotated, scaled   kv [page][Hk][2][P][E] f16, two a word   pages: page tables
//   rows [T] (position, where its table begins)   records [T][H][splits][2 + E]: m, l, sum of exp(score - m) * v
//   grid (T, H, splits), threads 32: a lane scores one token of a page, then holds elements lane, lane + 32, ...
//   E even, <= 256.  Splits behind the row are left alone.  Softmax online, in f32.
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer Q { float q[]; };
layout(std430, binding = 1) readonly buffer Pages { uint kv[]; };
layout(std430, binding = 2) readonly buffer Tables { uint pages[]; };
layout(std430, binding = 3) readonly buffer Rows { uvec2 rows[]; };
layout(std430, binding = 4) writeonly buffer Records { float records[]; };
layout(push_constant) uniform Sizes {
  uint heads, kv_heads, head_width, window, split_pages, splits;
} s;
#include "reduce.glsl"

const float kNone = -1.0 / 0.0;
shared float query[256];
shared float weights[32];

float score_of(uint key) {
  float score = 0;
  for (uint pair = 0; pair < s.head_width / 2; ++pair) {
    const vec2 both = unpackHalf2x16(kv[key + pair]);
    score += query[2 * pair] * both.x;
    score += query[2 * pair + 1] * both.y;
  }
  return score;
}

void main() {
  const uint t = gl_WorkGroupID.x, h = gl_WorkGroupID.y, split = gl_WorkGroupID.z;
  const uint lane = gl_LocalInvocationID.x;
  const uint visible = rows[t].x + 1;
  const uint hidden = visible > s.window ? visible - s.window : 0;
  const uint first_page = split * s.split_pages;
  if (first_page * 32 >= visible) return;
  const uint last_page = min(first_page + s.split_pages, (visible + 31) / 32);
  const uint kv_head = h / (s.heads / s.kv_heads);
  const uint half_page = 32 * (s.head_width / 2);  // words of a page's K or V of one head

  for (uint e = lane; e < s.head_width; e += 32) query[e] = q[(t * s.heads + h) * s.head_width + e];
  barrier();
  float most = kNone, sum = 0;
  float acc[8];
  for (uint i = 0; i < 8; ++i) acc[i] = 0;
  for (uint page = first_page; page < last_page; ++page) {
    const uint begin = max(hidden, page * 32), end = min(visible, page * 32 + 32);
    if (begin >= end) continue;
    const uint key = (pages[rows[t].y + page] * s.kv_heads + kv_head) * 2 * half_page;
    const uint token = page * 32 + lane;
    const bool seen = token >= begin && token < end;
    const float score = seen ? score_of(key + lane * (s.head_width / 2)) : kNone;
    const float raised = max(most, max_threads(score));
    const float kept = most == kNone ? 0 : exp(most - raised);
    const float weight = seen ? exp(score - raised) : 0;
    weights[lane] = weight;
    sum = sum * kept + sum_threads(weight);  // its barriers also publish the weights
    most = raised;
    for (uint i = 0; i < 8 && lane + 32 * i < s.head_width; ++i) {
      const uint e = lane + 32 * i;
      float value = acc[i] * kept;
      for (uint c = begin - page * 32; c < end - page * 32; ++c)
        value += weights[c] * unpackHalf2x16(kv[key + half_page + c * (s.head_width / 2) + e / 2])[e % 2];
      acc[i] = value;
    }
    barrier();
  }
  const uint record = ((t * s.heads + h) * s.splits + split) * (2 + s.head_width);
  if (lane == 0) {
    records[record] = most;
    records[record + 1] = sum;
  }
  for (uint i = 0; i < 8 && lane + 32 * i < s.head_width; ++i) records[record + 2 + lane + 32 * i] = acc[i];
}
