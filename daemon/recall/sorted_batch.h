#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/recall/batch.h"

namespace efimd::recall {

/// Files of one family in one text, and its anchors ordered by the text before them. They are
/// ordered by the last byte before, then the last but one, and so on over kContextBytesMax bytes.
/// So the anchors whose context agrees longest with a query's are neighbours of the place where the
/// query would stand.
///
/// Memory: a byte for each byte of text and three for each anchor, of which code has about one in
/// two bytes.
/// Thread: any (immutable).
class Batch {
 public:
  static constexpr std::size_t kContextBytesMax = 64;

  explicit Batch(
      std::span<const File> files, const Between& between = [] {});

  const std::string& family() const { return family_; }
  std::size_t file_count() const { return paths_.size(); }
  const std::string& path(std::size_t file) const { return paths_[file]; }
  std::string_view text(std::size_t file) const;
  /// Text of all files; their places in it come from `file_at`.
  std::size_t text_bytes() const { return text_.size(); }
  std::size_t bytes() const;

  std::size_t anchor_count() const { return anchors_.size() / kAnchorBytes; }
  /// The byte in the batch's text of the anchor with this rank.
  std::size_t anchor(std::size_t rank) const;
  /// The batch's text from one of its bytes on, over the ends of files.
  std::string_view text_from(std::size_t byte) const {
    return std::string_view(text_).substr(byte);
  }
  /// The rank of the first anchor whose context is not before `context`.
  std::size_t rank_of(std::string_view context) const;
  /// Brings what agreement() will read of the anchor's surroundings into the processor's cache.
  void prefetch(std::size_t rank) const;
  /// Equal bytes of `context`, which holds no zero byte, and what stands before the anchor, both read
  /// backwards.
  std::size_t agreement(std::size_t rank, std::string_view context) const;

  /// The file that a byte of the batch's text is in, and where in it.
  struct At {
    std::size_t file = 0;
    std::size_t byte = 0;
  };
  At file_at(std::size_t byte) const;

 private:
  static constexpr std::size_t kAnchorBytes = 3;  ///< enough for kBatchBytesMax
  /// One anchor in so many has its context's last bytes in samples_. So most of a search for a rank
  /// stays in the processor's cache, for 0.06 bytes a byte of text.
  static constexpr std::size_t kSampledEvery = 64;

  std::string family_;
  std::string text_;                   ///< padding, then each file with a zero byte after it
  std::vector<std::uint32_t> begins_;  ///< of the files in text_
  std::vector<std::string> paths_;
  std::vector<std::uint8_t> anchors_;
  std::vector<std::uint64_t> samples_;
};

}  // namespace efimd::recall
