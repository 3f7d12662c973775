#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace efimd {

/// Where the levels of a search tree over sorted keys stand in one array. The lowest level is the
/// keys; each level above has the first key of each line of the processor's cache below it.
///
/// A search reads a line a level, and asks for the next one as soon as it is known. A binary search
/// reads a line a step, and there are three steps to a level. It is a B+ tree without pointers:
/// https://en.algorithmica.org/hpc/data-structures/s-tree/
template <typename Key>
class LineTree {
 public:
  static constexpr std::size_t kInLine = 64 / sizeof(Key);

  LineTree() = default;
  explicit LineTree(std::size_t keys) {
    std::array<std::size_t, kLevelsMax> sizes{};
    for (std::size_t left = keys; left > 0; left = left > kInLine ? lines_of(left) : 0)
      sizes[levels_++] = left;
    // The highest one first: lines of the small levels share few pages.
    for (std::size_t level = levels_; level-- > 0;) {
      begins_[level] = size_;
      sizes_[level] = sizes[level];
      size_ += lines_of(sizes[level]) * kInLine;
    }
  }

  /// Keys of all levels: the array's size.
  std::size_t size() const { return size_; }
  std::size_t levels() const { return levels_; }
  /// Where the lowest level is in the array.
  std::size_t begin() const { return levels_ == 0 ? 0 : begins_[0]; }

  /// Writes the levels above the lowest one.
  void build(std::span<Key> all) const {
    for (std::size_t level = 1; level < levels_; ++level)
      for (std::size_t i = 0; i < sizes_[level]; ++i)
        all[begins_[level] + i] = all[begins_[level - 1] + i * kInLine];
  }

  /// Asks for the highest levels, up to kTopLines lines.
  void prefetch_top(const Key* all) const {
    constexpr std::size_t kTopLines = 6;
    for (std::size_t key = 0; key < std::min(begin() + 1, kTopLines * kInLine); key += kInLine)
      __builtin_prefetch(all + key);
  }

  /// How many keys of `level` come before, by `before(key)`, where `above` of the level above do.
  /// Asks for the line that the level below is asked about next.
  template <typename Before>
  std::size_t narrow(const Key* all, std::size_t level, std::size_t above,
                     const Before& before) const {
    if (level + 1 < levels_ && above == 0) return 0;
    const std::size_t line = level + 1 < levels_ ? (above - 1) * kInLine : 0;
    const std::size_t end = std::min(sizes_[level], line + kInLine);
    std::size_t found = line;
    for (std::size_t i = line; i < end; ++i) found += before(all[begins_[level] + i]) ? 1 : 0;
    if (level > 0 && found > 0)
      __builtin_prefetch(all + begins_[level - 1] + (found - 1) * kInLine);
    return found;
  }

  /// How many keys come before.
  template <typename Before>
  std::size_t count(const Key* all, const Before& before) const {
    std::size_t found = 0;
    for (std::size_t level = levels_; level-- > 0;) found = narrow(all, level, found, before);
    return found;
  }

 private:
  static constexpr std::size_t kLevelsMax = 12;  ///< 8^12 keys
  static constexpr std::size_t lines_of(std::size_t keys) { return (keys + kInLine - 1) / kInLine; }

  std::array<std::size_t, kLevelsMax> begins_{}, sizes_{};
  std::size_t levels_ = 0, size_ = 0;
};

}  // namespace efimd
