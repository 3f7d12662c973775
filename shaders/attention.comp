#version 450
#extension GL_GOOGLE_include_directive : require
#include "head.glsl"
// Causal attention of one row and head over one split of its pages, or over all of them, split by split.
//   qkv [T][H + 2 Hk][E] f32: queries in front, rotated, scaled   kv [page][Hk][2] of kernels::Kv   pages: page tables
//   rows [T] (position, where its table begins)   records [T][H][splits][2 + E]: m, l, sum of exp(score - m) * v
//   key_bias [Hk][E], turns as below: only 8 bits read them, where s.half_width is not 0
//   grid (T, H, splits), threads 32: a lane scores one token of a page, then holds elements lane, lane + 32, ...
//   E even, <= 256.  Splits behind the row are left alone.  Softmax online, in f32.
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer Qkv { float qkv[]; };
layout(std430, binding = 1) readonly buffer Pages { uint kv[]; };
layout(std430, binding = 2) readonly buffer Tables { uint pages[]; };
layout(std430, binding = 3) readonly buffer Rows { uvec2 rows[]; };
layout(std430, binding = 4) writeonly buffer Records { float records[]; };
layout(std430, binding = 5) readonly buffer KeyBias { float key_bias[]; };
layout(std430, binding = 6) readonly buffer Turns { vec2 turns[]; };
layout(push_constant) uniform Sizes {
  uint heads, kv_heads, head_width, window, split_pages, splits, half_width, adjacent;
} s;
#include "kv.glsl"
#include "joined.glsl"
#include "reduce.glsl"

shared float query[256];    // with zeros up to a multiple of 4
shared float weights[256];  // [32]; in 8 bits [8][32]: times the scales of the value's groups
shared vec2 turned[128];

float score_of(uint key) {
  float score = 0;
  for (uint pair = 0; pair < s.head_width / 2; ++pair) {
    const vec2 both = unpackHalf2x16(kv[key + pair]);
    score += query[2 * pair] * both.x;
    score += query[2 * pair + 1] * both.y;
  }
  return score;
}

float byte_of(uint word, uint i) { return float(bitfieldExtract(int(word), int(8 * i), 8)); }

float half_of(uint word, uint i) { return unpackHalf2x16(word)[i]; }

// Each 32 products are summed before their scale: f32, with no rounding of an element to f16.
float score_of_bytes(uint quants, uint scales) {
  const uint words = quant_words_of(s.head_width);
  float score = 0;
  for (uint group = 0; group * 8 < words; ++group) {
    float sum = 0;
    for (uint i = group * 8; i < min(group * 8 + 8, words); ++i) {
      const uint word = kv[quants + i];
      for (uint byte = 0; byte < 4; ++byte) sum += query[4 * i + byte] * byte_of(word, byte);
    }
    score += half_of(kv[scales + group / 2], group % 2) * sum;
  }
  return score;
}

// The part of the scores that a bias b of keys has, for keys that are kept without it. RoPE is linear, so that it is
//   q . R(c) b = sum over pairs i of  x_i cos(c w_i) + y_i sin(c w_i)
//   x_i = q[first] b[first] + q[second] b[second]     y_i = q[second] b[first] - q[first] b[second]
// and with c = P * page + slot the pairs (x, y) are turned once a page, by all lanes, then by each lane for its slot.
// Elements that are not rotated add the same to the scores of all tokens, which moves no weight: they are left out.
//   turns: (cosine, sine) [half][P] of the slots, times RoPE's magnitude, then [page of the sequence][half]
vec2 bias_pair(uint bias, uint i) {
  const uint first = s.adjacent != 0 ? 2 * i : i;
  const uint second = s.adjacent != 0 ? 2 * i + 1 : i + s.half_width;
  const vec2 of_query = vec2(query[first], query[second]);
  const vec2 of_bias = vec2(key_bias[bias + first], key_bias[bias + second]);
  return vec2(dot(of_query, of_bias), of_query.y * of_bias.x - of_query.x * of_bias.y);
}

void turn_to(uint page, vec2 pairs[4], uint lane) {
  for (uint j = 0; j < 4 && lane + 32 * j < s.half_width; ++j) {
    const uint i = lane + 32 * j;
    const vec2 turn = turns[(32 + page) * s.half_width + i];
    turned[i] = vec2(dot(pairs[j], turn), pairs[j].y * turn.x - pairs[j].x * turn.y);
  }
  barrier();
}

float bias_score(uint slot) {
  float sum = 0;
  for (uint i = 0; i < s.half_width; ++i) sum += dot(turned[i], turns[i * 32 + slot]);
  return sum;
}

