#version 450
#extension GL_GOOGLE_include_directive : require
#include "head.glsl"
// Causal attention of a tile of heads of tokens, of one KV head, over one split of their pages, or
// over all of them, split by split. Rows are (token, head of its G = H / Hk); those of a tile share
// their reading.
//   qkv [T][H + 2 Hk][E] f32: queries in front, rotated, scaled   kv [page][Hk][2] of kernels::Kv   pages: page tables
//   rows [T] (position, where its table begins)   partials [T][H][splits][2 + E]: m, l, sum of exp(score - m) * v
//   key_bias [Hk][E], rope_table as below: only 8 bits read them, where s.half_width is not 0
//   grid (T G / kTile, Hk, splits), threads 32: a lane scores one token of a page, then holds elements lane, lane + 32, ...
//   A kTile above 1 is a variant (engine/backend/gpu/variants.h). Why it should be faster, with 4 rows and heads of 64:
//   scores of a page take a lane 64 fma a row, and once for all rows 8 loads and 64 conversions: 328 operations, of single
//   rows 544, 1.7 times as many. Values take 12 instead of 24. K and V are read once, not four times.
//   E even, <= 256. Splits past a row are left alone. Softmax online, in f32. A row's bits are the
//   same in every tile, because tokens that it does not see weigh 0, which adds nothing.
layout(local_size_x = 32) in;
layout(constant_id = 1) const uint kTile = 1;    // rows
layout(constant_id = 2) const uint kPieces = 8;  // of 32 elements
layout(std430, binding = 0) readonly buffer Qkv { float qkv[]; };
layout(std430, binding = 1) readonly buffer Pages { uint kv[]; };
layout(std430, binding = 1) readonly buffer FourPages { uvec4 kv_fours[]; };
layout(std430, binding = 2) readonly buffer Tables { uint pages[]; };
layout(std430, binding = 3) readonly buffer Rows { uvec2 rows[]; };
layout(std430, binding = 4) writeonly buffer Partials { float partials[]; };
layout(std430, binding = 5) readonly buffer KeyBias { float key_bias[]; };
layout(std430, binding = 6) readonly buffer RopeTable { vec2 rope_table[]; };
layout(push_constant) uniform Sizes {
  uint heads, kv_heads, head_width, window, split_pages, splits, half_width, adjacent, tokens;
} s;
#include "kv.glsl"
#include "joined.glsl"

const uint kTileMax = 4;  // what is reduced at once
shared vec4 queries[kTile * kPieces * 8];  // with zeros after E
shared float weights[kTile * 32];
shared vec2 rotated[kTile * kPieces * 16];

#define REDUCED vec4  // an element for each row
#include "reduce.glsl"

float query_of(uint r, uint e) { return queries[(r * kPieces * 32 + e) / 4][e % 4]; }
float byte_of(uint word, uint i) { return float(bitfieldExtract(int(word), int(8 * i), 8)); }
float half_of(uint word, uint i) { return unpackHalf2x16(word)[i]; }

// fma by name: what a compiler contracts may differ from tile to tile.
float add_four(float sum, vec4 query, vec4 key) {
  return fma(query.w, key.w, fma(query.z, key.z, fma(query.y, key.y, fma(query.x, key.x, sum))));
}

float scores[kTileMax];  // of this lane's token

void score_halves(uint key) {
  for (uint r = 0; r < kTile; ++r) scores[r] = 0;
  const uint words = s.head_width / 2;
  if (words % 4 == 0) {
    for (uint word = 0; word < words; word += 4) {
      const uvec4 four = kv_fours[(key + word) / 4];
      const vec4 first = vec4(unpackHalf2x16(four.x), unpackHalf2x16(four.y));
      const vec4 second = vec4(unpackHalf2x16(four.z), unpackHalf2x16(four.w));
      for (uint r = 0; r < kTile; ++r) {
        const uint at = r * kPieces * 8 + word / 2;
        scores[r] = add_four(add_four(scores[r], queries[at], first), queries[at + 1], second);
      }
    }
    return;
  }
  for (uint word = 0; word < words; word += 2) {
    const vec2 last = word + 1 < words ? unpackHalf2x16(kv[key + word + 1]) : vec2(0);
    const vec4 four = vec4(unpackHalf2x16(kv[key + word]), last);
    for (uint r = 0; r < kTile; ++r)
      scores[r] = add_four(scores[r], queries[r * kPieces * 8 + word / 2], four);
  }
}

