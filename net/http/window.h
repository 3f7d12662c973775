#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace efimd::http {

/// Bytes [begin, end) of a text become `text`.
struct Edit {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;
  bool operator==(const Edit&) const = default;
};

/// What a client shows of a file: some text around its cursor.
struct Window {
  std::string text;
  std::size_t cursor = 0;
  /// Whether the file goes on before or after the window, as far as one can tell.
  bool cut_above = false;
  bool cut_below = false;
};

/// How a window lies over a text that is known already.
struct Laid {
  std::vector<Edit> edits;  ///< in the known text's offsets, ascending, apart
  std::size_t cursor = 0;   ///< in the edited text
  /// Of the window's bytes, how many the known text had, from 0 to 1; 0 also if laying it over would
  /// delete much more than the window shows.
  double likeness = 0;
  /// Lines that were looked up and pairs of them that were compared, the most of the work.
  std::size_t compared = 0;
};

/// Finds what was edited, if `window` shows a part of `known` after an edit. A window moves with the
/// cursor. Taken for the whole file, it would delete lines at one end with each new line. Then every
/// token after them would have to be evaluated again.
///
///   W-1  Where window and text share lines, longest runs first, nothing is edited; what lies between
///        two runs is replaced by what the window has there.
///   W-2  Text before the window's first shared line stays if the window is cut above, and text
///        after its last one if it is cut below.
///   W-3  New lines at an end that is cut are left for later as long as they are fewer than
///        kGrowthLines: they are far from the cursor, and an edit there costs the next answer.
///   W-4  The line of the cursor, and its neighbours between the nearest runs, are always as the
///        window has them.
///
/// A library for differences (dtl) compares whole sequences; it has no free ends, and scatters short
/// matches over a text that is longer than the window.
///
/// Cost: about the bytes of both, since rare lines find the runs and each run is followed once.
/// Edits begin and end between code points, and never between "\r" and "\n".
Laid lay_over(std::string_view known, const Window& window);

/// What `edits` make of `known`.
std::string edited(std::string_view known, const std::vector<Edit>& edits);

inline constexpr std::size_t kGrowthLines = 32;

}  // namespace efimd::http
