// One matrix times some inputs as a step does it, by type and instruction set, in GB/s of weights.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <random>
#include <stdexcept>
#include <vector>

#include "engine/backend/cpu/aligned_array.h"
#include "engine/backend/cpu/cpu_weights.h"
#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/kernels/panels.h"
#include "engine/backend/cpu/multiplier.h"
#include "engine/backend/cpu/worker_pool.h"
#include "tests/bench/engine/tables.h"
#include "tests/bench/engine/timing.h"
#include "tests/engine/backend/memory_model.h"

namespace efimd::bench {
namespace {

using namespace engine::cpu;
using engine::TensorType;
using engine::TensorView;

constexpr int kColumns[] = {1024, 4864};
constexpr int kElements = 1 << 27;  // 75 MB at 4 bits: more than the caches of these machines
constexpr int kTokens[] = {1, 4, 8, 16, 64};
constexpr double kBudget = 0.1;  // seconds for one number

double gigabytes_per_second(WorkerPool& pool, engine::Isa isa, const Weights& weights, int tokens) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> inputs(static_cast<std::size_t>(tokens * weights.cols));
  for (float& value : inputs) value = normal(random);
  std::vector<float> out(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(weights.rows));
  const std::vector<float> no_bias;
  const Product product{&weights, {0, tokens}, out.data(), static_cast<std::size_t>(weights.rows),
                        &no_bias, Store::kSet};
  Multiplier multiplier(kernels_of(isa), pool);
  if (!multiplier.reserve(static_cast<std::size_t>(tokens), static_cast<std::size_t>(weights.cols)))
    throw std::bad_alloc();
  const double seconds = median_seconds(kBudget, [&] {
    for (int row = 0; row < tokens; ++row)
      multiplier.quantize_row({&product, 1}, inputs.data(), weights.cols, row);
    multiplier.multiply({&product, 1}, inputs.data());
  });
  return static_cast<double>(weights.row_bytes) * weights.rows / seconds / 1e9;
}

/// Gives a matrix its panels, in `memory`; none if its type has none.
void write_panels(Weights& weights, AlignedArray<unsigned char>& memory) {
  const auto count = static_cast<std::size_t>(panel_count(weights));
  if (count == 0) return;
  if (!memory.reserve(count * panel_bytes(weights))) throw std::bad_alloc();
  for (std::size_t panel = 0; panel < count; ++panel)
    write_panel(weights, static_cast<int>(panel), memory.data() + panel * panel_bytes(weights));
  weights.panels = memory.data();
}

void print_type(WorkerPool& pool, TensorType type) {
  for (const int cols : kColumns) {
    std::mt19937 random(1);
    std::deque<std::vector<std::byte>> storage;
    const TensorView tensor = test::random_tensor(storage, type, kElements / cols, cols, 1, random);
    const Weights mapped = weights_of(tensor);
    Weights panels = mapped;
    AlignedArray<unsigned char> memory;
    write_panels(panels, memory);
    for (const engine::Isa isa : test::isas_here()) {
      if (isa == engine::Isa::kScalar) continue;
      for (const Weights* weights : {&mapped, static_cast<const Weights*>(&panels)}) {
        if (weights == &panels && panels.panels == nullptr) continue;
        std::printf("| %s | %d | %s | %s |", std::string(tensor_type_name(type)).c_str(), cols,
                    std::string(isa_name(isa)).c_str(), weights == &mapped ? "rows" : "panels");
        for (const int tokens : kTokens)
          std::printf(" %.1f |", gigabytes_per_second(pool, isa, *weights, tokens));
        std::printf("\n");
      }
    }
  }
}

}  // namespace

void print_operations(const std::vector<std::string>& types, int threads) {
  for (const std::string& type : types)
    if (std::ranges::find(test::kWeightTypes, type, engine::tensor_type_name) ==
        std::end(test::kWeightTypes))
      throw std::runtime_error("no such weight type: " + type);
  WorkerPool pool(threads);
  std::printf(
      "A matrix of %d M weights times 1, 4, 8, 16 and 64 tokens, GB/s of weights, %d threads\n\n",
      kElements >> 20, threads);
  std::printf("| type | columns | instructions | weights | 1 | 4 | 8 | 16 | 64 |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const TensorType type : test::kWeightTypes) {
    const std::string name(tensor_type_name(type));
    if (types.empty() || std::find(types.begin(), types.end(), name) != types.end())
      print_type(pool, type);
  }
}

}  // namespace efimd::bench
