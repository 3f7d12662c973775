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

/// What is asked for, copied and overwritten at once of a larger body. Other clients wait meanwhile.
constexpr std::size_t kPartBytes = std::size_t{1} << 20;

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

std::string Body::joined() && {
  if (parts_.size() == 1) return std::move(parts_.front());
  std::string text;
  text.reserve(bytes_);
  for (std::string& part : parts_) text += std::exchange(part, {});
  return text;
}

void FrameReader::feed(std::string_view bytes) {
  if (broken_) return;
  if (at_large()) bytes.remove_prefix(collect(bytes));
  pending_.append(bytes);
}

bool FrameReader::at_large() const {
  return in_body_ && !at_oversized() && *content_length_ > kPartBytes;
}

/// Returns how many bytes belong to the body.
std::size_t FrameReader::collect(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && body_.bytes_ < *content_length_) {
    if (body_.bytes_ % kPartBytes == 0)
      body_.parts_.emplace_back().reserve(std::min(kPartBytes, *content_length_ - body_.bytes_));
    const std::size_t room =
        std::min(kPartBytes - body_.bytes_ % kPartBytes, *content_length_ - body_.bytes_);
    const std::string_view next = bytes.substr(taken, room);
    body_.parts_.back() += next;
    body_.bytes_ += next.size();
    taken += next.size();
  }
  return taken;
}

bool FrameReader::inside_frame() const {
  return in_body_ || header_bytes_ > 0 || consumed_ < pending_.size();
}

Result<std::optional<std::string>> FrameReader::next() {
  Result<std::optional<Body>> body = next_in_parts();
  if (!body) return tl::unexpected(std::move(body).error());
  if (!*body) return std::nullopt;
  return std::move(**body).joined();
}

Result<std::optional<Body>> FrameReader::next_in_parts() {
  if (at_oversized()) skip();
  while (!broken_ && !in_body_) {
    if (Result<void> header = read_header(); !header) broken_ = std::move(header).error();
    if (!at_oversized() || !skip()) break;
  }
  if (broken_) {
    pending_ = {};
    body_ = {};
    consumed_ = 0;
    return tl::unexpected(*broken_);
  }
  std::optional<Body> body = in_body_ ? take_body() : std::nullopt;
  if (!body) drop_consumed();
  return body;
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
  if (colon == std::string_view::npos) return bad_header("a line without a colon", line);
  if (!same_name(trimmed(line.substr(0, colon)), "Content-Length")) return {};
  if (content_length_) return bad_header("Content-Length is given twice", line);
  Result<std::size_t> length = content_length_of(trimmed(line.substr(colon + 1)));
  if (!length) return tl::unexpected(std::move(length).error());
  content_length_ = *length;
  return {};
}

/// nullopt if it has not arrived yet.
std::optional<Body> FrameReader::take_body() {
  const bool large = at_large();
  std::span<char> rest = std::span(pending_).subspan(consumed_);
  if (large)
    rest = rest.first(collect({rest.data(), rest.size()}));
  else if (rest.size() < *content_length_)
    return std::nullopt;
  else
    rest = rest.first(*content_length_);
  if (!large) body_ = Body(std::string(rest.data(), rest.size()));
  wipe(std::as_writable_bytes(rest));
  consumed_ += rest.size();
  if (body_.size() < *content_length_) return std::nullopt;
  end_frame();
  return std::exchange(body_, {});
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
/// costs no more than its arrival did, because more bytes were consumed than remain.
void FrameReader::drop_consumed() {
  if (consumed_ == 0 || consumed_ < pending_.size() - consumed_) return;
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
