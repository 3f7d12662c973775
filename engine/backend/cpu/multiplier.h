#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/backend/cpu/aligned_array.h"
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/worker_pool.h"

namespace efimd::engine::cpu {

/// weights * some rows of the inputs (+ bias): one of several products of one loop.
struct Product {
  const Weights* weights;
  RowRange rows;  ///< of the inputs
  float* out;     ///< the place of the first of these rows
  std::size_t out_stride;
  const std::vector<float>* bias;  ///< empty: none
  Store store;
};

/// Runs matrix products over the worker pool, in chunks of weight rows, and keeps the quantized copy
/// of their inputs.
///
/// Thread: engine; quantize_row() from any, one thread for each row.
class Multiplier {
 public:
  Multiplier(const CpuKernels& kernels, WorkerPool& pool) : kernels_(kernels), pool_(pool) {}

  /// For inputs of up to `rows` rows of up to `width`; false when there is no memory.
  [[nodiscard]] bool reserve(std::size_t rows, std::size_t width);
  /// Bytes that reserve() asks for.
  std::size_t bytes(std::size_t rows, std::size_t width) const;

  /// Quantizes row `row` of values [...][width] when one of the products needs it.
  void quantize_row(std::span<const Product> products, const float* values, int width, int row);
  /// All products of values [...][cols], whose rows were quantized.
  void multiply(std::span<const Product> products, const float* values);
  /// Overwrites the quantized inputs.
  void overwrite();

 private:
  /// Elements of the rows as tiles, whole blocks; 0 if the kernels read none.
  std::size_t tiled_elements(std::size_t rows, std::size_t width) const;
  /// The same from quantize_row() to multiply(), because panels come between steps.
  bool reads_tiles(const Product& product) const;

  const CpuKernels& kernels_;
  WorkerPool& pool_;
  AlignedArray<std::int8_t> quants_;
  AlignedArray<float> scales_, totals_;
  AlignedArray<std::int32_t> offsets_, half_offsets_;
  AlignedArray<std::int8_t> tiled_quants_;
  AlignedArray<float> tiled_scales_, tiled_totals_;
};

}  // namespace efimd::engine::cpu
