#pragma once

#include "kernels/joined.cuh"

namespace efimd::kernels {

// q . k of one token: query [E] in shared memory, key E halves.
__device__ __forceinline__ float score_of(const float* query, const u32* key, u32 width) {
  float score = 0;
  const auto add = [&](u32 pair, u32 word) {
    const float2 both = both_halves(word);
    const float2 of_query = *reinterpret_cast<const float2*>(query + 2 * pair);
    score = fmaf(of_query.x, both.x, score);
    score = fmaf(of_query.y, both.y, score);
  };
  u32 pair = 0;
  for (; width % 8 == 0 && pair < width / 2; pair += 4) {
    const uint4 packed = *reinterpret_cast<const uint4*>(key + pair);
    add(pair, packed.x);
    add(pair + 1, packed.y);
    add(pair + 2, packed.z);
    add(pair + 3, packed.w);
  }
  for (; pair < width / 2; ++pair) add(pair, key[pair]);
  return score;
}

/// Byte 0 .. 3 of a word of signed bytes with their sign bits flipped, as a float. Put into the
/// mantissa of 2^23 and taken out again, exactly. Conversions run at a quarter of the rate of these
/// two.
__device__ __forceinline__ float byte_of(u32 flipped, u32 byte) {
  return __uint_as_float(__byte_perm(flipped, 0x4B000000U, 0x7440U | byte)) - 8388736.0F;
}
constexpr u32 kSignBits = 0x80808080U;

__device__ __forceinline__ float add_bytes(float sum, const float* query, u32 word) {
  const u32 flipped = word ^ kSignBits;
#pragma unroll
  for (u32 byte = 0; byte < 4; ++byte) sum = fmaf(query[byte], byte_of(flipped, byte), sum);
  return sum;
}

// q . k of one token in 8 bits: query [E] in shared memory, with zeros up to a multiple of 4; quants and scales as
// kernels::Kv says.  Each 32 products are summed before their scale: f32, with no rounding of an element to f16.
__device__ __forceinline__ float score_of_bytes(const float* query, const u32* quants,
                                                const u32* scales, u32 words) {
  float score = 0;
  for (u32 group = 0; group * 8 < words; ++group) {
    const u32 end = group * 8 + 8 < words ? group * 8 + 8 : words;
    const float2 both = both_halves(scales[group / 2]);
    float sum = 0;
    if (words % 4 == 0) {
      for (u32 word = group * 8; word < end; word += 4) {
        const uint4 packed = *reinterpret_cast<const uint4*>(quants + word);
        sum = add_bytes(sum, query + 4 * word, packed.x);
        sum = add_bytes(sum, query + 4 * word + 4, packed.y);
        sum = add_bytes(sum, query + 4 * word + 8, packed.z);
        sum = add_bytes(sum, query + 4 * word + 12, packed.w);
      }
    } else {
      for (u32 word = group * 8; word < end; ++word)
        sum = add_bytes(sum, query + 4 * word, quants[word]);
    }
    score = fmaf(group % 2 == 0 ? both.x : both.y, sum, score);
  }
  return score;
}

// The part of the scores that a bias b of keys has, for keys that are kept without it. RoPE is linear, so that it is
//   q . R(c) b = sum over pairs i of  x_i cos(c w_i) + y_i sin(c w_i)
//   x_i = q[first] b[first] + q[second] b[second]     y_i = q[second] b[first] - q[first] b[second]
// and with c = P * page + slot the pairs (x, y) are rotated once a page, by all lanes, then by each lane for its slot.
// Elements that are not rotated add the same to the scores of all tokens. That moves no weight, so
//   they are left out. rope_table: float2 (cosine, sine) [half][P] of the slots, times RoPE's
//   magnitude, then [page of the sequence][half]
class BiasOfKeys {
 public:
  /// query and bias [E], of which nothing is read if half is 0; `rotated` [half] in shared memory
  /// is this warp's own.
  __device__ __forceinline__ BiasOfKeys(const float* query, const float* bias,
                                        const float2* rope_table, float2* rotated,
                                        const AttentionSizes& s)
      : rope_table_(rope_table), rotated_(rotated), half_(s.half) {
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      const u32 i = threadIdx.x + 32 * j;
      if (i >= half_) break;
      const u32 first = s.adjacent != 0 ? 2 * i : i;
      const u32 second = s.adjacent != 0 ? 2 * i + 1 : i + half_;
      pairs_[j] = make_float2(fmaf(query[first], bias[first], query[second] * bias[second]),
                              fmaf(query[second], bias[first], -(query[first] * bias[second])));
    }
  }
  /// For the scores of a page; by the whole warp.
  __device__ __forceinline__ void turn_to(u32 page) {
    __syncwarp();  // nobody reads the last page's any more
    const float2* rope_table = rope_table_ + 32 * half_ + static_cast<size_t>(page) * half_;
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      const u32 i = threadIdx.x + 32 * j;
      if (i >= half_) break;
      const float2 rotation = rope_table[i];
      rotated_[i] = make_float2(fmaf(pairs_[j].x, rotation.x, pairs_[j].y * rotation.y),
                                fmaf(pairs_[j].y, rotation.x, -(pairs_[j].x * rotation.y)));
    }
    __syncwarp();
  }
  /// Of the token in this lane's slot.
  __device__ __forceinline__ float score() const {
    float sum = 0;
    for (u32 i = 0; i < half_; ++i) {
      const float2 rotation = rope_table_[i * 32 + threadIdx.x];
      sum = fmaf(rotated_[i].x, rotation.x, fmaf(rotated_[i].y, rotation.y, sum));
    }
    return sum;
  }

 private:
  const float2* rope_table_;
  float2* rotated_;
  u32 half_;
  float2 pairs_[4];  ///< lane, lane + 32, ...
};

