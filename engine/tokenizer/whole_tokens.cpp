#include "engine/tokenizer/whole_tokens.h"

#include <algorithm>
#include <utility>

namespace efimd::engine {
namespace {

unsigned char first_byte(std::string_view text) { return static_cast<unsigned char>(text.front()); }

}  // namespace

WholeTokens::WholeTokens(std::vector<Whole> wholes) : wholes_(std::move(wholes)) {
  std::stable_sort(wholes_.begin(), wholes_.end(), [](const Whole& a, const Whole& b) {
    return std::pair(first_byte(a.text), b.text.size()) <
           std::pair(first_byte(b.text), a.text.size());
  });
  for (const Whole& whole : wholes_) ++begins_[first_byte(whole.text) + std::size_t{1}];
  for (std::size_t byte = 1; byte < begins_.size(); ++byte) begins_[byte] += begins_[byte - 1];
}

const WholeTokens::Whole* WholeTokens::find(std::string_view text) const {
  const std::size_t byte = first_byte(text);
  for (std::size_t i = begins_[byte]; i < begins_[byte + 1]; ++i)
    if (text.starts_with(wholes_[i].text)) return &wholes_[i];
  return nullptr;
}

}  // namespace efimd::engine
