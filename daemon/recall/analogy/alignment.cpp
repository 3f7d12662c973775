#include "daemon/recall/analogy/alignment.h"

#include <algorithm>
#include <array>

#include "daemon/recall/anchors.h"

namespace efimd::recall {

namespace {

/// Each line around the cursor is read through this for each key.
constexpr auto kIsWord = [] {
  std::array<bool, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte)
    table[byte] = is_word(static_cast<char>(static_cast<unsigned char>(byte)));
  return table;
}();

bool is_in_word(char c) { return kIsWord[static_cast<unsigned char>(c)]; }

bool is_number(std::string_view token) { return token[0] >= '0' && token[0] <= '9'; }

}  // namespace

std::string_view Tokens::next() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_in_word(text_[at_])) ++at_;
  if (at_ == begin && at_ < text_.size()) ++at_;
  return text_.substr(begin, at_ - begin);
}

bool Alignment::add(std::string_view theirs, std::string_view ours) {
  if (theirs == ours) {
    ++same_;
    same_bytes_ += ours.size();
    return true;
  }
  if (theirs.empty() || ours.empty() || !is_word(theirs[0]) || !is_word(ours[0])) return false;
  if (is_number(theirs) != is_number(ours)) return false;
  const auto known = std::ranges::find(pairs(), theirs, &Pair::theirs);
  if (known != pairs().end()) return known->ours == ours;
  if (count_ == kPairsMax) return false;
  pairs_[count_++] = {theirs, ours};
  return true;
}

bool Alignment::add_line(std::string_view theirs, std::string_view ours) {
  Tokens left(theirs), right(ours);
  for (;;) {
    const std::string_view their = left.next(), our = right.next();
    if (their.empty() || our.empty()) return their.empty() && our.empty();
    if (!add(their, our)) return false;
  }
}

}  // namespace efimd::recall
