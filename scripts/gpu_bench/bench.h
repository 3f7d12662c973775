#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/backend/cuda/cuda_device.h"
#include "engine/backend/gpu/gpu_device.h"
#include "engine/model/model.h"
#include "report.h"

/// Ends the measurement of one thing, and of no other.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void must(bool good, const std::string& what) {
  if (!good) throw Failure(what);
}
template <class Result>
void must_have(const Result& result) {
  if (!result) throw Failure(result.error().message());
}

/// This card's limits in a second.
struct Rates {
  double copy_bytes = 0;    ///< read and written
  double matrix_flops = 0;  ///< bf16, by cuBLAS; 0: not known

  Share of_copying(double bytes, double ms) const {
    return {"copying", bytes / ms * 1e3 / copy_bytes};
  }
  Share of_products(double flops, double ms) const {
    if (matrix_flops == 0) return {};
    return {"cuBLAS in bf16", flops / ms * 1e3 / matrix_flops};
  }
};

/// How much of everything. The stand-in for the driver, which tries the benchmark and measures nothing, gets little.
struct Extent {
  double sample_ms;  ///< of a measurement, for as long as there are more than samples_min
  std::size_t samples_min;
  std::size_t copy_bytes;
  std::size_t
      operand_bytes;  ///< that a list of equal operations reads at least: far more than a cache holds
  std::size_t list_bytes;     ///< that it reads in all, so that its submission does not count
  std::vector<int> contexts;  ///< contexts before the generated tokens; the last is the longest
  std::vector<int> prompts;
  int context, prompt;         ///< of the targets
  std::vector<int> keystroke;  ///< tokens of a step; the first: one
  std::vector<int> product_tokens;
  int few_tokens;  ///< up to which a product is bound by bandwidth
};
extern const Extent kWhole, kQuick, kTiny;

struct Shape {
  const char* name;
  int layers, width, heads, kv_heads, feed_forward;
  bool tied;
  int vocabulary = 151936;
  int context_tokens = 32768;

  efimd::engine::ModelShape model() const;
};

struct Bench {
  const Extent& extent;
  Report& report;
  Rates rates;

  /// Median milliseconds of a call.
  template <class Call>
  double median_ms(const Call& call) const;
};

std::unique_ptr<efimd::engine::gpu::GpuDevice> open_device(
    const efimd::engine::cuda::CudaOptions& options = {
        .variants = efimd::engine::gpu::kAllVariants});

/// Steps of a model with those sizes, by weight type and type of KV.
void measure_model(Bench& bench, const Shape& shape);
/// The product alone by weight type: of few tokens, which is bound by bandwidth, around where the tensor cores begin, and of
/// prompts.
void measure_products(Bench& bench, int rows, int cols);
/// Attention alone: of few tokens, which is bound by the reading of KV, and of prompts, by its products.
void measure_attention(Bench& bench, const Shape& shape);

template <class Call>
double Bench::median_ms(const Call& call) const {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kSamplesMax = 200;
  call();
  std::vector<double> times;
  for (double total = 0; times.size() < extent.samples_min ||
                         (total < extent.sample_ms && times.size() < kSamplesMax);) {
    const auto begin = Clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    total += times.back();
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Runs it; reports a failure and goes on with the rest.
template <class Call>
void attempt(Bench& bench, const std::string& what, const Call& call) {
  try {
    call();
  } catch (const Failure& failure) {
    bench.report.failure(what + ": " + failure.what());
  }
}
