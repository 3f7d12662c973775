#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace efimd::lsp {

/// A header longer than this is refused: no client sends more than two short lines.
inline constexpr std::size_t kHeaderBytesMax = 4096;
/// A longer body is refused. Twice the largest document, as JSON writes "\n" in two bytes.
inline constexpr std::size_t kMessageBytesMax = std::size_t{128} << 20;

/// Cuts a byte stream into message bodies:
///
///   Content-Length: 52\r\n        any case, any order; other headers (Content-Type) are ignored;
///   \r\n                          a lone "\n" ends a header line too
///   {"jsonrpc":"2.0",...}         52 bytes
///
/// Thread: its owner's.  Limits: holds one body and what was fed behind it; each byte is copied at
/// most twice. Fails with kBadInput, naming the bytes, when a header is malformed. The borders of
/// later frames are unknown from there on: every further next() gives the same error, and the
/// caller closes the connection.
class FrameReader {
 public:
  /// Bytes as they came, cut anywhere.
  void feed(std::string_view bytes);
  /// The next whole body, or nullopt when it has not arrived yet. To be called until nullopt after
  /// each feed().
  Result<std::optional<std::string>> next();
  /// Whether the stream stands inside a frame: an end of the stream here is a cut message,
  /// elsewhere a clean one.
  bool inside_frame() const;

 private:
  Result<void> read_header_line(std::string_view line);
  Result<void> read_header();
  std::string take_body();
  void drop_consumed();

  std::string pending_;  ///< fed bytes; those before consumed_ are done with
  std::size_t consumed_ = 0;
  std::size_t scanned_ =
      0;  ///< no header line ends before this byte of pending_ that was not read yet
  std::size_t header_bytes_ = 0;               ///< of the current frame, so far
  std::optional<std::size_t> content_length_;  ///< once its line was read
  bool in_body_ = false;                       ///< the header is complete
  std::optional<Error> broken_;
};

/// `body` with its header.
std::string framed(std::string_view body);

}  // namespace efimd::lsp
