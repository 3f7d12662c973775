// The CPU device at the shape of Qwen2.5-Coder-0.5B (494 M weights, tied output) with random
// weights, beside what the memory can deliver. Read "bytes_per_second" of a step against that of
// read_bandwidth in the same run: one token reads every weight once. Ratios hold on a shared
// machine where absolute numbers do not.
#include <benchmark/benchmark.h>

#include <memory>
#include <numeric>
#include <vector>

#include "engine/backend/cpu/isa.h"
#include "engine/backend/cpu/worker_pool.h"
#include "tests/engine/backend/memory_model.h"

namespace efimd {
namespace {

using engine::Isa;
using engine::kPageTokens;
using engine::PageIndex;
using engine::TensorType;
using engine::cpu::WorkerPool;

constexpr int kWindowTokens = 8192 + 64;

engine::ModelShape qwen_shape() {
  engine::ModelShape shape;
  shape.architecture = "qwen2";
  shape.layers = 24;
  shape.width = 896;
  shape.heads = 14;
  shape.kv_heads = 2;
  shape.head_width = 64;
  shape.feed_forward = 4864;
  shape.vocabulary = 151936;
  shape.context_tokens = 32768;
  shape.rope_pairs = engine::RopePairs::kHalves;
  shape.rope_width = 64;
  shape.rope_base = 1e6F;
  shape.norm_epsilon = 1e-6F;
  return shape;
}

/// One model at a time: they are 0.5 to 1 GB.
const test::MemoryModel& qwen(TensorType type) {
  static std::unique_ptr<test::MemoryModel> model;
  static TensorType held;
  if (model == nullptr || held != type) {
    model.reset();
    model = std::make_unique<test::MemoryModel>(qwen_shape(),
                                                test::MemoryModel::Options{type, true, 1});
    held = type;
  }
  return *model;
}

double weight_bytes(const engine::ModelWeights& weights) {
  const auto bytes = [](const engine::TensorView& tensor) {
    return static_cast<double>(tensor.rows) * static_cast<double>(tensor.row_bytes());
  };
  double sum = bytes(weights.output);  // the embedding, read whole as the output
  for (const engine::LayerWeights& layer : weights.layers)
    sum += bytes(layer.query) + bytes(layer.key) + bytes(layer.value) +
           bytes(layer.attention_output) + bytes(layer.gate) + bytes(layer.up) + bytes(layer.down);
  return sum;
}

/// Four streams a thread with a prefetch 2 KiB ahead.
std::uint64_t sum_block(const std::uint64_t* at, std::size_t count) {
  const std::size_t quarter = count / 4;
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < quarter; i += 8) {
    for (std::size_t stream = 0; stream < 4; ++stream) {
      const std::uint64_t* line = at + stream * quarter + i;
      __builtin_prefetch(line + 256);
      for (std::size_t j = 0; j < 8; ++j) sums[j] += line[j];
    }
  }
  return std::accumulate(sums, sums + 8, std::uint64_t{0});
}

void read_bandwidth(benchmark::State& state) {
  constexpr std::size_t kBlock = 128 * 1024;  // words: 1 MiB
  static const std::vector<std::uint64_t> memory(std::size_t{1} << 27U, 1);
  WorkerPool pool(engine::cpu::physical_cores());
  std::vector<std::uint64_t> sums(memory.size() / kBlock);
  for (auto _ : state) {
    pool.parallel_for(static_cast<int>(sums.size()), [&](int chunk) {
      const auto index = static_cast<std::size_t>(chunk);
      sums[index] = sum_block(memory.data() + index * kBlock, kBlock);
    });
    benchmark::DoNotOptimize(sums.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(memory.size() * 8));
}

/// One step: T tokens behind C tokens in KV, logits of the last; all layers.
void step(benchmark::State& state, TensorType type, Isa isa) {
  if (!engine::cpu::runs_here(isa)) return state.SkipWithError("this processor does not run it");
  const test::MemoryModel& model = qwen(type);
  const int tokens_in_step = static_cast<int>(state.range(0));
  const int tokens_in_kv = static_cast<int>(state.range(1));
  engine::CpuOptions options;
  options.isa = isa;
  options.page_count = kWindowTokens / kPageTokens;
  const auto backend = *engine::make_cpu_backend(model.shape, model.weights, options);
  std::vector<PageIndex> pages(static_cast<std::size_t>(options.page_count));
  std::iota(pages.begin(), pages.end(), 0);
  std::vector<engine::TokenId> tokens(static_cast<std::size_t>(tokens_in_step));
  std::iota(tokens.begin(), tokens.end(), 1000);
  const int last = tokens_in_step - 1;
  const engine::StepSequence sequence{0, tokens_in_step, tokens_in_kv, pages};
  for (auto _ : state) {
    static_cast<void>(backend->begin({tokens, {&sequence, 1}, {&last, 1}}));
    for (int layer = 0; layer < model.shape.layers; ++layer) {
      static_cast<void>(backend->attention_input(layer));
      static_cast<void>(backend->attention(layer));
      static_cast<void>(backend->attention_output(layer));
      static_cast<void>(backend->feed_forward_input(layer));
      static_cast<void>(backend->feed_forward_output(layer));
    }
    benchmark::DoNotOptimize(backend->logits());
  }
  const auto runs = static_cast<double>(state.iterations());
  const double kv = static_cast<double>(model.shape.kv_bytes_per_token()) * tokens_in_kv;
  state.SetBytesProcessed(static_cast<std::int64_t>(runs * (weight_bytes(model.weights) + kv)));
  state.counters["tokens/s"] =
      benchmark::Counter(runs * tokens_in_step, benchmark::Counter::kIsRate);
}

void steps(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"T", "C"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (const int tokens : {1, 2, 4, 8, 16, 64}) bench->Args({tokens, 512});
  bench->Args({1, 8192})->Args({16, 8192});
}

BENCHMARK(read_bandwidth)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step, q8_0_avx512, TensorType::kQ8_0, Isa::kAvx512)->Apply(steps);
BENCHMARK_CAPTURE(step, q8_0_avx2, TensorType::kQ8_0, Isa::kAvx2)->Apply(steps);
BENCHMARK_CAPTURE(step, q8_0_scalar, TensorType::kQ8_0, Isa::kScalar)
    ->Args({1, 512})
    ->ArgNames({"T", "C"})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step, f16_avx512, TensorType::kF16, Isa::kAvx512)->Apply(steps);
BENCHMARK_CAPTURE(step, f16_avx2, TensorType::kF16, Isa::kAvx2)->Apply(steps);

}  // namespace
}  // namespace efimd

BENCHMARK_MAIN();
