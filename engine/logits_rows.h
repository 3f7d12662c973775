#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace efimd::engine {

/// The logits after a sequence's last tokens, each row under the position of its token.
///
/// Rows lie at consecutive positions; adding one elsewhere starts over. Thread: one.
class LogitsRows {
 public:
  explicit LogitsRows(int rows_kept) : rows_kept_(rows_kept), rows_max_(rows_kept) {}

  bool has(int position) const { return position >= first_ && position < end(); }
  /// Empty when there is none.
  std::span<const float> at(int position) const {
    if (!has(position)) return {};
    return rows_[static_cast<std::size_t>(position - first_)];
  }

  /// As many rows stay from now on, or the usual number if that is more.
  void make_room(int rows) {
    rows_max_ = std::max(rows, rows_kept_);
    while (std::ssize(rows_) > rows_max_) {
      rows_.erase(rows_.begin());
      ++first_;
    }
  }

  void add(int position, std::span<const float> logits) {
    if (position != end()) rows_.clear();
    if (rows_.empty()) first_ = position;
    std::vector<float> row;
    if (std::ssize(rows_) ==
        rows_max_) {  // The oldest row's memory serves the newest: rows are large.
      row = std::move(rows_.front());
      rows_.erase(rows_.begin());
      ++first_;
    }
    row.assign(logits.begin(), logits.end());
    rows_.push_back(std::move(row));
  }

  /// Forgets the rows from `position` on.
  void drop_from(int position) {
    const int kept = std::clamp(position - first_, 0, end() - first_);
    rows_.resize(static_cast<std::size_t>(kept));
  }
  void clear() { rows_.clear(); }

 private:
  int end() const { return first_ + static_cast<int>(rows_.size()); }

  const int rows_kept_;
  int rows_max_;
  int first_ = 0;
  std::vector<std::vector<float>> rows_;
};

}  // namespace efimd::engine
