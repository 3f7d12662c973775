#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>

namespace efimd::engine {

/// Whether a vocabulary puts a newline and the blanks after it into one token.
enum class NewlineGlue {
  kNone,    ///< llama, qwen2, deepseek-coder: both sides of a line start tokenize on their own
  kIndent,  ///< starcoder's rule: a run of blanks and newlines is one piece
};

/// The place to cut `text`, which ends at the cursor, so that both sides tokenize as they do
/// together. It is after the last line terminator ("\n", "\r\n" or a lone "\r"), or before the
/// whole run of blanks and newlines around that. 0 if the text has one line.
std::size_t line_cut(std::string_view text, NewlineGlue glue);

/// Pairs of neighbouring ASCII bytes that no token of a vocabulary reaches across. The texts on
/// both sides of such a seam tokenize as if they stood alone. Two bytes decide, so that the
/// surroundings of an edit suffice to find what it changed.
class SeamTable {
 public:
  /// No seams.
  SeamTable() = default;
  /// The ends of words, which every rule of PreTokenizer respects. No rule joins a letter or digit
  /// to another kind of character, or punctuation to a blank after it, or looks ahead there.
  /// Newlines are not in it, because qwen2's rule joins them to punctuation. Symbols such as "="
  /// before a blank are not, because deepseek-coder's rule leaves them together.
  static SeamTable word_ends();
  /// All pairs of the bytes that source text has.
  static SeamTable all();

  /// `text` is one token: its inner pairs are no seams.
  void join(std::string_view text);
  /// `character` may join with anything.
  void join_all(char character);
  bool contains(char left, char right) const {
    return is_ascii(left) && is_ascii(right) && pairs_[index(left, right)];
  }

 private:
  static constexpr std::size_t kAscii = 128;
  using Holds = bool (*)(char left, char right);
  explicit SeamTable(Holds holds);
  static bool is_ascii(char c) { return static_cast<unsigned char>(c) < kAscii; }
  static std::size_t index(char left, char right) {
    return static_cast<unsigned char>(left) * kAscii + static_cast<unsigned char>(right);
  }
  std::bitset<kAscii * kAscii> pairs_;
};

}  // namespace efimd::engine