// acc += the values of tokens begin .. end - 1 of a page, each times its lane's weight. A lane holds elements 2 i and
// 2 i + 1 for i = lane, lane + 32, ...
__device__ __forceinline__ void add_half_values(float2 (&acc)[4], float weight, const u32* values,
                                                u32 begin, u32 end, u32 width) {
  const u32 words = width / 2;
  for (u32 c = begin; c < end; ++c) {
    const float share = __shfl_sync(kWholeWarp, weight, static_cast<int>(c));
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const u32 word = threadIdx.x + 32 * i;
      if (word >= words) break;
      const float2 both = both_halves(values[c * words + word]);
      acc[i] = make_float2(fmaf(share, both.x, acc[i].x), fmaf(share, both.y, acc[i].y));
    }
  }
}

/// Floats from group to group of `shares`: one more than lanes, so that two groups lie in two banks.
constexpr u32 kShareStride = 33;

// The same in 8 bits. `shares` [8][kShareStride] in shared memory, this warp's own: a token's weight times its scales.
__device__ __forceinline__ void add_byte_values(float2 (&acc)[4], float weight, const u32* values,
                                                u32 begin, u32 end, u32 width, float* shares) {
  const u32 lane = threadIdx.x, words = quant_words_of(width), scale_words = scale_words_of(width);
  // Slots that hold nothing yet have scales of any bits.
  const bool seen = lane >= begin && lane < end;
  for (u32 i = 0; i < scale_words; ++i) {
    const float2 both = both_halves(seen ? values[32 * words + lane * scale_words + i] : 0);
    shares[2 * i * kShareStride + lane] = weight * both.x;
    shares[(2 * i + 1) * kShareStride + lane] = weight * both.y;
  }
  __syncwarp();
  const auto* pairs = reinterpret_cast<const unsigned short*>(values);
  for (u32 c = begin; c < end; ++c) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const u32 pair = lane + 32 * i;
      if (pair >= width / 2) break;
      const float share = shares[pair / 16 * kShareStride + c];
      const u32 flipped = pairs[c * 2 * words + pair] ^ kSignBits;
      acc[i] = make_float2(fmaf(share, byte_of(flipped, 0), acc[i].x),
                           fmaf(share, byte_of(flipped, 1), acc[i].y));
    }
  }
  __syncwarp();  // before the next page's shares
}

/// The softmax of a row and head, page by page (online), and the sum of the values that it weighs: a lane holds elements 2 i
/// and 2 i + 1 for i = lane, lane + 32, ...
struct RunningSoftmax {
  float most = -INFINITY, sum = 0;
  float2 acc[4] = {};

  /// Takes the scores of a page's tokens, one a lane, -INFINITY of those that are not seen; by the
  /// whole warp. Gives the weight of the lane's token.
  __device__ __forceinline__ float take(float score) {
    const float raised = fmaxf(most, warp_max(score));
    const float kept = exp_from(most, raised);
    const float weight = exp_from(score, raised);
    sum = fmaf(sum, kept, warp_sum(weight));
    most = raised;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) acc[i] = make_float2(acc[i].x * kept, acc[i].y * kept);
    return weight;
  }
  /// Takes the next split, and empties it.
  __device__ __forceinline__ void take(RunningSoftmax& split) {
    Joined joined{most, sum};
    const float2 shares = joined.take(split.most, split.sum);
    most = joined.most;
    sum = joined.sum;
#pragma unroll
    for (u32 i = 0; i < 4; ++i)
      acc[i] = make_float2(join(acc[i].x, split.acc[i].x, shares),
                           join(acc[i].y, split.acc[i].y, shares));
    split = {};
  }
  __device__ __forceinline__ void write(float* partial, u32 width) const {
    if (threadIdx.x == 0) {
      partial[0] = most;
      partial[1] = sum;
    }
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const u32 word = threadIdx.x + 32 * i;
      if (word >= width / 2) break;
      partial[kPartialHead + 2 * word] = acc[i].x;
      partial[kPartialHead + 2 * word + 1] = acc[i].y;
    }
  }
};

