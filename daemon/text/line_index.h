#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace efimd::text {

/// The starts of lines. A line ends at "\n", "\r\n" or a lone "\r" (LSP, TextDocument).
///
/// Limits: texts under 4 GiB; four bytes per line.
class LineIndex {
 public:
  explicit LineIndex(std::string_view text);

  std::size_t line_count() const { return starts_.size(); }
  /// First byte of `line`; the text's size for lines past the end.
  std::size_t start(std::size_t line) const;
  /// One past the last byte of the line's content, its terminator left out.
  std::size_t content_end(std::string_view text, std::size_t line) const;
  /// The line's content, its terminator left out; empty for lines past the end.
  std::string_view content(std::string_view text, std::size_t line) const;
  std::size_t line_of(std::size_t byte) const;

  /// Follows the replacement of `removed` bytes at `begin` by `inserted` bytes; `text` is the text
  /// after it. Reads only the inserted bytes and their neighbours, and moves the starts after them.
  void replace(std::string_view text, std::size_t begin, std::size_t removed, std::size_t inserted);

  bool operator==(const LineIndex&) const = default;

 private:
  std::vector<std::uint32_t> starts_;
  std::size_t size_ = 0;  ///< of the text
};

}  // namespace efimd::text
