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
#endif

ProductLoop loop_here() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vnni")) return vnni_loop;
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
