#include "tests/bench/engine/product_peak.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/bench/engine/timing.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace efimd::bench {
namespace {

constexpr int kTimes = 1 << 18;

/// Twelve sums, so that none waits for itself; returns the products that were done.
using ProductLoop = double (*)();

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512vnni")]] double vnni_loop() {
  __m512i sums[12];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  __m512i weights = _mm512_set1_epi8(3);
  __m512i inputs = _mm512_set1_epi8(5);
  for (int i = 0; i < kTimes; ++i) {
    asm volatile("" : "+v"(weights), "+v"(inputs));
#pragma GCC unroll 12
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, weights, inputs);
  }
  for (const __m512i& sum : sums) asm volatile("" : : "v"(sum));
  return 64.0 * 12 * kTimes;
}

/// Three instructions for 32 products, which is what there is before VNNI.
[[gnu::target("avx2")]] double avx2_loop() {
  __m256i sums[12];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  __m256i weights = _mm256_set1_epi8(3);
  __m256i inputs = _mm256_set1_epi8(5);
  const __m256i ones = _mm256_set1_epi16(1);
  for (int i = 0; i < kTimes; ++i) {
#pragma GCC unroll 12
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(weights), "+x"(inputs));  // each product anew
      const __m256i pairs = _mm256_maddubs_epi16(weights, inputs);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
    }
  }
  for (const __m256i& sum : sums) asm volatile("" : : "x"(sum));
  return 32.0 * 12 * kTimes;
}
#endif

ProductLoop loop_here() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vnni")) return vnni_loop;
  if (__builtin_cpu_supports("avx2")) return avx2_loop;
#endif
  return nullptr;
}

}  // namespace

double product_peak(int threads) {
  const ProductLoop loop = loop_here();
  if (loop == nullptr) return 0;
  std::vector<std::thread> others;
  double products = 0;
  std::atomic<int> waiting{threads};
  const auto run = [&] {
    waiting.fetch_sub(1);
    while (waiting.load() > 0) std::this_thread::yield();
    return loop();
  };
  for (int i = 1; i < threads; ++i) others.emplace_back(run);
  while (waiting.load() > 1) std::this_thread::yield();
  const double seconds = seconds_of([&] {
    products = run() * threads;
    for (std::thread& other : others) other.join();
  });
  return products / seconds;
}

}  // namespace efimd::bench
