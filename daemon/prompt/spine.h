#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/prompt/path_head.h"
#include "daemon/text/document.h"
#include "engine/tokenizer/tokenized_text.h"

namespace efimd::prompt {

/// The tokens of a file's window, also of the text after the cursor. The rules in full:
/// docs/efim.md.
///
///   every full anchor's before is a leading part of the spine, so anchors share its KV. A
///        jump in an evaluated file costs only the after of the new place.
///   the window begins at a line and moves only in large steps, because a new begin changes
///        all of its tokens.
///
/// Offsets are bytes of the snapshot that was followed last.
/// Thread: its owner's. Owns no tokenizer.
class Spine {
 public:
  /// `path`: path_head() of the file, for the prompts that are made from it.
  explicit Spine(const engine::Tokenizer& tokenizer, PathHead path = {});

  struct Limits {
    int before_max = 0;  ///< tokens before a cursor, and about the chain's length
    int whole_max = 0;   ///< a text of no more tokens is taken whole
  };
  /// Brings the chain to `snapshot`, and its window to a cursor whose before ends at `cut`.
  /// Tokenizes what was edited, or everything if the window moves.
  void follow(const text::Snapshot& snapshot, std::size_t cut, Limits limits);
  /// Brings the chain to `snapshot` if that takes no more than the edits; whether its window shows a
  /// cursor whose before ends at `cut`. If not, the next follow() makes the chain anew.
  bool follow_edits(const text::Snapshot& snapshot, std::size_t cut, Limits limits);

  /// Begins with a window known from an earlier run, as far as the text reaches into it. The chain
  /// is the same as far as the text is. Does nothing if `begin` is not the start of a line.
  void start(const text::Snapshot& snapshot, std::size_t begin, std::size_t end);

  const PathHead& path() const { return path_; }
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }
  /// Whether the chain is of the whole text.
  bool is_whole_text() const { return begin_ == 0 && whole_; }
  std::span<const engine::TokenId> tokens() const { return tokens_.tokens(); }
  /// How many tokens lie wholly in text[begin(), byte).
  std::size_t tokens_before(std::size_t byte) const { return tokens_.tokens_before(byte - begin_); }
  /// Whether text[begin(), byte) is a leading part of the chain's tokens.
  bool is_border(std::size_t byte) const {
    return byte >= begin_ && byte <= end_ && tokens_.is_border(byte - begin_);
  }
  /// The last such byte at or below `byte` that is a code point border, too.
  std::size_t border_at_or_before(std::string_view text, std::size_t byte) const;

 private:
  /// Follows the edits; false if the window's place was edited away, or more was inserted than a
  /// window shows: tokenizing a paste of 1 MB takes half a second.
  bool carry(const text::Snapshot& snapshot, Limits limits);
  bool shows_enough(std::size_t cut, std::size_t tokens_max) const;
  bool fits(Limits limits) const;
  /// Tokenizes the whole text, if it is no more than `tokens_max`.
  bool take_whole(std::string_view text, std::size_t tokens_max);
  void move_window(const text::Snapshot& snapshot, std::size_t cut, std::size_t tokens_max);
  /// Tokenizes from begin_ to at least `cut` and about `tokens_max` tokens.
  void set_end(const text::Snapshot& snapshot, std::size_t cut, std::size_t tokens_max);
  void tokenize(std::string_view text, std::size_t end);

  const engine::Tokenizer* tokenizer_;
  PathHead path_;
  engine::TokenizedText tokens_;
  std::optional<std::uint64_t> serial_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool whole_ = false;  ///< end_ is the text's end
};

}  // namespace efimd::prompt
