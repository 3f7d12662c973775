#include "daemon/recall/scan.h"

#include <algorithm>
#include <array>

namespace efimd::recall {

namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kNeedleMax = 4;

/// Whether any of the kBlock places from `at` on begins with the needle; each needs kNeedleMax
/// readable bytes.
bool any_begins(const char* at, const std::array<char, kNeedleMax>& needle) {
  unsigned char any = 0;
  const auto equal = [&](std::size_t i, std::size_t byte) {
    return static_cast<unsigned char>(at[i + byte] == needle[byte]);
  };
  for (std::size_t i = 0; i < kBlock; ++i)
    any |= static_cast<unsigned char>(equal(i, 0) & equal(i, 1) & equal(i, 2) & equal(i, 3));
  return any != 0;
}

}  // namespace

std::vector<std::size_t> ends_of(std::string_view needle, std::string_view text) {
  std::vector<std::size_t> ends;
  needle = needle.substr(needle.size() - std::min(needle.size(), kNeedleMax));
  if (needle.empty() || text.size() < needle.size()) return ends;
  std::array<char, kNeedleMax> bytes{};
  std::ranges::copy(needle, bytes.begin());
  const auto look = [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = end; at-- > begin && ends.size() < kPlacesMax;)
      if (text.substr(at).starts_with(needle)) ends.push_back(at + needle.size());
  };
  const std::size_t places = text.size() - needle.size() + 1;
  const bool whole = needle.size() == kNeedleMax;
  std::size_t at = places;
  for (; whole && at >= kBlock && ends.size() < kPlacesMax; at -= kBlock)
    if (any_begins(text.data() + at - kBlock, bytes)) look(at - kBlock, at);
  look(0, at);
  return ends;
}

}  // namespace efimd::recall
