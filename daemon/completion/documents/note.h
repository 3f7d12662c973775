#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "daemon/prompt/anchor.h"
#include "daemon/text/document.h"
#include "engine/tokenizer/tokenizer.h"

namespace efimd::completion {

/// An anchor's place: offsets in the text, and the hash of its tokens. No text.
struct NotedAnchor {
  prompt::View view = prompt::View::kFull;
  std::size_t window_begin = 0, cut = 0, resume = 0, window_end = 0;
  Digest before, after;  ///< of their tokens
  bool has_head = true;  ///< Note::path stands in front of it
  bool operator==(const NotedAnchor&) const = default;
};

/// The part of a document that a restart keeps, so that the same prompts are made again and find
/// their KV.
struct Note {
  std::size_t cursor = 0;
  std::size_t text_bytes = 0;                    ///< of the whole text
  std::size_t window_begin = 0, window_end = 0;  ///< of the spine
  std::vector<NotedAnchor> anchors;              ///< the last one used first
  /// Shown of other files, if anything is; else the path is made from the file's name.
  prompt::PathHead path = {};
  std::vector<std::string> files = {};  ///< URIs of the files that `path` shows
  bool operator==(const Note&) const = default;
};

/// Most tokens of a note's path; a longer one is neither written nor read.
inline constexpr std::size_t kNotedPathTokensMax = 16384;
/// Most files of a note; with more of them it has no path.
inline constexpr std::size_t kNotedFilesMax = 256;
/// Most anchors of a note; more are neither written nor read.
inline constexpr std::size_t kNotedAnchorsMax = 16;

/// One line for the document, one for each anchor, one for the path's tokens, and one for each file that it
/// shows; numbers in decimal, digests in hexadecimal.
std::string note_text(const Note& note);
/// Whether a note says that its path shows one of these files. It has their token ids then.
bool shows_any(std::string_view note, const std::set<std::string, std::less<>>& uris);
/// nullopt for anything that note_text() did not write.
std::optional<Note> parse_note(std::string_view text);

NotedAnchor noted(const prompt::Anchor& anchor);
/// The anchor in `snapshot`; nullopt if the text at its places gives other tokens, because the file
/// was changed meanwhile. A change inside the hole moves the text after it by `grown` bytes.
std::optional<prompt::Anchor> anchor_from(const NotedAnchor& noted, const text::Snapshot& snapshot,
                                          std::ptrdiff_t grown, const engine::Tokenizer& tokenizer);

}  // namespace efimd::completion
