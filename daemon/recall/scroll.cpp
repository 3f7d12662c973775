#include "daemon/recall/scroll.h"

#include <algorithm>
#include <utility>

namespace efimd::recall {

void Scroll::append(std::string_view text, Source source, std::string_view path,
                    std::uint64_t number) {
  parts_.push_back({gone_ + text_.size(), text.size(), source, std::string(path), number});
  text_.append(text).push_back('\0');
}

void Scroll::drop_first() {
  const std::size_t bytes = parts_.front().bytes + 1;
  text_.erase(0, bytes);
  gone_ += bytes;
  parts_.pop_front();
}

void Scroll::forget(std::string_view path) {
  const bool holds_it = std::ranges::find(parts_, path, &Part::path) != parts_.end();
  if (!holds_it) return;
  Scroll kept;
  for (const Part& part : parts_)
    if (part.path != path)
      kept.append(std::string_view(text_).substr(part.begin - gone_, part.bytes), part.source,
                  part.path, part.number);
  *this = std::move(kept);
}

Placed Scroll::part_at(std::size_t at) const {
  const auto behind = std::ranges::upper_bound(parts_, gone_ + at, {}, &Part::begin);
  const Part& part = *std::prev(behind);
  const std::size_t begin = part.begin - gone_;
  return {{std::string_view(text_).substr(begin, part.bytes), part.source, part.path}, begin};
}

}  // namespace efimd::recall
