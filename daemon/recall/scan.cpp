#include "daemon/recall/scan.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace efimd::recall {

namespace {

constexpr std::size_t kNeedleMax = 4;
using Needle = std::array<char, kNeedleMax>;

/// As many places as an answer has bits.
constexpr std::size_t kBlock = 64;

/// A block of places, and a bit for each at which the needle begins, the first one lowest.
struct Hits {
  std::size_t end = 0;  ///< of the block
  std::uint64_t places = 0;
};

// Each of these finds the last block with the needle, among those that end at `end`, where that one
// begins, and so on. No block: the end is less than kBlock. A place needs kNeedleMax readable bytes.

/// In a form that compilers turn into vector instructions.
Hits last_hits(const char* text, std::size_t end, const Needle& needle) {
  for (; end >= kBlock; end -= kBlock) {
    const char* const at = text + end - kBlock;
    std::array<unsigned char, kBlock> differs;
    unsigned char any = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      differs[i] = static_cast<unsigned char>((at[i] ^ needle[0]) | (at[i + 1] ^ needle[1]) |
                                              (at[i + 2] ^ needle[2]) | (at[i + 3] ^ needle[3]));
      any |= static_cast<unsigned char>(differs[i] == 0 ? 1 : 0);
    }
    if (any == 0) continue;
    Hits hits{end};
    for (std::size_t i = 0; i < kBlock; ++i)
      hits.places |= std::uint64_t{differs[i] == 0 ? 1U : 0U} << i;
    return hits;
  }
  return {end};
}

#if defined(__x86_64__)
/// A bit for each of 32 places.
[[gnu::target("avx2")]] std::uint32_t hits_avx2(const char* at, const Needle& needle) {
  __m256i equal = _mm256_set1_epi8(-1);
  for (std::size_t i = 0; i < kNeedleMax; ++i)
    equal = _mm256_and_si256(
        equal, _mm256_cmpeq_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + i)),
                                 _mm256_set1_epi8(needle[i])));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(equal));
}

[[gnu::target("avx2")]] Hits last_hits_avx2(const char* text, std::size_t end,
                                            const Needle& needle) {
  for (; end >= kBlock; end -= kBlock) {
    const char* const at = text + end - kBlock;
    const std::uint64_t low = hits_avx2(at, needle), high = hits_avx2(at + kBlock / 2, needle);
    if ((low | high) != 0) return {end, low | high << kBlock / 2};
  }
  return {end};
}
#endif

using LastHits = Hits (*)(const char*, std::size_t, const Needle&);

LastHits for_this_cpu() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) return last_hits_avx2;
#endif
  return last_hits;
}

/// Adds the ends of the places in a block, the last one first.
void add_ends(std::vector<std::size_t>& ends, std::size_t begin, std::uint64_t places) {
  while (places != 0 && ends.size() < kPlacesMax) {
    const auto place = static_cast<std::size_t>(std::bit_width(places)) - 1;
    ends.push_back(begin + place + kNeedleMax);
    places &= ~(std::uint64_t{1} << place);
  }
}

std::vector<std::size_t> ends_with(LastHits last, std::string_view needle, std::string_view text) {
  std::vector<std::size_t> ends;
  needle = needle.substr(needle.size() - std::min(needle.size(), kNeedleMax));
  if (needle.empty() || text.size() < needle.size()) return ends;
  std::size_t left = text.size() - needle.size() + 1;
  if (needle.size() < kNeedleMax) {
    while (left-- > 0 && ends.size() < kPlacesMax)
      if (text.substr(left).starts_with(needle)) ends.push_back(left + needle.size());
    return ends;
  }
  Needle bytes{};
  std::ranges::copy(needle, bytes.begin());
  while (left >= kBlock && ends.size() < kPlacesMax) {
    const Hits hits = last(text.data(), left, bytes);
    left = hits.end;
    if (hits.places == 0) break;
    left -= kBlock;
    add_ends(ends, left, hits.places);
  }
  if (left >= kBlock) return ends;
  // The rest is less than a block: many texts are.
  std::array<char, kBlock + kNeedleMax> rest{};
  std::ranges::copy(text.substr(0, left + kNeedleMax - 1), rest.begin());
  const std::uint64_t places = last(rest.data(), kBlock, bytes).places;
  add_ends(ends, 0, places & ((std::uint64_t{1} << left) - 1));
  return ends;
}

}  // namespace

std::vector<std::size_t> ends_of(std::string_view needle, std::string_view text) {
  static const LastHits kLastHits = for_this_cpu();
  return ends_with(kLastHits, needle, text);
}

std::vector<std::size_t> ends_of_portably(std::string_view needle, std::string_view text) {
  return ends_with(last_hits, needle, text);
}

}  // namespace efimd::recall
