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

/// Where `text`, which ends at the cursor, may be cut so that both sides tokenize as they do
/// together: after its last line terminator ("\n", "\r\n" or a lone "\r"), or before the whole run
/// of blanks and newlines around it. 0 if it has one line.
std::size_t line_cut(std::string_view text, NewlineGlue glue);

/// Pairs of neighbouring ASCII bytes that no token of a vocabulary reaches across: the texts on
/// both sides of such a seam tokenize as if they stood alone. Two bytes decide, so that the
/// surroundings of an edit suffice to find what it changed.
class SeamTable {
 public:
  /// No seams.
  SeamTable() = default;
  /// The ends of words, which every pre-tokenizer rule of PreTokenizer respects: no rule joins a
  /// letter or digit to what is neither, or punctuation to a blank after it, or looks ahead there.
  /// Not in it: newlines, which qwen2's rule joins to punctuation, and symbols such as "=" before a
  /// blank, which deepseek-coder's rule leaves together.
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
