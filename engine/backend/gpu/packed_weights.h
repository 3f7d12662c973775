#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/model/gguf.h"
#include "kernels/sizes.h"

namespace efimd::engine::gpu {

// Weights as the devices hold them: the same bits as in the file, moved so that everything is aligned. A row is words
// of 4 bytes, its length a multiple of 16 bytes:
//
//   quants   F32 a word for each weight; F16 and BF16 two a word, the first low
//            8 bits: 8 words a group of 32, four weights a word
//            4 bits: 4 words a group; word j has weights 8j .. 8j + 3 in the low halves of its bytes and
//            8j + 4 .. 8j + 7 in the high halves: a mask (and a shift) gives four weights as four bytes
//   high     Q5: a word a group; bit 4 of weight 4i + b is bit 8b + i
//            Q6: two words a group; bits 4-5 of weight 4i + b are bits 8b + 2 (i % 4) of word i / 4
//   scales   Q8_0 Q4_0 Q5_0: f16 d a group, two a word
//            Q4_1 Q5_1: a word a group: f16 d low, f16 m high
//            Q4_K Q5_K: 16 bits a group: scale low byte, minimum high byte
//            Q6_K: 16 bits a group: int8 scales of its two halves
//   supers   Q4_K Q5_K: a word for each 256 weights: f16 d low, f16 dmin high;  Q6_K: f16 d low
//
// A row takes no more than 2.8 % more than in the file (Q4_K: 148 bytes for 256 weights, of 144).

kernels::Packed packed_type(TensorType type);
bool is_quantized(kernels::Packed type);

/// The layout of rows of `cols` weights.
kernels::RowLayout row_layout(TensorType type, std::int64_t cols);

/// Packs one row of a tensor into layout.row_words words; padding becomes 0.
void pack_row(const TensorView& tensor, std::int64_t row, const kernels::RowLayout& layout,
              std::span<std::uint32_t> words);

}  // namespace efimd::engine::gpu
