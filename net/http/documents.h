#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lsp/protocol.h"
#include "net/http/window.h"

namespace efimd::http {

/// Text around a cursor, as a request brings it.
struct Surroundings {
  std::string before;
  std::string after;
  std::string path = {};  ///< of the file, if the client says it; a name only, never opened
  bool is_empty() const { return before.empty() && after.empty(); }
};

/// Whole lines before the cursor's and after it, at most 1 KiB: an editor's document with them may be
/// the same file.
std::string_view lines_above(std::string_view before);
std::string_view lines_below(std::string_view after);

/// Where a request's text lies in a document of the daemon.
struct Placed {
  std::string uri;
  std::int32_t version = 0;
  lsp::Position cursor;  ///< character in bytes
  std::string rest;      ///< of the cursor's line
  /// didClose, didOpen and didChange bodies that bring the daemon there, to be sent in order.
  std::vector<std::string> messages;
};

/// The documents that HTTP clients are editing, as far as their requests show them. HTTP knows no
/// documents: each request is laid over the text that it continues (window.h), so that the daemon
/// sees the small edit that the user made.
///
///   If an editor has the file open, its document is copied whole, under its own URI, so that its
///   prompts, and with them their KV, are those of the editor's.
///
///   Other URIs are efimd-http:/N/NAME. The scheme is none that a file has, so that no KV of them comes to
///   the disk (ST-2) and none is taken for a file of the user's.
///
/// Thread: its owner's. Limits: kDocumentsMax, the one that was not used for longest is closed
/// first; kTextBytesMax of one, beyond which only the window is kept.
class Documents {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kDocumentsMax = 16;
  static constexpr std::size_t kTextBytesMax = lsp::FindDocumentParams::kTextBytesMax;
  static constexpr auto kIdleMax = std::chrono::minutes(10);
  /// Windows of one file share at least so much of their text.
  static constexpr double kLikenessMin = 0.5;

  /// In an open document, or in a new one.
  Placed place(const Surroundings& text, Clock::time_point now);
  /// nullopt: no open document goes on so.
  std::optional<Placed> place_in_open(const Surroundings& text, Clock::time_point now);
  /// An editor's document; place() goes on with a copy of it if `text` shows a part of it. The
  /// didOpen body, or nothing if it does not.
  struct Edited {
    std::string uri, language_id, text;
  };
  std::vector<std::string> adopt(Edited document, const Surroundings& text, Clock::time_point now);
  /// didClose bodies of the documents that were not used for kIdleMax.
  std::vector<std::string> close_idle(Clock::time_point now);
  /// The daemon forgot them all.
  void clear() { open_.clear(); }
  std::size_t size() const { return open_.size(); }

 private:
  struct Open {
    std::string uri;
    std::string path;
    std::string text;
    std::int32_t version = 1;
    std::size_t before_max = 0;  ///< bytes of the largest window, each side
    std::size_t after_max = 0;
    Clock::time_point used;
  };
  struct Match {
    std::list<Open>::iterator open;
    Laid laid;
  };
  Match best_match(const Surroundings& text);
  Placed opened(const Surroundings& text, Clock::time_point now);
  /// As the first, in place of the last one if there are too many; the bodies that tell it.
  std::vector<std::string> add(Open open, const std::string& language_id, Clock::time_point now);

  std::list<Open> open_;  ///< the one used last first
  std::uint64_t opened_ = 0;
};

}  // namespace efimd::http