// Each 32 products are summed before their scale: f32, with no rounding of an element to f16.
void score_bytes(uint quants, uint scales) {
  for (uint r = 0; r < kTile; ++r) scores[r] = 0;
  const uint words = quant_words_of(s.head_width);
  for (uint group = 0; group * 8 < words; ++group) {
    float sums[kTileMax];
    for (uint r = 0; r < kTile; ++r) sums[r] = 0;
    for (uint i = group * 8; i < min(group * 8 + 8, words); ++i) {
      const uint word = kv[quants + i];
      const vec4 four = vec4(byte_of(word, 0), byte_of(word, 1), byte_of(word, 2), byte_of(word, 3));
      for (uint r = 0; r < kTile; ++r)
        sums[r] = add_four(sums[r], queries[r * kPieces * 8 + i], four);
    }
    const float scale = half_of(kv[scales + group / 2], group % 2);
    for (uint r = 0; r < kTile; ++r) scores[r] = fma(scale, sums[r], scores[r]);
  }
}

// The part of the scores that a bias b of keys has, for keys that are kept without it. RoPE is linear, so that it is
//   q . R(c) b = sum over pairs i of  x_i cos(c w_i) + y_i sin(c w_i)
//   x_i = q[first] b[first] + q[second] b[second]     y_i = q[second] b[first] - q[first] b[second]
// and with c = P * page + slot the pairs (x, y) are rotated once a page, by all lanes, then by each lane for its slot.
// Elements that are not rotated add the same to the scores of all tokens. That moves no weight, so
//   they are left out. rope_table: (cosine, sine) [half][P] of the slots, times RoPE's magnitude,
//   then [page of the sequence][half]
vec2 bias_pair(uint r, uint bias, uint i) {
  const uint first = s.adjacent != 0 ? 2 * i : i;
  const uint second = s.adjacent != 0 ? 2 * i + 1 : i + s.half_width;
  const vec2 of_query = vec2(query_of(r, first), query_of(r, second));
  const vec2 of_bias = vec2(key_bias[bias + first], key_bias[bias + second]);
  return vec2(fma(of_query.x, of_bias.x, of_query.y * of_bias.y),
              fma(of_query.y, of_bias.x, -(of_query.x * of_bias.y)));
}

void turn_to(uint page, uint bias, uint lane) {
  barrier();  // nobody reads the last page's any more
  for (uint i = lane; i < s.half_width; i += 32) {
    const vec2 rotation = rope_table[(32 + page) * s.half_width + i];
    for (uint r = 0; r < kTile; ++r) {
      const vec2 pair = bias_pair(r, bias, i);
      rotated[r * kPieces * 16 + i] = vec2(fma(pair.x, rotation.x, pair.y * rotation.y),
                                          fma(pair.y, rotation.x, -(pair.x * rotation.y)));
    }
  }
  barrier();
}

void score_bias(uint slot) {
  float sums[kTileMax];
  for (uint r = 0; r < kTile; ++r) sums[r] = 0;
  for (uint i = 0; i < s.half_width; ++i) {
    const vec2 rotation = rope_table[i * 32 + slot];
    for (uint r = 0; r < kTile; ++r) {
      const vec2 of_page = rotated[r * kPieces * 16 + i];
      sums[r] = fma(of_page.x, rotation.x, fma(of_page.y, rotation.y, sums[r]));
    }
  }
  for (uint r = 0; r < kTile; ++r) scores[r] += sums[r];
}

// Each row's softmax and the values that it weighs, of the split in progress; and of all splits
// before it.
float most[kTileMax], sum[kTileMax], acc[kTileMax][8];
Joined joined[kTileMax];
float all[kTileMax][8];

void begin_split() {
  for (uint r = 0; r < kTile; ++r) {
    most[r] = kNone;
    sum[r] = 0;
    for (uint i = 0; i < kPieces; ++i) acc[r][i] = 0;
  }
}

void join_split() {
  for (uint r = 0; r < kTile; ++r) {
    const vec2 shares = take(joined[r], most[r], sum[r]);
    for (uint i = 0; i < kPieces; ++i) all[r][i] = join(all[r][i], acc[r][i], shares);
  }
  begin_split();
}

