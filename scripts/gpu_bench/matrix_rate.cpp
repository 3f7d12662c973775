#include "matrix_rate.h"

#if defined(EFIMD_CUBLAS)
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

constexpr int kSize = 8192;
constexpr std::size_t kElements = std::size_t{kSize} * kSize;
/// Products between two waits, and seconds of them: a card's clock settles meanwhile.
constexpr int kProducts = 8;
constexpr double kSeconds = 1;

/// bf16 numbers of random sign and bits, 0.5 .. 2 in size: with equal ones a card takes less power, and is faster than it
/// ever is.
std::vector<std::uint16_t> random_numbers() {
  std::mt19937 random(1);
  std::vector<std::uint16_t> numbers(kElements);
  for (std::uint16_t& each : numbers) {
    const auto bits = static_cast<unsigned>(random());
    each = static_cast<std::uint16_t>((bits & 0x8000U) | (0x3F00U + (bits & 0xFFU)));
  }
  return numbers;
}

/// Memory and a library that are given back.
struct Bench {
  ~Bench() {
    for (void* each : matrices) cudaFree(each);
    if (handle != nullptr) cublasDestroy(handle);
  }
  bool open() {
    if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return false;
    const std::vector<std::uint16_t> numbers = random_numbers();
    for (void*& each : matrices) {
      if (cudaMalloc(&each, 2 * kElements) != cudaSuccess ||
          cudaMemcpy(each, numbers.data(), 2 * kElements, cudaMemcpyHostToDevice) != cudaSuccess)
        return false;
    }
    return true;
  }
  bool multiply() {
    const float one = 1, none = 0;
    for (int i = 0; i < kProducts; ++i)
      if (cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, kSize, kSize, kSize, &one, matrices[0],
                       CUDA_R_16BF, kSize, matrices[1], CUDA_R_16BF, kSize, &none, matrices[2],
                       CUDA_R_16BF, kSize, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS)
        return false;
    return cudaDeviceSynchronize() == cudaSuccess;
  }

  cublasHandle_t handle = nullptr;
  void* matrices[3] = {};
};

}  // namespace

std::optional<double> bf16_flops_per_s() {
  Bench bench;
  if (!bench.open() || !bench.multiply()) return std::nullopt;
  std::vector<double> seconds;
  for (double total = 0; total < kSeconds; total += seconds.back()) {
    const auto begin = std::chrono::steady_clock::now();
    if (!bench.multiply()) return std::nullopt;
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return 2.0 * kSize * kSize * kSize * kProducts / *middle;
}
#else
std::optional<double> bf16_flops_per_s() { return std::nullopt; }
#endif