// Slots that hold nothing yet have scales of any bits.
void share_weight(float weight, bool seen, uint scales, uint lane) {
  for (uint group = 0; group < (s.head_width + 31) / 32; ++group)
    weights[group * 32 + lane] = seen ? weight * half_of(kv[scales + group / 2], group % 2) : 0;
}

void main() {
  const uint t = gl_WorkGroupID.x, h = gl_WorkGroupID.y, split = gl_WorkGroupID.z;
  const uint lane = gl_LocalInvocationID.x;
  const uint visible = rows[t].x + 1;
  const uint hidden = visible > s.window ? visible - s.window : 0;
  const uint first_page = split * s.split_pages;
  if (first_page * 32 >= visible) return;
  const bool whole = s.splits == 1;
  const uint behind = (visible + 31) / 32;
  const uint last_page = whole ? behind : min(first_page + s.split_pages, behind);
  const uint kv_head = h / (s.heads / s.kv_heads);
  const uint half_page = 32 * token_words_of(s.head_width);  // words of a page's K or V of one head
  const uint words = quant_words_of(s.head_width);

  for (uint e = lane; e < 4 * words; e += 32)
    query[e] = e < s.head_width ? qkv[(t * (s.heads + 2 * s.kv_heads) + h) * s.head_width + e] : 0;
  barrier();
  vec2 bias_pairs[4];
  if (kForm == kQ8)
    for (uint j = 0; j < 4 && lane + 32 * j < s.half_width; ++j)
      bias_pairs[j] = bias_pair(kv_head * s.head_width, lane + 32 * j);
  float most = kNone, sum = 0;
  Joined joined = Joined(kNone, 0);
  float acc[8], all[8];
  for (uint i = 0; i < 8; ++i) acc[i] = all[i] = 0;
  for (uint page = first_page; page < last_page; ++page) {
    if (whole && page % s.split_pages == 0) {
      const vec2 shares = take(joined, most, sum);
      for (uint i = 0; i < 8; ++i) all[i] = join(all[i], acc[i], shares);
      for (uint i = 0; i < 8; ++i) acc[i] = 0;
      most = kNone;
      sum = 0;
    }
    const uint begin = max(hidden, page * 32), end = min(visible, page * 32 + 32);
    if (begin >= end) continue;
    const uint key = (pages[rows[t].y + page] * s.kv_heads + kv_head) * 2 * half_page;
    const uint value = key + half_page;
    const uint token = page * 32 + lane;
    const bool seen = token >= begin && token < end;
    float score = kNone;
    if (kForm == kQ8) {
      if (s.half_width != 0) turn_to(page, bias_pairs, lane);
      if (seen)
        score = score_of_bytes(key + lane * words, key + 32 * words + lane * scale_words_of(s.head_width)) +
                bias_score(lane);
    } else if (seen) {
      score = score_of(key + lane * (s.head_width / 2));
    }
    const float raised = max(most, max_threads(score));
    const float kept = most == kNone ? 0 : exp(most - raised);
    const float weight = seen ? exp(score - raised) : 0;
    if (kForm == kQ8)
      share_weight(weight, seen, value + 32 * words + lane * scale_words_of(s.head_width), lane);
    else
      weights[lane] = weight;
    sum = sum * kept + sum_threads(weight);  // its barriers also publish the weights
    most = raised;
    for (uint i = 0; i < 8 && lane + 32 * i < s.head_width; ++i) {
      const uint e = lane + 32 * i;
      float mixed = acc[i] * kept;
      for (uint c = begin - page * 32; c < end - page * 32; ++c)
        mixed += kForm == kQ8 ? weights[i * 32 + c] * byte_of(kv[value + c * words + e / 4], e % 4)
                              : weights[c] * half_of(kv[value + c * (s.head_width / 2) + e / 2], e % 2);
      acc[i] = mixed;
    }
    barrier();
  }
  if (whole) {
    const vec2 shares = take(joined, most, sum);
    for (uint i = 0; i < 8; ++i) acc[i] = join(all[i], acc[i], shares);
    most = joined.most;
    sum = joined.sum;
  }
  const uint record = ((t * s.heads + h) * s.splits + split) * (2 + s.head_width);
  if (lane == 0) {
    records[record] = most;
    records[record + 1] = sum;
  }
  for (uint i = 0; i < 8 && lane + 32 * i < s.head_width; ++i) records[record + 2 + lane + 32 * i] = acc[i];
}