// A page's tokens begin .. end - 1, of which `seen` has the rows that see this lane's; `value`: where their values begin.
void add_page(uint begin, uint end, uint seen, uint value, uint lane) {
  float kept[kTileMax];
  vec4 seen_scores = vec4(kNone), shares = vec4(0);
  for (uint r = 0; r < kTile; ++r)
    if ((seen >> r & 1) != 0) seen_scores[r] = scores[r];
  const vec4 largest = max_threads(seen_scores);
  for (uint r = 0; r < kTile; ++r) {
    const float raised = max(most[r], largest[r]);
    kept[r] = most[r] == kNone ? 0 : exp(most[r] - raised);
    if ((seen >> r & 1) != 0) shares[r] = exp(scores[r] - raised);
    weights[r * 32 + lane] = shares[r];
    most[r] = raised;
  }
  const vec4 sums = sum_threads(shares);  // its barriers also publish the weights
  for (uint r = 0; r < kTile; ++r) sum[r] = fma(sum[r], kept[r], sums[r]);
  const uint words = kForm == kQ8 ? quant_words_of(s.head_width) : s.head_width / 2;
  const uint scales = value + 32 * words, scale_words = scale_words_of(s.head_width);
  for (uint i = 0; i < kPieces; ++i) {
    const uint e = lane + 32 * i;
    if (e >= s.head_width) break;
    for (uint r = 0; r < kTile; ++r) acc[r][i] *= kept[r];
    for (uint c = begin; c < end; ++c) {
      if (kForm == kQ8) {
        const float level = byte_of(kv[value + c * words + e / 4], e % 4);
        const float scale = half_of(kv[scales + c * scale_words + i / 2], i % 2);
        for (uint r = 0; r < kTile; ++r) acc[r][i] = fma(weights[r * 32 + c] * scale, level, acc[r][i]);
      } else {
        const float level = half_of(kv[value + c * words + e / 2], e % 2);
        for (uint r = 0; r < kTile; ++r) acc[r][i] = fma(weights[r * 32 + c], level, acc[r][i]);
      }
    }
  }
  barrier();  // before the next page's weights
}

void main() {
  const uint lane = gl_LocalInvocationID.x, kv_head = gl_WorkGroupID.y, split = gl_WorkGroupID.z;
  const uint group = s.heads / s.kv_heads, first_row = gl_WorkGroupID.x * kTile;
  const uint behind_row = min(first_row + kTile, s.tokens * group);
  const uint first_page = split * s.split_pages;
  const bool whole = s.splits == 1;
  const uint half_page = 32 * token_words_of(s.head_width);  // words of a page's K or V of one head
  const uint words = quant_words_of(s.head_width);

  for (uint at = lane; at < kTile * kPieces * 32; at += 32) {
    const uint row = first_row + at / (kPieces * 32), e = at % (kPieces * 32);
    const uint head = kv_head * group + row % group;
    queries[at / 4][at % 4] = row < behind_row && e < s.head_width
        ? qkv[(row / group * (s.heads + 2 * s.kv_heads) + head) * s.head_width + e] : 0;
  }
  barrier();
  for (uint r = 0; r < kTile; ++r) {
    joined[r] = Joined(kNone, 0);
    for (uint i = 0; i < kPieces; ++i) all[r][i] = 0;
  }
  begin_split();
  // One sequence after another.
  for (uint token = first_row / group; token * group < behind_row;) {
    const uvec2 first = rows[token];
    uint end_token = token + 1;
    while (end_token * group < behind_row && rows[end_token].y == first.y) ++end_token;
    const uint visible = rows[end_token - 1].x + 1;  // by the last of them
    const uint hidden = first.x + 1 > s.window ? first.x + 1 - s.window : 0;  // from the first
    const uint behind = (visible + 31) / 32;
    const uint last_page = whole ? behind : min(first_page + s.split_pages, behind);
    for (uint page = max(first_page, hidden / 32); page < last_page; ++page) {
      if (whole && page % s.split_pages == 0) join_split();
      const uint key = (pages[first.y + page] * s.kv_heads + kv_head) * 2 * half_page;
      const uint place = page * 32 + lane;
      uint seen = 0;
      for (uint r = 0; r < kTile; ++r) {
        const uint of = (first_row + r) / group;
        const uint position = first.x + of - token;
        const bool here = of >= token && of < end_token && first_row + r < behind_row;
        if (here && place <= position && place + s.window > position) seen |= 1 << r;
      }
      if (kForm == kQ8) {
        if (s.half_width != 0) turn_to(page, kv_head * s.head_width, lane);
        if (seen != 0) score_bytes(key + lane * words, key + 32 * words + lane * scale_words_of(s.head_width));
        if (seen != 0 && s.half_width != 0) score_bias(lane);
      } else if (seen != 0) {
        score_halves(key + lane * (s.head_width / 2));
      }
      const uint begin = max(hidden, page * 32) - page * 32;
      add_page(begin, min(visible - page * 32, 32), seen, key + half_page, lane);
    }
    if (whole) join_split();
    token = end_token;
  }
  for (uint r = 0; r < kTile && first_row + r < behind_row; ++r) {
    const uint token = (first_row + r) / group, head = kv_head * group + (first_row + r) % group;
    if (first_page * 32 > rows[token].x) continue;
    const uint partial = ((token * s.heads + head) * s.splits + split) * (2 + s.head_width);
    if (lane == 0) {
      partials[partial] = whole ? joined[r].most : most[r];
      partials[partial + 1] = whole ? joined[r].sum : sum[r];
    }
    for (uint i = 0; i < kPieces; ++i)
      if (lane + 32 * i < s.head_width) partials[partial + 2 + lane + 32 * i] = whole ? all[r][i] : acc[r][i];
  }
}
