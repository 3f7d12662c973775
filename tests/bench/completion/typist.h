#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

// How a person types, as far as `efimd-bench type` imitates one.

namespace efimd::bench {

/// Mean time between two keys: about what 168,000 people showed over 136 million keystrokes (Dhakal
/// et al., CHI 2018). Its spread is log-normal; that and the pauses are our assumptions.
inline constexpr double kKeyMsMean = 238;
inline constexpr double kKeySpread = 0.5;  ///< of the logarithm
/// Thought, before the first key of a line, beside the key's own time.
inline constexpr double kLinePauseMs = 900;
/// A suggestion is read for this long before it is accepted.
inline constexpr double kReadMs = 300;
/// Shorter agreement is typed: looking costs more than three keys.
inline constexpr std::size_t kAcceptCharactersMin = 3;

/// When the next key comes. The same seed gives the same times.
class Typist {
 public:
  explicit Typist(std::uint32_t seed) : random_(seed) {}
  /// Milliseconds from one key to the next, which is `key`; `line_start` when the line before was
  /// just ended.
  double pause_ms(bool line_start);

 private:
  std::mt19937 random_;
};

/// The bytes that one key types of `rest`, which is not empty: a code point, or a line's end with
/// the blanks that the editor puts at the start of the next.
std::size_t key_bytes(std::string_view rest);
/// Keys that typing `text` takes.
std::size_t keys_of(std::string_view text);

/// How much of `suggestion` is worth accepting where `rest` is to be typed: as far as they agree, up
/// to the last border of words or lines in both; 0 for less than kAcceptCharactersMin characters.
std::size_t acceptable_bytes(std::string_view suggestion, std::string_view rest);

/// A part of a file to type again: `open` without it, `typed` the part, whole lines after the first
/// line's indent and without the last line's end.
struct Exercise {
  std::string open, typed;
  std::size_t cursor = 0;
};
/// `lines` lines, at most half of the file, from a line of its middle third that is not blank.
Exercise exercise_of(std::string_view text, int lines, std::uint32_t seed);
/// The first `lines` lines of a file that is new: nothing of it is there.
Exercise new_file_of(std::string_view text, int lines);

}  // namespace efimd::bench
