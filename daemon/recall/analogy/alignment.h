#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace efimd::recall {

/// A line's words and signs, one after another, without blanks.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}
  /// Empty at the end.
  std::string_view next();
  /// One past the last token's end.
  std::size_t end() const { return at_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

/// Lines that have the same signs in the same order, and words where the other has words: which of
/// their words stand where ours do. A word of theirs stands for one of ours everywhere.
class Alignment {
 public:
  struct Pair {
    std::string_view theirs, ours;
  };

  Alignment() {}  // NOLINT(modernize-use-equals-default): pairs are not zeroed for each line

  /// Whether the token of theirs can stand for ours, after all before.
  bool add(std::string_view theirs, std::string_view ours);
  /// The same of all tokens of two lines, which have equally many. Spoilt if it fails.
  bool add_line(std::string_view theirs, std::string_view ours);

  /// The different words.
  std::span<const Pair> pairs() const { return {pairs_.data(), count_}; }
  std::size_t same() const { return same_; }              ///< tokens that are equal
  std::size_t same_bytes() const { return same_bytes_; }  ///< their bytes

 private:
  static constexpr std::size_t kPairsMax = 8;
  std::array<Pair, kPairsMax> pairs_;
  std::size_t count_ = 0, same_ = 0, same_bytes_ = 0;
};

}  // namespace efimd::recall
