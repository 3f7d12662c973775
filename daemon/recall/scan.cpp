#include "daemon/recall/scan.h"

#include <algorithm>
#include <array>

// A function that is compiled for several kinds of CPU, the best of which is taken when the program
// starts. Not under sanitizers, which are not ready that early.
#if defined(__x86_64__) && defined(__linux__) && !defined(EFIMD_SANITIZED)
#define EFIMD_FOR_EACH_CPU __attribute__((target_clones("default", "avx2")))
#else
#define EFIMD_FOR_EACH_CPU
#endif

namespace efimd::recall {

namespace {

constexpr std::size_t kNeedleMax = 4;
/// Beside 64 bytes a block, 128 halve what joining a block's places into one answer costs.
constexpr std::size_t kBlock = 128;
/// Of a block with the needle, the parts that are looked at alone.
constexpr std::size_t kPart = 32;

using Needle = std::array<char, kNeedleMax>;

/// Whether any of the `places` places from `at` on begins with the needle; each needs kNeedleMax
/// readable bytes.
template <std::size_t places>
[[gnu::always_inline]] inline bool any_begins(const char* at, const Needle& needle) {
  unsigned char any = 0;
  for (std::size_t i = 0; i < places; ++i) {
    const int differs = (at[i] ^ needle[0]) | (at[i + 1] ^ needle[1]) | (at[i + 2] ^ needle[2]) |
                        (at[i + 3] ^ needle[3]);
    any |= static_cast<unsigned char>(static_cast<unsigned char>(differs) == 0 ? 0xFF : 0);
  }
  return any != 0;
}

/// The end of the last block with the needle among those of kBlock places that end at `end`, where
/// the one before begins, and so on; less than kBlock if there is none.
EFIMD_FOR_EACH_CPU std::size_t block_with(const char* text, std::size_t end, const Needle& needle) {
  while (end >= kBlock && !any_begins<kBlock>(text + end - kBlock, needle)) end -= kBlock;
  return end;
}

}  // namespace

std::vector<std::size_t> ends_of(std::string_view needle, std::string_view text) {
  std::vector<std::size_t> ends;
  needle = needle.substr(needle.size() - std::min(needle.size(), kNeedleMax));
  if (needle.empty() || text.size() < needle.size()) return ends;
  Needle bytes{};
  std::ranges::copy(needle, bytes.begin());
  const auto look = [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = end; at-- > begin && ends.size() < kPlacesMax;)
      if (text[at] == needle[0] && text.substr(at).starts_with(needle))
        ends.push_back(at + needle.size());
  };
  const std::size_t places = text.size() - needle.size() + 1;
  const bool whole = needle.size() == kNeedleMax;
  std::size_t at = places;
  for (; whole && at >= kBlock && ends.size() < kPlacesMax; at -= kBlock) {
    at = block_with(text.data(), at, bytes);
    if (at < kBlock) break;
    for (std::size_t end = at; end > at - kBlock; end -= kPart)
      if (any_begins<kPart>(text.data() + end - kPart, bytes)) look(end - kPart, end);
  }
  look(0, at);
  return ends;
}

}  // namespace efimd::recall
