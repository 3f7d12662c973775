// The speed of the kernels on an NVIDIA card: a table, and the same as JSON in the named file.
#include "bench.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "engine/backend/cuda/cuda_device.h"
#include "matrix_rate.h"

using namespace efimd;
using namespace efimd::engine;

const Extent kWhole = {.sample_ms = 500,
                       .samples_min = 5,
                       .copy_bytes = std::size_t{1} << 30U,
                       .operand_bytes = std::size_t{512} << 20U,
                       .list_bytes = std::size_t{4} << 30U,
                       .contexts = {512, 4096, 16384 - 1},
                       .prompts = {512, 2048, 8192},
                       .context = 4096,
                       .prompt = 2048,
                       .keystroke = {1, 2, 3, 4, 8, 16},
                       .product_tokens = {1, 2, 8, 16, 24, 64, 512, 2048},
                       .few_tokens = 8};
// In a quarter of the time, for a card that is lent for minutes.
const Extent kQuick = {.sample_ms = 100,
                       .samples_min = 3,
                       .copy_bytes = std::size_t{1} << 30U,
                       .operand_bytes = std::size_t{512} << 20U,
                       .list_bytes = std::size_t{4} << 30U,
                       .contexts = {512, 4096},
                       .prompts = {512, 2048},
                       .context = 4096,
                       .prompt = 2048,
                       .keystroke = {1, 2, 4, 8, 16},
                       .product_tokens = {1, 8, 64, 512},
                       .few_tokens = 8};
const Extent kTiny = {.sample_ms = 0,
                      .samples_min = 1,
                      .copy_bytes = std::size_t{1} << 20U,
                      .operand_bytes = 40'000,
                      .list_bytes = 80'000,
                      .contexts = {20, 40, 69},
                      .prompts = {16, 33},
                      .context = 40,
                      .prompt = 33,
                      .keystroke = {1, 3},
                      .product_tokens = {1, 16},
                      .few_tokens = 8};

std::unique_ptr<gpu::GpuDevice> open_device(const cuda::CudaOptions& options) {
  auto device = cuda::open_cuda_device(options);
  must_have(device);
  return *std::move(device);
}

namespace {

// First what the targets are of.
constexpr Shape kShapes[] = {{"7B", 28, 3584, 28, 4, 18944, false},
                             {"0.5B", 24, 896, 14, 2, 4864, true},
                             {"1.5B", 28, 1536, 12, 2, 8960, true}};
constexpr Shape kTinyShape = {"tiny", 2, 64, 2, 1, 128, false, 300, 256};
constexpr std::string_view kProducts = "products";
/// No part: the others are measured more quickly.
constexpr std::string_view kQuickly = "quick";
/// For the stand-in, which has none of the default parts.
constexpr std::string_view kTinyPart = "tiny";

/// Bytes read and written in a second by a copy within the device's memory.
double copy_bytes_per_s(const Bench& bench) {
  const auto device = open_device();
  const std::size_t bytes = bench.extent.copy_bytes;
  const auto from = device->allocate(bytes, gpu::Memory::kDevice);
  const auto to = device->allocate(bytes, gpu::Memory::kDevice);
  must_have(from);
  must_have(to);
  gpu::Operation copy;
  copy.operands[0] = {*from, 0, bytes};
  copy.operands[1] = {*to, 0, bytes};
  const double ms = bench.median_ms([&] { must_have(device->run({&copy, 1})); });
  const double rate = 2 * static_cast<double>(bytes) / ms * 1e3;
  bench.report.line("copy within device memory", ms, rate / 1e9, "GB/s");
  return rate;
}

double matrix_flops_per_s(const Bench& bench) {
  const double rate = bf16_flops_per_s().value_or(0);
  if (rate == 0)
    std::printf("SKIPPED  the rate of products in bf16: cuBLAS is not there\n");
  else
    bench.report.line("product of 8192 x 8192 in bf16 by cuBLAS",
                      2.0 * 8192 * 8192 * 8192 / rate * 1e3, rate / 1e12, "TFLOP/s");
  return rate;
}

void measure(Bench& bench, std::string_view part) {
  for (const Shape& shape : kShapes) {
    if (part != shape.name) continue;
    measure_model(bench, shape);
    measure_attention(bench, shape);
  }
  if (part == kProducts) {
    measure_products(bench, 18944, 3584);  // 7B, gate
    measure_products(bench, 1536, 8960);   // 1.5B, down: few blocks
  }
  if (part == kTinyPart) {
    measure_model(bench, kTinyShape);
    measure_attention(bench, kTinyShape);
    measure_products(bench, 64, 256);
  }
}

bool known(std::string_view part) {
  return part == kProducts || part == kTinyPart || part == kQuickly ||
         std::ranges::any_of(kShapes, [&](const Shape& shape) { return part == shape.name; });
}

int run(const char* path, std::vector<std::string_view> parts) {
  const bool quick = std::erase(parts, kQuickly) > 0;
  if (parts.empty()) {
    for (const Shape& shape : kShapes) parts.emplace_back(shape.name);
    parts.push_back(kProducts);
  }
  const std::string device = open_device()->name();
  std::printf("%s\n", device.c_str());
  Report report(path, device);
  const bool tiny = std::ranges::count(parts, kTinyPart) > 0;
  Bench bench{tiny ? kTiny : quick ? kQuick : kWhole, report, {}};
  bench.rates.copy_bytes = copy_bytes_per_s(bench);
  bench.rates.matrix_flops = matrix_flops_per_s(bench);
  for (const std::string_view part : parts) measure(bench, part);
  report.print_targets();
  return report.failed() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> parts(argv + std::min(argc, 2), argv + argc);
  if (argc < 2 || !std::ranges::all_of(parts, known)) {
    std::fprintf(stderr, "usage: gpu_bench FILE.json [quick] [7B | 0.5B | 1.5B | products]...\n");
    return 2;
  }
  try {
    return run(argv[1], parts);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "gpu bench: %s\n", failure.what());
    return 1;
  }
}
