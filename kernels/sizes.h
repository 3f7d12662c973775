#pragma once

/// Arguments of the device operations, shared by the host, the CUDA kernels and (as push constants, field by field in
/// the same order) the shaders. Plain 32-bit fields: at most 128 bytes, which every Vulkan device takes.
///
/// Letters, here and in the kernels: L layers, T tokens of the step, C tokens in KV, D width, H
/// heads, Hk KV heads. E head width, F feed-forward width, V vocabulary, P tokens per page. A row
/// is a token of the step.
namespace efimd::kernels {

using u32 = unsigned int;

/// Threads of a workgroup that work on one row of a product, or on one page of attention: P, the tokens per page.
inline constexpr u32 kLanes = 32;
/// Tokens that one reading of the weights serves in the variant for many tokens, at least.
inline constexpr u32 kTokensOfTile = 8;
/// Threads of a workgroup in operations that go element by element.
inline constexpr u32 kElementThreads = 64;
/// Elements of a workgroup in operations that go element by element and write one of kernels::Forms.
inline constexpr u32 kFormElements = 256;
// Blocks of the CUDA kernels, if they differ from those of the shaders.
inline constexpr u32 kNormBlock = 256;     ///< threads that share a row in norm_rows
inline constexpr u32 kMatmulWarps = 4;     ///< rows of a block in matmul, a warp each
inline constexpr u32 kAttentionWarps = 4;  ///< rows of a block in attention, a warp each
/// A block of matmul_few on the tensor cores: its rows; and its warps, each for four classes of
/// groups.
inline constexpr u32 kFewRows = 16;
inline constexpr u32 kFewWarps = 8;
/// Heads of tokens that a warp of the tensor cores takes, and a block of them in steps of many tokens.
inline constexpr u32 kHeadsOfWarp = 16;
inline constexpr u32 kHeadsOfTile = 64;
/// Rows and tokens of a block in matmul_tiles.
inline constexpr u32 kTileRows = 32;
/// A block of matmul_halves on the tensor cores: its rows and its warps; each product is the sum of
/// as many sums as there are warps. Columns come in whole pieces.
inline constexpr u32 kHalvesRows = 16;
inline constexpr u32 kHalvesWarps = 8;
inline constexpr u32 kHalvesPiece = 32;
/// Rows and tokens of a block of it in prompts.
inline constexpr u32 kHalvesTileLarge = 128;
inline constexpr u32 kHalvesTileSmall = 64;
/// Rows of matmul along the grid's first axis; more go along the third.
inline constexpr u32 kMatmulRowsMax = 32768;
/// Floats before the accumulator of a split-K partial of attention: the maximum m and the sum l.
inline constexpr u32 kPartialHead = 2;

/// The number of a weight type, in all devices; see engine/backend/gpu/packed_weights.h for the layouts.
enum class Packed : u32 {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K
};

/// The form of K and V, by number as in engine/backend/kv_type.h. A page of a layer is [Hk][2] (K,
/// then V) of
///
///   kF16  [P][E]  f16, two a word
///   kQ8   [P][E]  signed bytes, four a word, the last word of a token filled with zeros; then
///         [P][ceil(E / 32)]  f16 scales of each 32 elements, two a word, the last word filled with a zero
///
/// Elements and scales are those of engine/backend/cpu/kv/kv8_memory.h. Tokens lie one after
/// another, so that the lane that scores a token reads its key in one piece.
enum class Kv : u32 { kF16, kQ8 };

/// A kind of attention: the form of K and V, and pieces of 32 elements of a head.
constexpr u32 attention_type(Kv form, u32 head_width) {
  return static_cast<u32>(form) | (head_width + 31) / 32 << 8U;
}
constexpr Kv attention_form(u32 type) { return static_cast<Kv>(type & 0xFFU); }
/// Heads of tokens that share a workgroup of the shader, if there are several. A thread's values of
/// these fit the registers of Intel's GPUs; of twice as many they do not.
constexpr u32 attention_tile(u32 type) { return type >> 8U <= 4 ? 4 : 2; }

/// A packed matrix: words (of 4 bytes) from row to row, and where a row's planes begin.
struct RowLayout {
  u32 row_words;
  u32 high_at;
  u32 scale_at;
  u32 super_at;
};

struct EmbedSizes {
  RowLayout row;
  u32 width;  ///< D
  u32 first;  ///< row of the whole matrix that this part begins with
  u32 last;
  float scale;
};

/// The form of a result that products read. Products of quantized weights read quants: signed bytes
/// in groups of 32 with (scale, sum of quants * scale). There scale = max|x| / 127 and quant =
/// nearest(x / scale); a group under 1e-30 is all zero. Rows are whole groups then.
struct Forms {
  u32 floats;  ///< 1: f32
  u32 quants;  ///< 1: quants, and their scales
  u32 halves;  ///< 1: f16, saturating; 2: bf16; nearest even
};

struct NormSizes {
  u32 width;
  u32 layer;  ///< 1: layer norm, with a bias; 0: RMS norm
  float epsilon;
  Forms forms;
};

struct MatmulSizes {
  RowLayout row;
  u32 cols;        ///< K
  u32 rows;        ///< N of this part; with experts, of one expert
  u32 first;       ///< output row that the part begins with
  u32 out_stride;  ///< floats from token to token
  u32 tokens;      ///< T; with experts, slots
  u32 add;         ///< 1: out += product
  u32 biased;
  u32 experts;  ///< 0: none; 1: token t uses expert experts[t]
  u32 share;    ///< token t reads input row t / share
};

struct StoreSizes {
  u32 heads;
  u32 kv_heads;
  u32 head_width;  ///< E, even
  u32 half;        ///< pairs that are rotated
  u32 adjacent;    ///< 1: pair i is (2i, 2i + 1); 0: (i, i + half)
  u32 query_norm;  ///< 1: there is one
  u32 key_norm;
  float epsilon;
  float score_scale;
};

struct AttentionSizes {
  u32 heads;
  u32 kv_heads;
  u32 head_width;
  u32 window;       ///< tokens that a token sees; 2^30: all
  u32 split_pages;  ///< pages of one split
  u32 splits;  ///< split-K partials of a row and head; 1: whoever writes it goes through all splits
  u32 half;    ///< pairs of a key's bias that are rotated and added to what is kept; 0: none
  u32 adjacent;  ///< as in StoreSizes
  u32 tokens;    ///< T
};

struct MergeSizes {
  u32 heads;
  u32 head_width;
  u32 split_pages;
  u32 splits;  ///< as in AttentionSizes
  float scale;
  Forms forms;
};

struct ActivateSizes {
  u32 width;  ///< F
  u32 gated;  ///< 1: a row has F gates, then F values; 0: F values
  u32 gelu;   ///< else SiLU
  float scale;
  Forms forms;
};

struct RouteSizes {
  u32 rows;
  u32 experts;
  u32 used;
};

struct CombineSizes {
  u32 rows;
  u32 width;
  u32 used;
};

}  // namespace efimd::kernels
