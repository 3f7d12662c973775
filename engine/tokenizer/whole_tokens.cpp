#include "engine/tokenizer/whole_tokens.h"

#include <algorithm>
#include <utility>

namespace efimd::engine {
namespace {

unsigned char first_byte(std::string_view text) { return static_cast<unsigned char>(text.front()); }

}  // namespace

WholeTokens::WholeTokens(std::vector<Whole> wholes) : wholes_(std::move(wholes)) {
  std::ranges::stable_sort(wholes_, {}, &Whole::text);
  for (const Whole& whole : wholes_) begins_[first_byte(whole.text)] = true;
}

// A file may mark all of its tokens as user-defined: one binary search for each byte that agrees.
const WholeTokens::Whole* WholeTokens::find(std::string_view text) const {
  if (!begins_[first_byte(text)]) return nullptr;
  const Whole* longest = nullptr;
  auto begin = wholes_.begin(), end = wholes_.end();
  for (std::size_t size = 1; size <= text.size() && begin != end; ++size) {
    const auto leading = [&](const Whole& whole) {
      return std::string_view(whole.text).substr(0, size);
    };
    begin = std::ranges::lower_bound(begin, end, text.substr(0, size), {}, leading);
    end = std::ranges::upper_bound(begin, end, text.substr(0, size), {}, leading);
    // The shortest stand first.
    if (begin != end && begin->text.size() == size) longest = &*begin;
    begin = std::partition_point(begin, end,
                                 [&](const Whole& whole) { return whole.text.size() == size; });
  }
  return longest;
}

}  // namespace efimd::engine
