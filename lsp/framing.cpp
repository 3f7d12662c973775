#include "lsp/framing.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "base/wipe.h"
#include "lsp/excerpt.h"

namespace efimd::lsp {

namespace {

/// Memory that an idle connection may keep after one huge message.
constexpr std::size_t kIdleBytesMax = std::size_t{1} << 20;

/// A body's memory is asked for as a whole once this part of it has come: growing in steps would copy and
/// overwrite half of 128 MiB at once, and a peer that only announces it gets none.
constexpr std::size_t kReservedPart = 8;

constexpr const char* kRemedy = "close the connection: where its next message starts is unknown";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

tl::unexpected<Error> bad_header(std::string_view what, std::string_view bytes) {
  return fail(Fault::kBadInput, "message header: " + std::string(what) + ": " + excerpt(bytes),
              kRemedy);
}

}  // namespace

Result<std::size_t> FrameReader::content_length_of(std::string_view value) const {
  std::size_t length = 0;
  const char* end = value.data() + value.size();
  const auto [stop, status] = std::from_chars(value.data(), end, length);
  if (status == std::errc::result_out_of_range)
    return bad_header("Content-Length is too large", value);
  if (status != std::errc{} || stop != end)
    return bad_header("Content-Length is no count of bytes", value);
  const std::size_t max = oversized_ == Oversized::kSkipped ? kSkippedBytesMax : kMessageBytesMax;
  if (length > max) return bad_header("Content-Length is over " + std::to_string(max), value);
  return length;
}

void FrameReader::feed(std::string_view bytes) {
  if (broken_) return;
  pending_.append(bytes);
  if (!in_body_ || at_oversized() || *content_length_ <= kIdleBytesMax) return;
  if (pending_.size() >= *content_length_ / kReservedPart)
    pending_.reserve(*content_length_ + bytes.size());
}

bool FrameReader::inside_frame() const {
  return in_body_ || header_bytes_ > 0 || consumed_ < pending_.size();
}

Result<std::optional<std::string>> FrameReader::next() {
  if (at_oversized()) skip();
  while (!broken_ && !in_body_) {
    if (Result<void> header = read_header(); !header) broken_ = std::move(header).error();
    if (!at_oversized() || !skip()) break;
  }
  if (broken_) {
    pending_ = {};
    consumed_ = 0;
    return tl::unexpected(*broken_);
  }
  if (!in_body_ || pending_.size() - consumed_ < *content_length_) {
    // A large body that begins its memory is moved out of it as it is.
    drop_consumed(in_body_ && *content_length_ > kIdleBytesMax);
    return std::nullopt;
  }
  return take_body();
}

/// Reads whole header lines, as far as they have arrived; the blank one sets in_body_.
Result<void> FrameReader::read_header() {
  while (!in_body_) {
    const std::size_t from = std::max(scanned_, consumed_);
    const std::size_t newline = pending_.find('\n', from);
    const std::size_t line_end = newline == std::string::npos ? pending_.size() : newline + 1;
    if (header_bytes_ + (line_end - consumed_) > kHeaderBytesMax)
      return bad_header("longer than " + std::to_string(kHeaderBytesMax) + " bytes",
                        std::string_view(pending_).substr(consumed_));
    scanned_ = line_end;
    if (newline == std::string::npos) return {};
    std::string_view line(pending_.data() + consumed_, newline - consumed_);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    header_bytes_ += line_end - consumed_;
    consumed_ = line_end;
    if (Result<void> read = read_header_line(line); !read) return read;
  }
  return {};
}

Result<void> FrameReader::read_header_line(std::string_view line) {
  if (line.empty()) {
    if (!content_length_) return bad_header("Content-Length is missing", line);
    in_body_ = true;
    return {};
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bad_header("a line without \":\"", line);
  if (!same_name(trimmed(line.substr(0, colon)), "Content-Length")) return {};
  if (content_length_) return bad_header("Content-Length is given twice", line);
  Result<std::size_t> length = content_length_of(trimmed(line.substr(colon + 1)));
  if (!length) return tl::unexpected(std::move(length).error());
  content_length_ = *length;
  return {};
}

std::string FrameReader::take_body() {
  const std::size_t length = *content_length_;
  std::string body;
  if (consumed_ == 0 && length > kIdleBytesMax) {
    std::string rest = pending_.substr(length);
    wipe(std::as_writable_bytes(std::span(pending_).subspan(length)));
    pending_.resize(length);
    body = std::exchange(pending_, std::move(rest));
  } else {
    body = pending_.substr(consumed_, length);
    wipe(std::as_writable_bytes(std::span(pending_).subspan(consumed_, length)));
    consumed_ += length;
  }
  end_frame();
  return body;
}

bool FrameReader::skip() {
  const std::size_t arrived = std::min(pending_.size() - consumed_, *content_length_ - dropped_);
  wipe(std::as_writable_bytes(std::span(pending_).subspan(consumed_, arrived)));
  consumed_ += arrived;
  dropped_ += arrived;
  if (dropped_ < *content_length_) return false;
  skipped_ = std::exchange(dropped_, 0);
  end_frame();
  return true;
}

void FrameReader::end_frame() {
  scanned_ = header_bytes_ = 0;
  content_length_.reset();
  in_body_ = false;
}

/// Called at most once per feed(), when only an unfinished frame is left. Moving it to the front
/// costs no more than its arrival did if more bytes were consumed than remain, or if `now` comes with
/// the end of a header: what was fed with it is short.
void FrameReader::drop_consumed(bool now) {
  if (consumed_ == 0 || (!now && consumed_ < pending_.size() - consumed_)) return;
  const std::size_t left = pending_.size() - consumed_;
  std::copy(pending_.begin() + static_cast<std::ptrdiff_t>(consumed_), pending_.end(),
            pending_.begin());
  wipe(std::as_writable_bytes(std::span(pending_).subspan(left)));
  pending_.resize(left);
  scanned_ -= std::min(scanned_, consumed_);
  consumed_ = 0;
  if (pending_.size() < kIdleBytesMax && pending_.capacity() > 2 * kIdleBytesMax)
    pending_.shrink_to_fit();
}

std::string framed(std::string_view body) {
  std::string frame = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  frame.reserve(frame.size() + body.size());
  frame += body;
  return frame;
}

}  // namespace efimd::lsp
