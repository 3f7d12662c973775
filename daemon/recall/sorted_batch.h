#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/huge_pages.h"
#include "base/line_tree.h"
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

  std::size_t anchor_count() const { return anchor_count_; }
  /// The byte in the batch's text of the anchor with this rank.
  std::size_t anchor(std::size_t rank) const;
  /// The batch's text from one of its bytes on, over the ends of files.
  std::string_view text_from(std::size_t byte) const {
    return std::string_view(text_).substr(byte);
  }
  /// A query's context as far as it counts, with zero bytes before it as a batch's first file has.
  class Context;
  struct Sought {
    const Batch* batch;
    const Context* context;
  };
  /// Of each, the rank of the first anchor whose context is not before that one. All are searched step
  /// by step together, so that they wait for memory at the same time.
  static std::vector<std::size_t> ranks_of(std::span<const Sought> sought);
  /// Brings what agreement() will read of the anchor's surroundings into the processor's cache.
  void prefetch(std::size_t rank) const;
  /// The same for what file_at() will read first.
  void prefetch_files() const { files_.prefetch_top(begins_.data()); }
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
  /// Ranks between which a search's answer is; `middle` is compared next.
  struct Narrowed {
    Sought sought;
    std::size_t begin, end, middle;
    const char* context_end;  ///< of the anchor with rank `middle`
  };
  /// What the samples say alone.
  static std::vector<Narrowed> narrowed_by_samples(std::span<const Sought> sought);
  const std::uint8_t* anchor_bytes(std::size_t rank) const;
  std::size_t begin_of(std::size_t file) const { return begins_[files_.begin() + file]; }

  static constexpr std::size_t kAnchorBytes = 3;  ///< enough for kBatchBytesMax
  /// One anchor in so many has its context's last bytes as a sample. What is left of a search reads
  /// text at four places or five, which lie far apart. Costs 0.3 bytes a byte of text.
  static constexpr std::size_t kSampledEvery = 16;
  static constexpr std::size_t samples_of(std::size_t anchors) {
    return (anchors + kSampledEvery - 1) / kSampledEvery;
  }

  std::string family_;
  std::basic_string<char, std::char_traits<char>, RandomAccessAllocator<char>>
      text_;  ///< padding, then each file with a zero byte after it
  LineTree<std::uint32_t> files_;
  std::vector<std::uint32_t> begins_;  ///< of the files in text_, as the tree files_
  std::vector<std::string> paths_;
  LineTree<std::uint64_t> samples_;
  /// The samples' tree, then kAnchorBytes for each anchor. In one table, so that huge pages hold both.
  std::vector<std::uint64_t, RandomAccessAllocator<std::uint64_t>> ranks_;
  std::size_t anchor_count_ = 0;
};

class Batch::Context {
 public:
  explicit Context(std::string_view before);
  const char* end() const { return storage_ + sizeof(storage_); }

 private:
  char storage_[kContextBytesMax + sizeof(std::uint64_t)] = {};
};

}  // namespace efimd::recall