// Causal attention of one row and head over one split of its pages, or over all of them, split by split.
//   qkv [T][H + 2 Hk][E] f32: queries in front, rotated, scaled   kv [page][Hk][2] of kernels::Kv   pages: page tables
//   rows [T] (position, where its table begins)   partials [T][H][splits][2 + E]: m, l, sum of exp(score - m) * v
//   key_bias [Hk][E], rope_table as BiasOfKeys has them: only 8 bits read them, where s.half is not 0
//   grid (T G / kAttentionWarps, Hk, splits), block (32, kAttentionWarps): a warp for each row, that is (token, head of its
//   G = H / Hk); a lane scores one token of a page, then holds words lane, lane + 32, ... of the result, two elements each
//   E even, <= 256. Splits past the row are left alone. Softmax online, in f32. must read 4 C Hk E
//   bytes, in 8 bits 2.125 C Hk E at heads of 64. Rows that share K and V run together, so that
//   the cache serves all but the first.
template <Kv kForm>
__device__ __forceinline__ void attention(const float* qkv, const u32* kv, const u32* pages,
                                          const uint2* rows, float* partials, const float* key_bias,
                                          const float2* rope_table, const AttentionSizes& s) {
  constexpr bool kBytes = kForm == Kv::kQ8;
  alignas(16) __shared__ float queries[kAttentionWarps][256];
  __shared__ float2 rotated[kBytes ? kAttentionWarps : 1][128];
  __shared__ float shares[kBytes ? kAttentionWarps : 1][8 * kShareStride];
  const u32 kv_head = blockIdx.y, split = blockIdx.z, lane = threadIdx.x;
  const u32 group = s.heads / s.kv_heads, row = blockIdx.x * kAttentionWarps + threadIdx.y;
  if (row >= s.tokens * group) return;  // whole warps
  const u32 t = row / group, h = kv_head * group + row % group;
  const uint2 place = rows[t];
  const u32 visible = place.x + 1;
  const u32 hidden = visible > s.window ? visible - s.window : 0;
  const u32 first_page = split * s.split_pages;
  if (first_page * 32 >= visible) return;
  const u32 behind = (visible + 31) / 32;
  const bool whole = s.splits == 1;
  const u32 last_page =
      !whole && first_page + s.split_pages < behind ? first_page + s.split_pages : behind;
  const u32 words = kBytes ? quant_words_of(s.head_width) : s.head_width / 2;  // of a token
  const u32 scale_words = kBytes ? scale_words_of(s.head_width) : 0;
  const u32 half_page = 32 * (words + scale_words);  // of a page's K or V of one head

  float* query = queries[threadIdx.y];
  const float* q = qkv + (static_cast<size_t>(t) * (s.heads + 2 * s.kv_heads) + h) * s.head_width;
  for (u32 e = lane; e < (s.head_width + 3) / 4 * 4; e += 32)
    query[e] = e < s.head_width ? q[e] : 0.0F;
  __syncwarp();
  BiasOfKeys bias(query, key_bias + kv_head * s.head_width, rope_table,
                  rotated[kBytes ? threadIdx.y : 0], s);
  RunningSoftmax softmax, all;
  for (u32 page = first_page; page < last_page; ++page) {
    if (whole && page % s.split_pages == 0) all.take(softmax);
    const u32 begin = hidden > page * 32 ? hidden : page * 32;
    const u32 end = visible < page * 32 + 32 ? visible : page * 32 + 32;
    if (begin >= end) continue;
    const u32* key =
        kv + (static_cast<size_t>(pages[place.y + page]) * s.kv_heads + kv_head) * 2 * half_page;
    const u32 token = page * 32 + lane;
    const bool seen = token >= begin && token < end;
    float score = -INFINITY;
    if constexpr (kBytes) {
      if (s.half != 0) bias.turn_to(page);
      if (seen)
        score =
            score_of_bytes(query, key + lane * words, key + 32 * words + lane * scale_words, words);
      if (seen && s.half != 0) score += bias.score();
    } else {
      if (seen) score = score_of(query, key + lane * words, s.head_width);
    }
    const float weight = softmax.take(score);
    const u32* values = key + half_page;
    if constexpr (kBytes)
      add_byte_values(softmax.acc, weight, values, begin - page * 32, end - page * 32, s.head_width,
                      shares[threadIdx.y]);
    else
      add_half_values(softmax.acc, weight, values, begin - page * 32, end - page * 32,
                      s.head_width);
  }
  if (whole) {
    all.take(softmax);
    softmax = all;
  }
  const size_t partial = (static_cast<size_t>(t) * s.heads + h) * s.splits + split;
  softmax.write(partials + partial * (kPartialHead + s.head_width), s.head_width);
}

}  // namespace efimd::kernels
