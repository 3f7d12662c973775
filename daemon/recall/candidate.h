#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace efimd::recall {

/// Whose text a candidate was taken from; the nearest of several that say the same.
enum class Source { kThisFile, kOpenFile, kDeleted, kAccepted, kProject };

/// The cursor's place in its line.
enum class Place {
  kInside,    ///< the line has text before the cursor, and it is not finished
  kStart,     ///< only blanks before the cursor
  kFinished,  ///< the line before the cursor ends as complete lines do: silent unless sure
};

/// Which of these the cursor is at.
Place place_at(std::string_view text, std::size_t cursor);

/// The evidence for a candidate: the numbers from which the chance is computed (chance.h).
struct Evidence {
  Place place = Place::kInside;
  std::size_t match_bytes = 0;       ///< equal text before the cursor, lines above included
  std::size_t line_match_bytes = 0;  ///< of these, in the cursor's own line
  std::size_t lines_above = 0;       ///< whole lines above that are equal but for indentation
  std::size_t votes = 0;             ///< matches that go on like this up to `shown`
  std::size_t rivals = 0;            ///< matches that were heard
  double share = 0;                  ///< weighted by how well each matches: votes of all heard
  std::size_t sources = 0;           ///< distinct files among the votes
  bool same_file = false;            ///< one of the votes is in the cursor's own file
  std::size_t distance_lines = 0;    ///< to the nearest vote in that file; 0 if none is
  bool fits_below = false;           ///< what follows the vote's line also follows the cursor's
  bool edited = false;  ///< the best vote is of another file that was edited in this session
};

/// The inputs of a chance, in the order of chance.h.
inline constexpr std::size_t kFeatures = 18;
using Features = std::array<float, kFeatures>;

/// A place in a candidate's text where it may be cut, and how likely the text before it is right.
struct Boundary {
  std::size_t bytes = 0;
  double chance = 0;
  Features features{};  ///< so that a caller with a model can combine them anew
};

/// The inputs of the chance of a further line, in the order of next_lines.cpp.
inline constexpr std::size_t kNextFeatures = 12;
using NextFeatures = std::array<float, kNextFeatures>;

/// A line that comes under a candidate's, elsewhere.
struct NextLine {
  std::string text = {};  ///< indented as it would be here; empty: a blank line
  double chance = 0;      ///< that it comes next, if all before it came
  NextFeatures features{};
};

/// A continuation that the user's own text proposes. A value.
struct Candidate {
  std::string text = {};                  ///< to the end of the line
  std::size_t shown = 0;                  ///< bytes of it worth showing alone; 0: better silent
  double chance = 0;                      ///< that the user types text[0, shown)
  std::vector<Boundary> boundaries = {};  ///< ascending, the last one is text.size()
  Evidence evidence = {};
  Source source = Source::kProject;
  std::string path = {};            ///< of the file it was taken from
  std::vector<NextLine> next = {};  ///< the lines under it, as far as they are likely
};

}  // namespace efimd::recall
