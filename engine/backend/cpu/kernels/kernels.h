#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/types.h"

/// The operations of the CPU device, once per instruction set.
///
/// Letters: L layers, T tokens of the step, C tokens in KV, D width, H heads, Hk KV heads,
/// G = H / Hk. E head width, F feed-forward width, V vocabulary, P tokens per page. The scalar
/// table is the specification; the others agree with it within rounding.
///
/// Batch invariance, in every table: the arithmetic of one output element (the order over k, the
/// lanes, the reduction) is the same in all tile shapes. So it depends on neither T nor the rows of
/// a call nor threads.
///
/// Files that are compiled for newer processors than the rest include this header. So it holds no
/// inline functions and includes nothing that has any. Otherwise the linker could pick an AVX-512
/// copy for everyone.
namespace efimd::engine::cpu {

/// Inputs that share a scale, and weights of a block of the older quantized types.
inline constexpr int kGroup = 32;
/// Weights of a block of the K types.
inline constexpr int kSuperblock = 256;

/// The layouts of the quantized types are in weight_blocks.h.
enum class WeightType { kF32, kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ4_K, kQ5_K, kQ6_K };

/// Bytes of a block.
inline constexpr int kQ8_0Bytes = 34;
inline constexpr int kQ4_0Bytes = 18;
inline constexpr int kQ4_1Bytes = 20;
inline constexpr int kQ5_0Bytes = 22;
inline constexpr int kQ5_1Bytes = 24;
inline constexpr int kQ4_KBytes = 144;
inline constexpr int kQ5_KBytes = 176;
inline constexpr int kQ6_KBytes = 210;

/// A matrix [rows][cols] in the mapped file; any alignment.
struct Weights {
  WeightType type;
  const unsigned char* data;
  std::size_t row_bytes;
  int rows;
  int cols;
  /// Its whole groups of 16 rows as panels.h says, at a multiple of 64 bytes; null: none. Tables
  /// that know no panels read `data`.
  const unsigned char* panels = nullptr;
};

/// Rows first .. last - 1 of a matrix.
struct RowRange {
  int first;
  int last;
};

/// Rows of a block of TiledRows.
inline constexpr int kBlockRows = 16;

/// Quantized rows once more, in blocks of 16, as tiles are loaded: a block has for each group 16 x
/// 32 quants, 16 scales and 16 totals.
struct TiledRows {
  const std::int8_t* quants = nullptr;  ///< [blocks][cols / 32][16][32]; null: there are none
  const float* scales = nullptr;        ///< [blocks][cols / 32][16]
  const float* totals = nullptr;        ///< the same
};

/// T input rows of a matmul: f32, and for quantized weights the same in groups of 32 (see
/// `quantize`).
struct Inputs {
  int tokens;
  const float* values;               ///< [T][cols]
  const std::int8_t* quants;         ///< [T][cols]
  const float* scales;               ///< [T][cols / 32]
  const std::int32_t* offsets;       ///< [T][cols / 32] -128 * the sum of a group's quants
  const std::int32_t* half_offsets;  ///< [T][cols / 16] the same of each 16
  const float* totals;               ///< [T][cols / 32] the sum of a group's quants * scale
  TiledRows tiled = {};              ///< for tables with `tiles_from`
  int first_tiled = 0;               ///< the first of the T rows in `tiled`
};

/// The place of one quantized input row; as in Inputs.
struct QuantizedRow {
  std::int8_t* quants;
  float* scales;
  std::int32_t* offsets;
  std::int32_t* half_offsets;
  float* totals;
  // The same among TiledRows, from the row's place in its block's first group on; null: nowhere.
  std::int8_t* tiled_quants = nullptr;
  float* tiled_scales = nullptr;
  float* tiled_totals = nullptr;
};

enum class Store { kSet, kAdd };

/// The place of row n of the product: values[t * stride + n] = or += product (+ bias[n] if there is
/// a bias).
struct Outputs {
  float* values;
  std::size_t stride;
  const float* bias;  ///< null: none
  Store store;
};

/// Floats before the accumulator of a split-K partial of attention: [0] the running maximum m, [1]
/// the sum l.
inline constexpr int kPartialHead = 16;

/// A window that no sequence reaches.
inline constexpr int kNoWindow = 1 << 30;

/// Attention of `rows` consecutive tokens of one sequence, the G query heads of one KV head, over
/// one range of pages.
struct AttentionTask {
  const float*
      q;  ///< row r, head g at q + r * q_stride + g * head_width: f32, rotated, times 1 / sqrt(E)
  std::size_t q_stride;
  int rows;
  int group;        ///< G
  int head_width;   ///< E
  int value_width;  ///< E rounded up to 16: the stride of V and of a partial's accumulator

