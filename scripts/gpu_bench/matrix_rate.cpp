#include "matrix_rate.h"

#if defined(EFIMD_CUBLAS)
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace {

constexpr int kSize = 8192;
constexpr int kRuns = 20;

/// Memory and a library that are given back.
struct Bench {
  ~Bench() {
    for (void* each : matrices) cudaFree(each);
    if (handle != nullptr) cublasDestroy(handle);
  }
  bool open() {
    if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return false;
    for (void*& each : matrices) {
      const std::size_t bytes = std::size_t{kSize} * kSize * 2;
      if (cudaMalloc(&each, bytes) != cudaSuccess || cudaMemset(each, 0x3C, bytes) != cudaSuccess)
        return false;
    }
    return true;
  }
  bool multiply() {
    const float one = 1, none = 0;
    return cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, kSize, kSize, kSize, &one, matrices[0],
                        CUDA_R_16BF, kSize, matrices[1], CUDA_R_16BF, kSize, &none, matrices[2],
                        CUDA_R_16BF, kSize, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS &&
           cudaDeviceSynchronize() == cudaSuccess;
  }

  cublasHandle_t handle = nullptr;
  void* matrices[3] = {};
};

}  // namespace

std::optional<double> bf16_flops_per_s() {
  Bench bench;
  if (!bench.open() || !bench.multiply()) return std::nullopt;
  std::vector<double> seconds;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    if (!bench.multiply()) return std::nullopt;
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return 2.0 * kSize * kSize * kSize / seconds[kRuns / 2];
}
#else
std::optional<double> bf16_flops_per_s() { return std::nullopt; }
#endif
