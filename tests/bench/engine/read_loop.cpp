#include "tests/bench/engine/read_loop.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace efimd::bench {
namespace {

std::uint64_t read_words(const std::byte* at, std::size_t bytes) {
  std::uint64_t sums[4] = {};
  for (const std::byte* const end = at + bytes; at < end; at += 32) {
    std::uint64_t words[4];
    std::memcpy(words, at, sizeof words);
    for (int i = 0; i < 4; ++i) sums[i] += words[i];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] std::uint64_t read_avx2(const std::byte* at, std::size_t bytes) {
  __m256i a = _mm256_setzero_si256();
  __m256i b = a;
  __m256i c = a;
  __m256i d = a;
  for (const std::byte* const end = at + bytes; at < end; at += 128) {
    const auto* words = reinterpret_cast<const __m256i*>(at);
    a = _mm256_add_epi64(a, _mm256_loadu_si256(words));
    b = _mm256_add_epi64(b, _mm256_loadu_si256(words + 1));
    c = _mm256_add_epi64(c, _mm256_loadu_si256(words + 2));
    d = _mm256_add_epi64(d, _mm256_loadu_si256(words + 3));
  }
  std::uint64_t sums[4];
  a = _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums), a);
  return sums[0] + sums[1] + sums[2] + sums[3];
}

[[gnu::target("avx512f")]] std::uint64_t read_avx512(const std::byte* at, std::size_t bytes) {
  __m512i a = _mm512_setzero_si512();
  __m512i b = a;
  __m512i c = a;
  __m512i d = a;
  for (const std::byte* const end = at + bytes; at < end; at += 256) {
    a = _mm512_add_epi64(a, _mm512_loadu_si512(at));
    b = _mm512_add_epi64(b, _mm512_loadu_si512(at + 64));
    c = _mm512_add_epi64(c, _mm512_loadu_si512(at + 128));
    d = _mm512_add_epi64(d, _mm512_loadu_si512(at + 192));
  }
  std::uint64_t sums[8];
  _mm512_storeu_si512(sums, _mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d)));
  std::uint64_t sum = 0;
  for (const std::uint64_t each : sums) sum += each;
  return sum;
}
#endif

}  // namespace

NamedReadLoop read_loop() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512", read_avx512};
  if (__builtin_cpu_supports("avx2")) return {"AVX2", read_avx2};
#endif
  return {"words", read_words};
}

}  // namespace efimd::bench
