#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace efimd::lsp {

/// A header longer than this is refused: no client sends more than two short lines.
inline constexpr std::size_t kHeaderBytesMax = 4096;
/// A longer body is refused or skipped. Twice the largest document, as JSON writes "\n" in two
/// bytes.
inline constexpr std::size_t kMessageBytesMax = std::size_t{128} << 20;
/// A body that claims more is refused in any case: no editor opens such a file.
inline constexpr std::size_t kSkippedBytesMax = std::size_t{4} << 30;

/// A message body, in the parts that its memory was asked for in.
class Body {
 public:
  Body() = default;
  explicit Body(std::string text) : bytes_(text.size()) { parts_.push_back(std::move(text)); }
  std::size_t size() const { return bytes_; }
  /// As one text. Each part is freed once it is copied.
  std::string joined() &&;

 private:
  friend class FrameReader;
  std::vector<std::string> parts_;
  std::size_t bytes_ = 0;
};

/// Cuts a byte stream into message bodies:
///
///   Content-Length: 52\r\n        any case, any order; other headers (Content-Type) are ignored;
///   \r\n                          a lone "\n" ends a header line too
///   {"jsonrpc":"2.0",...}         52 bytes
///
/// Thread: its owner's.  Limits: holds one body and what was fed after it; each byte is copied at
/// most twice, 1 MiB at once. Bodies that were taken are overwritten here. Fails with kBadInput, naming
/// the bytes, if a header is malformed. After that nobody knows where frames begin: every further next()
/// gives the same error, and the caller closes the connection.
class FrameReader {
 public:
  /// The fate of bodies over kMessageBytesMax. They end the stream, or they are dropped as they
  /// come, so that an editor which opens a huge file keeps its server.
  enum class Oversized { kRefused, kSkipped };
  FrameReader() = default;
  explicit FrameReader(Oversized oversized) : oversized_(oversized) {}

  /// Bytes as they came, cut anywhere.
  void feed(std::string_view bytes);
  /// The next whole body; nullopt if it has not arrived yet. Call it until nullopt after each
  /// feed().
  Result<std::optional<std::string>> next();
  /// next(), for callers with another thread for Body::joined(), which copies all of a large one.
  Result<std::optional<Body>> next_in_parts();
  /// The size of the body that next() skipped since the last call; 0 if it skipped none.
  std::size_t take_skipped() { return std::exchange(skipped_, 0); }
  /// Whether the stream stands inside a frame. If it ends here, a message was cut; elsewhere the
  /// end is clean.
  bool inside_frame() const;
  /// Bytes that wait for the rest of their message.
  std::size_t waiting_bytes() const { return pending_.size() - consumed_ + body_.size(); }

 private:
  Result<void> read_header_line(std::string_view line);
  Result<void> read_header();
  Result<std::size_t> content_length_of(std::string_view value) const;
  /// Drops what has arrived of an oversized body; whether that was all of it.
  bool skip();
  bool at_oversized() const { return in_body_ && *content_length_ > kMessageBytesMax; }
  /// A body that is collected in parts as it comes.
  bool at_large() const;
  std::size_t collect(std::string_view bytes);
  void end_frame();
  std::optional<Body> take_body();
  void drop_consumed();

  Oversized oversized_ = Oversized::kRefused;
  std::size_t skipped_ = 0;
  std::size_t dropped_ = 0;  ///< bytes left of the body that next() skips
  Body body_;                ///< what came of a large one
  std::string pending_;      ///< other fed bytes; those before consumed_ are done with
  std::size_t consumed_ = 0;
  /// No header line ends before this byte of pending_ that was not read yet.
  std::size_t scanned_ = 0;
  std::size_t header_bytes_ = 0;               ///< of the current frame, so far
  std::optional<std::size_t> content_length_;  ///< once its line was read
  bool in_body_ = false;                       ///< the header is complete
  std::optional<Error> broken_;
};

/// `body` with its header.
std::string framed(std::string_view body);

}  // namespace efimd::lsp
