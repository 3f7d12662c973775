// What an NVIDIA card makes of the kernels: a table, and the same as JSON in the file that is named.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "engine/backend/cuda/cuda_device.h"
#include "engine/backend/gpu/gpu_attention.h"
#include "engine/backend/gpu/gpu_backend.h"
#include "engine/backend/gpu/packed_weights.h"
#include "kernels/sizes.h"
#include "matrix_rate.h"
#include "tests/engine/backend/weight_values.h"

using namespace efimd;
using namespace efimd::engine;
using Clock = std::chrono::steady_clock;

namespace {

/// Median milliseconds of a call, of as many as fit half a second and at least 5.
template <class Call>
double median_ms(const Call& call) {
  call();
  std::vector<double> times;
  for (double total = 0; times.size() < 5 || (total < 500 && times.size() < 200);) {
    const auto begin = Clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    total += times.back();
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

void must(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "gpu bench: %s\n", what.c_str());
  std::exit(1);
}

/// Of what a card reaches in what bounds the work; of nothing where that is not known.
struct Share {
  const char* of = nullptr;
  double value = 0;
};

struct Line {
  std::string what;
  double ms;
  double rate;
  const char* unit;
  Share share;
};
std::vector<Line> lines;

void report(const std::string& what, double ms, double rate, const char* unit, Share share = {}) {
  lines.push_back({what, ms, rate, unit, share});
  std::printf("%-52s %10.3f ms %12.1f %-9s", what.c_str(), ms, rate, unit);
  if (share.of != nullptr) std::printf(" %5.1f %% of %s", 100 * share.value, share.of);
  std::printf("\n");
  std::fflush(stdout);
}

/// What this card does in a second.
struct Rates {
  double copy_bytes;    ///< read and written
  double matrix_flops;  ///< bf16, by cuBLAS; 0: not known

  Share of_copying(double bytes, double ms) const {
    return {"copying", bytes / ms * 1e3 / copy_bytes};
  }
  Share of_products(double flops, double ms) const {
    if (matrix_flops == 0) return {};
    return {"cuBLAS in bf16", flops / ms * 1e3 / matrix_flops};
  }
};

std::unique_ptr<gpu::GpuDevice> open_device(bool overlap = true) {
  auto device = cuda::open_cuda_device({.overlap = overlap});
  must(device.has_value(), device ? "" : device.error().message());
  return *std::move(device);
}

/// Bytes read and written in a second by a copy within the device's memory.
double copy_bytes_per_s() {
  const auto device = open_device();
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  const auto from = device->allocate(kBytes, gpu::Memory::kDevice);
  const auto to = device->allocate(kBytes, gpu::Memory::kDevice);
  must(from && to, "no 2 GiB of device memory");
  gpu::Operation copy;
  copy.operands[0] = {*from, 0, kBytes};
  copy.operands[1] = {*to, 0, kBytes};
  const double ms = median_ms([&] { must(device->run({&copy, 1}).has_value(), "a copy failed"); });
  const double rate = 2 * static_cast<double>(kBytes) / ms * 1e3;
  report("copy within device memory, 1 GiB", ms, rate / 1e9, "GB/s");
  return rate;
}

struct Shape {
  const char* name;
  int layers, width, heads, kv_heads, feed_forward;
  bool tied;
};
constexpr Shape kShapes[] = {{"0.5B", 24, 896, 14, 2, 4864, true},
                             {"1.5B", 28, 1536, 12, 2, 8960, true},
                             {"7B", 28, 3584, 28, 4, 18944, false}};

/// A model of a real shape; its layers share one set of random weights on the host, not on the device.
struct BenchModel {
  ModelShape shape;
  ModelWeights weights;
  std::deque<std::vector<std::byte>> storage;
  std::size_t bytes = 0;
  double flops = 0;  ///< of a token in the layers' products

  BenchModel(const Shape& of, TensorType type) {
    std::mt19937 random(1);
    shape.architecture = "qwen2";
    shape.layers = of.layers, shape.width = of.width, shape.heads = of.heads;
    shape.kv_heads = of.kv_heads, shape.head_width = of.width / of.heads;
    shape.feed_forward = of.feed_forward, shape.vocabulary = 151936;
    shape.context_tokens = 32768, shape.rope_width = shape.head_width;
    shape.rope_pairs = RopePairs::kHalves, shape.rope_base = 1e6F;
    const auto tensor = [&](std::int64_t rows, std::int64_t cols) {
      // As in files: rows that are no multiple of a block take another type.
      const bool fits = cols % tensor_block(type).elements == 0;
      TensorView made =
          test::random_tensor(storage, fits ? type : TensorType::kQ5_0, rows, cols, 0.02F, random);
      return made;
    };
    const auto vector = [&](std::int64_t cols) {
      return test::random_tensor(storage, TensorType::kF32, 1, cols, 1, random);
    };
    const int kv = shape.kv_heads * shape.head_width;
    LayerWeights layer;
    layer.attention_norm = vector(of.width), layer.feed_forward_norm = vector(of.width);
    layer.query = tensor(of.width, of.width), layer.key = tensor(kv, of.width);
    layer.value = tensor(kv, of.width), layer.attention_output = tensor(of.width, of.width);
    layer.query_bias = vector(of.width), layer.key_bias = vector(kv), layer.value_bias = vector(kv);
    layer.gate = tensor(of.feed_forward, of.width), layer.up = tensor(of.feed_forward, of.width);
    layer.down = tensor(of.width, of.feed_forward);
    weights.layers.assign(static_cast<std::size_t>(of.layers), layer);
    weights.token_embedding = tensor(shape.vocabulary, of.width);
    weights.output = of.tied ? weights.token_embedding : tensor(shape.vocabulary, of.width);
    weights.output_norm = vector(of.width);
    // What one token must read: all but the embedding's rows.
    for (const TensorView* each : {&layer.query, &layer.key, &layer.value, &layer.attention_output,
                                   &layer.gate, &layer.up, &layer.down}) {
      bytes += static_cast<std::size_t>(of.layers) * static_cast<std::size_t>(each->rows) *
               each->row_bytes();
      flops += 2.0 * of.layers * static_cast<double>(each->rows * each->cols);
    }
    bytes += static_cast<std::size_t>(weights.output.rows) * weights.output.row_bytes();
  }
};

void run_step(Backend& backend, const ModelShape& shape, int position, int count,
              const std::vector<PageIndex>& pages, bool logits) {
  const std::vector<TokenId> tokens(static_cast<std::size_t>(count), 100);
  const StepSequence sequence{0, count, position, pages};
  const int last = count - 1;
  auto done = backend.begin({tokens, {&sequence, 1}, {&last, logits ? 1U : 0U}});
  for (int layer = 0; done && layer < shape.layers; ++layer) done = run_layer(backend, layer);
  if (done && logits) {
    const auto rows = backend.logits();
    must(rows.has_value(), rows ? "" : rows.error().message());
  }
  must(done.has_value(), done ? "" : done.error().message());
}

/// Steps of a model with those sizes. `overlap`: as in CudaOptions; without it generation alone.
void measure(const Shape& of, TensorType type, KvType kv_type, bool overlap, const Rates& rates) {
  constexpr int kPages = 16384 / kPageTokens + 1;
  constexpr int kStep = 2048;
  const BenchModel model(of, type);
  auto made = gpu::make_gpu_backend(open_device(overlap), model.shape, model.weights,
                                    {kPages, kStep, kv_type});
  if (!made && made.error().fault == Fault::kNoMemory) {
    std::printf("%s %s does not fit: %s\n", of.name, std::string(tensor_type_name(type)).c_str(),
                made.error().what.c_str());
    return;
  }
  must(made.has_value(), made ? "" : made.error().message());
  Backend& backend = **made;
  std::vector<PageIndex> pages(kPages);
  std::iota(pages.begin(), pages.end(), 0);
  const std::string name = std::string(of.name) + " " + std::string(tensor_type_name(type)) +
                           (kv_type == KvType::kQ8 ? ", KV q8, " : ", ") +
                           (overlap ? "" : "kernels one after another, ");
  for (const int context : {512, 4096, 16384 - 1}) {
    const double ms = median_ms([&] { run_step(backend, model.shape, context, 1, pages, true); });
    const double read = static_cast<double>(model.bytes) +
                        static_cast<double>(backend.page_bytes()) / kPageTokens * context;
    report(name + "generation behind " + std::to_string(context), ms, 1e3 / ms, "tokens/s",
           rates.of_copying(read, ms));
  }
  if (!overlap) return;
  for (const int prompt : {512, 2048, 8192}) {
    const double ms = median_ms([&] {
      for (int at = 0; at < prompt; at += kStep)
        run_step(backend, model.shape, at, std::min(kStep, prompt), pages, at + kStep >= prompt);
    });
    report(name + "prompt of " + std::to_string(prompt), ms, prompt / ms * 1e3, "tokens/s",
           rates.of_products(prompt * model.flops, ms));
  }
  for (const int tokens : {1, 3, 16}) {
    const double ms = median_ms([&] { run_step(backend, model.shape, 4096, tokens, pages, true); });
    report(name + "keystroke of " + std::to_string(tokens) + " behind 4096", ms, tokens / ms * 1e3,
           "tokens/s");
  }
}

/// The product alone by weight type: of few tokens, which is bound by bandwidth, around where the tensor cores begin, and of
/// prompts.
void measure_products(int rows, int cols, const Rates& rates) {
  for (const TensorType type : test::kWeightTypes) {
    const auto device = open_device();
    const bool halves = (type == TensorType::kF16 && device->limits().f16_products) ||
                        (type == TensorType::kBF16 && device->limits().bf16_products);
    std::deque<std::vector<std::byte>> storage;
    std::mt19937 random(1);
    constexpr int kTokensMax = 2048, kFew = 8;
    const auto row_count = static_cast<std::size_t>(rows);
    const TensorView tensor = test::random_tensor(storage, type, rows, cols, 1, random);
    const auto layout = gpu::row_layout(type, cols);
    const std::size_t bytes = row_count * layout.row_words * 4;
    const auto staging = device->allocate(bytes, gpu::Memory::kHostWrites);
    const auto weights = device->allocate(bytes, gpu::Memory::kDevice);
    const std::size_t rest_bytes =
        static_cast<std::size_t>(std::max(rows, cols)) * kTokensMax * sizeof(float);
    const auto rest = device->allocate(rest_bytes, gpu::Memory::kDevice);
    must(staging && weights && rest, "no memory for a product");
    auto* words = reinterpret_cast<std::uint32_t*>(device->mapped(*staging).data());
    for (int row = 0; row < rows; ++row)
      gpu::pack_row(tensor, row, layout,
                    {words + std::size_t{layout.row_words} * static_cast<std::size_t>(row),
                     layout.row_words});
    gpu::Operation copy;
    copy.operands[0] = {*staging, 0, bytes};
    copy.operands[1] = {*weights, 0, bytes};
    must(device->run({&copy, 1}).has_value(), "a copy failed");
    for (const int tokens : {1, kFew, 16, 24, 64, 512, kTokensMax}) {
      const gpu::Range x{*rest, 0, rest_bytes};
      gpu::Operation product;
      product.kernel = halves ? gpu::Kernel::kMatmulHalves : gpu::Kernel::kMatmul;
      product.type = static_cast<std::uint32_t>(gpu::packed_type(type));
      product.many = tokens > 1;
      product.groups = {
          static_cast<std::uint32_t>(rows),
          tokens > 1 ? static_cast<std::uint32_t>(tokens) / kernels::kTokensOfTile : 1, 1};
      product.operands = {gpu::Range{*weights, 0, bytes}, x, x, x, x};
      if (!halves) product.operands[5] = x;
      product.set_sizes(kernels::MatmulSizes{
          layout, static_cast<std::uint32_t>(cols), static_cast<std::uint32_t>(rows), 0,
          static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(tokens), 0, 0, 0, 1});
      const double ms = median_ms([&] {
        must(device->run({&product, 1}).has_value(), "a product failed");
      });
      const double flops = 2.0 * rows * cols * tokens / ms * 1e3;
      const std::string name = "product " + std::string(tensor_type_name(type)) + ", " +
                               std::to_string(rows) + " x " + std::to_string(cols) + ", " +
                               std::to_string(tokens) + " tokens";
      if (tokens > kFew)
        report(name, ms, flops / 1e12, "TFLOP/s",
               rates.of_products(2.0 * rows * cols * tokens, ms));
      else
        report(name, ms, static_cast<double>(bytes) / ms / 1e6, "GB/s",
               rates.of_copying(static_cast<double>(bytes), ms));
    }
  }
}

std::uint32_t number(int count) { return static_cast<std::uint32_t>(count); }

gpu::Range room(gpu::GpuDevice& device, std::size_t bytes, gpu::Memory where) {
  const auto buffer = device.allocate(bytes, where);
  must(buffer.has_value(), "no memory for attention");
  return {*buffer, 0, bytes};
}

gpu::Range told(gpu::GpuDevice& device, const std::vector<std::uint32_t>& words) {
  const gpu::Range range = room(device, words.size() * 4, gpu::Memory::kHostWrites);
  std::memcpy(device.mapped(range.buffer).data(), words.data(), range.bytes);
  return range;
}

/// Attention of the last `tokens` of a context over f16 KV, and what joins its splits.
std::array<gpu::Operation, 2> attention_of(gpu::GpuDevice& device, const Shape& of, int context,
                                           int tokens, std::uint32_t splits) {
  constexpr std::uint32_t kSplitPages = 4;
  const std::uint32_t width = number(of.width / of.heads);
  std::vector<std::uint32_t> table(number(context / kPageTokens)), rows;
  std::iota(table.begin(), table.end(), 0U);
  for (int t = 0; t < tokens; ++t) rows.insert(rows.end(), {number(context - tokens + t), 0U});
  const std::size_t heads = number(tokens * (of.heads + 2 * of.kv_heads));
  const auto floats = [&](std::size_t count) {
    return room(device, count * sizeof(float), gpu::Memory::kDevice);
  };
  std::array<gpu::Operation, 2> operations;
  gpu::Operation& attention = operations[0];
  attention.operands = {floats(heads * width), floats(number(context * of.kv_heads) * width),
                        told(device, table), told(device, rows),
                        floats(heads * splits * (width + kernels::kRecordHead))};
  const kernels::AttentionSizes sizes{
      number(of.heads), number(of.kv_heads), width, 1U << 30U, kSplitPages, splits, 0, 0,
      number(tokens)};
  gpu::set_attention(attention, kernels::Kv::kF16, sizes, device.limits(), 1);
  gpu::Operation& merge = operations[1];
  const gpu::Range result = floats(heads * width);
  merge.kernel = gpu::Kernel::kMerge;
  merge.groups = {number(tokens), (number(of.heads) * width + 255) / kernels::kFormElements, 1};
  merge.operands = {attention.operands[4], attention.operands[3], result, result, result, result};
  merge.set_sizes(
      kernels::MergeSizes{number(of.heads), width, kSplitPages, splits, 1.0F, {1, 0, 0}});
  return operations;
}

/// Attention alone: of few tokens, which is bound by the reading of KV, and of prompts, by its products.
void measure_attention(const Shape& of, const Rates& rates) {
  struct Step {
    int context, tokens;
  };
  for (const Step& step : {Step{4096, 1}, Step{4096, 16}, Step{16384, 1}, Step{2048, 2048}}) {
    const auto device = open_device();
    const bool prompt = step.tokens > 16;
    const std::uint32_t splits = prompt ? 1 : number(step.context / kPageTokens / 4);
    const auto operations = attention_of(*device, of, step.context, step.tokens, splits);
    const double ms = median_ms([&] {
      const auto done = device->run(operations);
      must(done.has_value(), done ? "" : done.error().message());
    });
    const std::string name = std::string("attention of ") + of.name + ", " +
                             std::to_string(step.tokens) + " tokens behind " +
                             std::to_string(step.context - step.tokens);
    // Two products of E for each head and token that is seen.
    const double flops = 4.0 * of.width * step.tokens * (step.context - (step.tokens - 1) / 2.0);
    const auto bytes = static_cast<double>(operations[0].operands[1].bytes);
    if (prompt)
      report(name, ms, flops / ms / 1e9, "TFLOP/s", rates.of_products(flops, ms));
    else
      report(name, ms, bytes / ms / 1e6, "GB/s", rates.of_copying(bytes, ms));
  }
}

void write_json(const char* path, const std::string& device) {
  std::ofstream out(path);
  out << "{\"device\": \"" << device << "\", \"lines\": [\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    out << "  {\"what\": \"" << line.what << "\", \"ms\": " << line.ms
        << ", \"rate\": " << line.rate << ", \"unit\": \"" << line.unit << "\"";
    if (line.share.of != nullptr)
      out << ", \"share\": " << line.share.value << ", \"of\": \"" << line.share.of << '"';
    out << (i + 1 < lines.size() ? "},\n" : "}\n");
  }
  out << "]}\n";
}

}  // namespace

int main(int argc, char** argv) {
  must(argc == 2, "usage: gpu_bench FILE.json");
  const std::string device = open_device()->name();
  std::printf("%s\n", device.c_str());
  const Rates rates = {copy_bytes_per_s(), bf16_flops_per_s().value_or(0)};
  report("product of 8192 x 8192 in bf16 by cuBLAS",
         rates.matrix_flops == 0 ? 0 : 2.0 * 8192 * 8192 * 8192 / rates.matrix_flops * 1e3,
         rates.matrix_flops / 1e12, rates.matrix_flops == 0 ? "unknown" : "TFLOP/s");
  measure_products(18944, 3584, rates);  // 7B, gate
  measure_products(1536, 8960, rates);   // 1.5B, down: few blocks
  for (const Shape& shape : kShapes) {
    measure_attention(shape, rates);
    for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kBF16})
      measure(shape, type, KvType::kF16, true, rates);
    measure(shape, TensorType::kQ4_K, KvType::kQ8, true, rates);
    measure(shape, TensorType::kQ8_0, KvType::kF16, false, rates);
    write_json(argv[1], device);
  }
  return 0;
}