  const std::uint16_t* kv;  ///< this layer's and KV head's K in page 0; see KvMemory for the layout
  std::size_t page_stride;  ///< f16 elements from page to page
  const PageIndex* page_table;  ///< of the range's pages
  int tokens;                   ///< of the range that the last row sees; >= 1
  /// Row r sees the range's tokens max(0, position + r + 1 - window) .. min(tokens, position + r +
  /// 1) - 1; may be negative.
  int position;
  int window;  ///< kNoWindow: all tokens before it

  /// A partial for each row and head: m, l, then acc [value_width] of sum(exp(s - m) * v), at
  /// partial + r * partial_row_stride + g * partial_stride. Rows without tokens to see get m =
  /// -inf, l = 0, acc = 0.
  float* partial;
  std::size_t partial_row_stride;
  std::size_t partial_stride;
};

/// The widest head of 8-bit KV: a page of it is expanded on the stack (32 KiB).
inline constexpr int kKv8HeadWidthMax = 256;

/// The place of an AttentionTask's K and V in 8 bits; the layout is Kv8Memory's. The task's own kv
/// and page_stride are of no use then.
struct Kv8Source {
  const unsigned char* kv;  ///< this layer's and KV head's block in page 0
  std::size_t head_bytes;   ///< of a block
  std::size_t page_stride;  ///< bytes from page to page

  /// The bias that is added to keys, as KeyBias says; null: none.
  const float *bias_along, *bias_across;  ///< [E]
  const float* turns;                     ///< of the range's first page and on; null: no bias
  int pairs;                              ///< of a head that are rotated
  bool adjacent_pairs;                    ///< (2i, 2i + 1), else (i, i + pairs)
};

struct CpuKernels {
  /// out = weights * inputs for some rows. F32, F16, BF16: f32 products and sums (with AVX-512
  /// BF16, inputs are rounded to bf16 if the weights are bf16). Quantized: weights that share a
  /// scale are multiplied with the input's quants and summed in integers, exactly. Then f32, in
  /// order: sum += products * (weight_scale * input_scale), and for types with a minimum sum -=
  /// minimum * total.
  void (*matmul)(const Weights& weights, RowRange rows, const Inputs& inputs, const Outputs& out);
  /// Online softmax in f32, page by page.
  void (*attention)(const AttentionTask& task);
  /// out = x / sqrt(mean(x^2) + epsilon) * weight
  void (*rms_norm)(const float* x, const float* weight, int width, float epsilon, float* out);
  /// One row in groups of 32: scale = max|x| / 127, quant = nearest(x / scale) in -127 .. 127. A
  /// group whose max|x| is under 1e-30 is all zero. width % 32 == 0.
  void (*quantize)(const float* x, int width, const QuantizedRow& out);
  /// out = gate / (1 + exp(-gate)) * up, or without * up if up is null; out may be gate.
  void (*silu_mul)(const float* gate, const float* up, int count, float* out);
  /// out = (x - mean(x)) / sqrt(mean((x - mean)^2) + epsilon) * weight + bias
  void (*layer_norm)(const float* x, const float* weight, const float* bias, int width,
                     float epsilon, float* out);
  /// out = gelu(gate) * up, or gelu(gate) if up is null; gelu(x) = x / (1 + exp(-2u)) with u =
  /// sqrt(2 / pi) * (x + 0.044715 x^3). out may be gate.
  void (*gelu_mul)(const float* gate, const float* up, int count, float* out);
  /// f32 to f16, nearest even; past +-65504 it saturates, so that KV holds no infinity.
  void (*to_half)(const float* x, int count, std::uint16_t* out);
  /// The same as attention(), over keys and values that are expanded to f16 page by page: the same
  /// bits in every table.
  void (*attention_kv8)(const AttentionTask& task, const Kv8Source& source);
  /// From so many rows on a matmul of panels reads Inputs::tiled, which `quantize` writes; 0: never.
  int tiles_from = 0;
};

inline constexpr float kHalfMax = 65504.0F;
inline constexpr float kQuantizeFloor = 1e-30F;
inline constexpr float kGeluCube = 0.044715F;
inline constexpr float kGeluSlope = 1.59576912F;  ///< 2 * sqrt(2 / pi)

const CpuKernels& scalar_kernels();
#if defined(EFIMD_CPU_X86)
const CpuKernels& avx2_kernels();        ///< AVX2, FMA, F16C
const CpuKernels& avxvnni_kernels();     ///< the same and AVX-VNNI
const CpuKernels& avx512_kernels();      ///< AVX-512 F, BW, VL, DQ, VNNI
const CpuKernels& avx512bf16_kernels();  ///< the same and BF16
const CpuKernels& amx_kernels();         ///< the same and AMX with int8
#elif defined(EFIMD_CPU_ARM)
const CpuKernels& neon_kernels();
const CpuKernels& neondot_kernels();   ///< with dotprod
const CpuKernels& neoni8mm_kernels();  ///< with dotprod and i8mm
#endif

}  // namespace efimd::engine::cpu
