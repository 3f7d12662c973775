// One matrix times some inputs, by type and instruction set, in GB/s of weights.
#include <cstdio>
#include <deque>
#include <random>
#include <vector>

#include "engine/backend/cpu/cpu_weights.h"
#include "engine/backend/cpu/isa.h"
#include "engine/backend/cpu/worker_pool.h"
#include "tests/bench/tables.h"
#include "tests/bench/timing.h"
#include "tests/engine/backend/memory_model.h"

namespace efimd::bench {
namespace {

using namespace engine::cpu;
using engine::TensorType;
using engine::TensorView;

constexpr int kRows = 65536;  // with kCols: 64 MB at 4 bits, above the last-level cache of a core
constexpr int kCols = 2048;
constexpr int kChunkRows = 64;
constexpr double kBudget = 0.15;  // seconds for one number

struct InputRows {
  explicit InputRows(int count) : tokens(count) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const auto size = static_cast<std::size_t>(tokens) * kCols;
    for (std::size_t i = 0; i < size; ++i) values.push_back(normal(random));
    quants.resize(size);
    scales.resize(size / kGroup);
    sums.resize(size / kGroup);
    half_sums.resize(size / kGroup);
    totals.resize(size / kGroup);
    scalar_kernels().quantize(
        values.data(), tokens * kCols,
        {quants.data(), scales.data(), sums.data(), half_sums.data(), totals.data()});
  }
  Inputs inputs() const {
    return {tokens,      values.data(),    quants.data(), scales.data(),
            sums.data(), half_sums.data(), totals.data()};
  }
  int tokens;
  std::vector<float> values, scales, totals;
  std::vector<std::int8_t> quants;
  std::vector<std::int32_t> sums, half_sums;
};

double gigabytes_per_second(WorkerPool& pool, engine::Isa isa, const TensorView& tensor,
                            const InputRows& in) {
  const Weights weights = weights_of(tensor);
  std::vector<float> out(static_cast<std::size_t>(in.tokens) * kRows);
  const double seconds = median_seconds(kBudget, [&] {
    pool.parallel_for(kRows / kChunkRows, [&](int chunk) {
      kernels_of(isa).matmul(weights, {chunk * kChunkRows, (chunk + 1) * kChunkRows}, in.inputs(),
                             {out.data(), kRows, nullptr, Store::kSet});
    });
  });
  return static_cast<double>(weights.row_bytes) * kRows / seconds / 1e9;
}

}  // namespace

void print_operations(int threads) {
  WorkerPool pool(threads);
  const std::vector<InputRows> inputs = {InputRows(1), InputRows(4), InputRows(8), InputRows(16)};
  std::printf("Weights [%d][%d] times 1, 4, 8 and 16 tokens, GB/s of weights, %d threads\n\n",
              kRows, kCols, threads);
  std::printf("| type | instructions | 1 | 4 | 8 | 16 |\n| --- | --- | --- | --- | --- | --- |\n");
  for (const TensorType type : test::kWeightTypes) {
    std::mt19937 random(1);
    std::deque<std::vector<std::byte>> storage;
    const TensorView tensor = test::random_tensor(storage, type, kRows, kCols, 1, random);
    for (const engine::Isa isa : test::isas_here()) {
      if (isa == engine::Isa::kScalar) continue;
      std::printf("| %s | %s |", std::string(tensor_type_name(type)).c_str(),
                  std::string(isa_name(isa)).c_str());
      for (const InputRows& in : inputs)
        std::printf(" %.1f |", gigabytes_per_second(pool, isa, tensor, in));
      std::printf("\n");
    }
  }
}

}  // namespace efimd::bench
