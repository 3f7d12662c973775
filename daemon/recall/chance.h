#pragma once

#include <array>
#include <cstddef>

#include "daemon/recall/candidate.h"

namespace efimd::recall {

/// The votes for a text that begins some way: what its features are made from.
struct Support {
  double weight = 0;         ///< of the votes
  double weight_others = 0;  ///< of all other matches heard
  std::size_t agreed = 0;    ///< of the best vote
  std::size_t typed = 0;     ///< bytes of the cursor's line before it, without indentation
  std::size_t votes = 0;
  std::size_t sources = 0;
  bool same_file = false;
  std::size_t distance_lines = 0;
  std::size_t lines_above = 0;
  bool fits_below = false;
  std::size_t bytes = 0;     ///< of the text
  bool to_line_end = false;  ///< the text is all of the line
  bool in_word = false;      ///< the cursor stands after a letter
  bool same_indent_step = true;
  double weight_nothing = 0;  ///< of matches where the line ends at once
  bool open_bracket = false;  ///< the cursor's line has one that is not closed: it goes on
  bool after_closer = false;  ///< the cursor stands after a bracket's or a string's end
  bool is_analogy = false;    ///< the text stands nowhere, but for the names
};

Features features_of(const Support& support);

/// The logarithm of a chance's odds, for chances held between 1e-4 and 1 - 1e-4; and back.
double log_odds(double chance);
double chance_of_odds(double log_odds);

/// A network with one layer of hidden units and a straight sum beside it. What speaks for a text of
/// this file says little of one that stands far away: no straight sum has that.
inline constexpr std::size_t kHidden = 16;
struct ChanceNet {
  std::array<float, kFeatures> straight;
  std::array<std::array<float, kHidden>, kFeatures> hidden;
  std::array<float, kHidden> out;
};

/// The chance that the user types a text with these features at such a place.
double chance_of(const Features& features, Place place);

/// The same for text of another file that was edited in this session.
double chance_if_edited(double chance, Place place);

/// From which chance on a suggestion is worth showing, judged by its first piece; and how far.
struct Cut {
  double show = 1;  ///< the first piece's chance is at least this
  double hold = 1;  ///< the last piece's, too
};
Cut cut_of(Place place);

}  // namespace efimd::recall
