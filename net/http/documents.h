#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
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
};

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
///   URIs are efimd-http:/N/NAME. The scheme is none that a file has, so that no KV of them comes to
///   the disk (ST-2) and none is taken for a file of the user's.
///
/// Thread: its owner's. Limits: kDocumentsMax, the one that was not used for longest is closed
/// first; kTextBytesMax of one, beyond which only the window is kept.
class Documents {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kDocumentsMax = 16;
  static constexpr std::size_t kTextBytesMax = std::size_t{4} << 20;
  static constexpr auto kIdleMax = std::chrono::minutes(10);
  /// Windows of one file share at least so much of their text.
  static constexpr double kLikenessMin = 0.5;

  Placed place(const Surroundings& text, Clock::time_point now);
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

  std::list<Open> open_;  ///< the one used last first
  std::uint64_t opened_ = 0;
};

}  // namespace efimd::http
