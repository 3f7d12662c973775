#pragma once

#include <cstddef>

#include "engine/backend/cpu/kernels/kernels.h"

/// Panels: 16 neighbouring rows of a quantized matrix side by side, in private memory.
///
/// A kernel keeps one row in each lane of a register. In the file the same four weights of 16 rows
/// lie far apart, so each step must bring them together. A panel holds them in 64 bytes, so a
/// product of one token runs as fast as memory is read. Panels hold the same numbers as the file:
/// all tables compute the same bits from either.
///
/// A panel is a row of units. A unit is a head and some groups of 32 columns; the last unit of a
/// row may have fewer. Lines of 64 bytes hold a word of 4 bytes for each of the 16 rows.
///
///   type        groups  head                                     group
///   Q8_0             2  f16 d [2][16 rows]                       8 lines q ^ 0x80: line j, byte i: weight 4j + i
///   Q4_0             2  the same                                 4 lines q: line j, byte i: weight 4j + i low,
///                                                                weight 16 + 4j + i high
///   Q4_1             2  2 lines: f16 d, f16 m                    4 lines q
///   Q5_0, Q5_1       2  as Q4_0, Q4_1                            1 line h, 4 lines q; byte i of h, bit j: bit 4 of
///                                                                weight 4j + i
///   Q4_K             8  4 lines: bytes 0-15 of the file's block  4 lines q
///   Q5_K             8  the same                                 1 line h, 4 lines q
///   Q6_K             8  4 lines: scale[16]; 1 line: f16 d [16],  2 lines h, 4 lines q; byte i of line k of h,
///                       32 bytes unused                          bit 2j: bits 4-5 of weight 16k + 4j + i
///
/// Like kernels.h this header is for all compilations, so it holds no inline functions.
namespace efimd::engine::cpu {

inline constexpr int kPanelRows = 16;
/// 4 bytes of each row.
inline constexpr int kPanelLine = 4 * kPanelRows;

struct PanelLayout {
  int unit_groups;
  int head_lines;
  int group_lines;
};

inline constexpr PanelLayout kQ8_0Panel{2, 1, 8};
inline constexpr PanelLayout kQ4_0Panel{2, 1, 4};
inline constexpr PanelLayout kQ4_1Panel{2, 2, 4};
inline constexpr PanelLayout kQ5_0Panel{2, 1, 5};
inline constexpr PanelLayout kQ5_1Panel{2, 2, 5};
inline constexpr PanelLayout kQ4_KPanel{8, 4, 4};
inline constexpr PanelLayout kQ5_KPanel{8, 4, 5};
inline constexpr PanelLayout kQ6_KPanel{8, 5, 6};

/// Whole panels of a matrix; none if its type has no panel form. Rows after them stay in the mapped
/// file.
int panel_count(const Weights& weights);
/// Bytes of each of them, a multiple of 64.
std::size_t panel_bytes(const Weights& weights);
/// Writes panel `panel` to `out`, at a multiple of 64 bytes. Any thread.
void write_panel(const Weights& weights, int panel, unsigned char* out);

}  // namespace efimd::engine::cpu
