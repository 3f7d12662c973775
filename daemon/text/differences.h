#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/text/document.h"

namespace efimd::text {

/// Where a text differs from an older one: spans that were replaced. Between them both are the same.
///
/// A value. Cost: add() some nanoseconds a span, between() one pass over both texts.
class Differences {
 public:
  struct Span {
    std::size_t old_begin = 0, old_end = 0;  ///< bytes of the older text
    std::size_t begin = 0, end = 0;          ///< bytes of the newer one that stand for them
    bool operator==(const Span&) const = default;
  };
  /// More spans are joined, those with the least between them first.
  static constexpr std::size_t kSpansMax = 8;
  /// Spans with less between them become one.
  static constexpr std::size_t kApartMin = 64;

  /// None: the texts are the same.
  Differences() = default;
  /// One span, without what both texts begin and end with.
  static Differences between(std::string_view older, std::string_view newer);

  /// The newer text is edited.
  void add(const Edit& edit);

  const std::vector<Span>& spans() const { return spans_; }
  /// Where a place between two bytes of the older text is in the newer one; nullopt inside of a span.
  std::optional<std::size_t> moved(std::size_t place) const;

 private:
  void join_closest();
  std::vector<Span> spans_;  ///< ascending
};

}  // namespace efimd::text
