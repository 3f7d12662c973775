#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "daemon/recall/search.h"

namespace efimd::recall {

/// Texts behind one another in one memory, the oldest first. A scan reads them as one: texts of their
/// own would each be a wait for memory.
class Scroll {
 public:
  /// `number` says which of several scrolls' texts is the oldest.
  void append(std::string_view text, Source source, std::string_view path, std::uint64_t number);
  void drop_first();
  void forget(std::string_view path);

  bool empty() const { return parts_.empty(); }
  std::size_t count() const { return parts_.size(); }
  std::uint64_t first_number() const { return parts_.front().number; }
  /// Of the texts, each with the zero byte after it.
  std::size_t bytes() const { return text_.size(); }

  std::string_view text() const { return text_; }
  /// The text that byte `at` of text() is in.
  Placed part_at(std::size_t at) const;

 private:
  struct Part {
    std::size_t begin;  ///< counted from the first byte that the scroll ever had
    std::size_t bytes;
    Source source;
    std::string path;
    std::uint64_t number;
  };

  std::string text_;
  std::size_t gone_ = 0;  ///< bytes before text_
  std::deque<Part> parts_;
};

}  // namespace efimd::recall
