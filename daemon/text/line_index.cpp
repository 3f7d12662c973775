#include "daemon/text/line_index.h"

#include <algorithm>

namespace efimd::text {

namespace {

/// Whether a line starts at `byte` (> 0) depends on the bytes on its two sides only.
bool starts_line(std::string_view text, std::size_t byte) {
  const char before = text[byte - 1];
  return before == '\n' || (before == '\r' && (byte == text.size() || text[byte] != '\n'));
}

/// Line starts in [begin, end], `begin` > 0. Nearly every byte of a text is above '\r'.
void append_starts(std::vector<std::uint32_t>& starts, std::string_view text, std::size_t begin,
                   std::size_t end) {
  for (std::size_t byte = begin; byte <= end; ++byte) {
    if (static_cast<unsigned char>(text[byte - 1]) > '\r') continue;
    if (starts_line(text, byte)) starts.push_back(static_cast<std::uint32_t>(byte));
  }
}

}  // namespace

LineIndex::LineIndex(std::string_view text) : starts_{0}, size_(text.size()) {
  append_starts(starts_, text, 1, text.size());
}

std::size_t LineIndex::start(std::size_t line) const {
  return line < starts_.size() ? starts_[line] : size_;
}

std::size_t LineIndex::content_end(std::string_view text, std::size_t line) const {
  const std::size_t begin = start(line);
  std::size_t end = start(line + 1);
  if (end > begin && text[end - 1] == '\n') --end;
  if (end > begin && text[end - 1] == '\r') --end;
  return end;
}

std::string_view LineIndex::content(std::string_view text, std::size_t line) const {
  const std::size_t begin = start(line);
  return text.substr(begin, content_end(text, line) - begin);
}

std::size_t LineIndex::line_of(std::size_t byte) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), byte);
  return static_cast<std::size_t>(next - starts_.begin()) - 1;
}

// A start depends on the bytes on its two sides, so those before `begin` and after begin + removed
// stay. The ones on the edit's borders are computed again, because "\r" and "\n" may join or part
// there.
void LineIndex::replace(std::string_view text, std::size_t begin, std::size_t removed,
                        std::size_t inserted) {
  const auto from = std::lower_bound(starts_.begin() + 1, starts_.end(), begin);
  const auto to = std::upper_bound(from, starts_.end(), begin + removed);
  const auto grown =
      static_cast<std::uint32_t>(inserted - removed);  // modulo 2^32, as the sum below
  std::for_each(to, starts_.end(), [grown](std::uint32_t& start) { start += grown; });
  std::vector<std::uint32_t> fresh;
  append_starts(fresh, text, std::max<std::size_t>(begin, 1), begin + inserted);
  const auto overwritten = std::min(fresh.end() - fresh.begin(), to - from);
  const auto rest = std::copy(fresh.begin(), fresh.begin() + overwritten, from);
  if (rest != to) {
    starts_.erase(rest, to);
  } else {
    starts_.insert(to, fresh.begin() + overwritten, fresh.end());
  }
  size_ = text.size();
}

}  // namespace efimd::text
