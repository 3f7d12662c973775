// Operations alone. A list has so many operations of one kind that they read far more than a cache
// holds, each its own part of the memory. A single launch would measure the launch, the wait and a
// cache.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <numeric>

#include "bench.h"
#include "engine/backend/gpu/gpu_attention.h"
#include "engine/backend/gpu/packed_weights.h"
#include "engine/backend/gpu/step_buffers.h"
#include "kernels/sizes.h"
#include "repeated_rows.h"
#include "tests/engine/backend/weight_values.h"

using namespace efimd;
using namespace efimd::engine;

namespace {

/// A graph of more nodes tells no more.
constexpr std::size_t kListMax = 1024;
constexpr std::size_t kCopiesMax = 256;
/// The most tokens of a step; attention has partials for these.
constexpr int kLongestStep = 2048;

std::uint32_t number(int count) { return static_cast<std::uint32_t>(count); }

gpu::Range room(gpu::GpuDevice& device, std::size_t bytes,
                gpu::Memory where = gpu::Memory::kDevice) {
  const auto buffer = device.allocate(bytes, where);
  must_have(buffer);
  return {*buffer, 0, bytes};
}

gpu::Range told(gpu::GpuDevice& device, std::span<const std::byte> bytes) {
  const gpu::Range range = room(device, bytes.size(), gpu::Memory::kHostWrites);
  std::ranges::copy(bytes, device.mapped(range.buffer).begin());
  return range;
}

/// Device memory that repeats these bytes.
gpu::Range repeated(gpu::GpuDevice& device, std::span<const std::byte> tile, std::size_t bytes) {
  const gpu::Range all = room(device, bytes);
  const std::size_t first = std::min(tile.size(), bytes);
  std::vector<gpu::Operation> copies;
  const auto copy = [&](const gpu::Range& from, std::size_t to, std::size_t count) {
    gpu::Operation& operation = copies.emplace_back();
    operation.operands[0] = {from.buffer, from.offset, count};
    operation.operands[1] = {all.buffer, to, count};
  };
  copy(told(device, tile.first(first)), 0, first);
  for (std::size_t done = first; done < bytes; done += std::min(done, bytes - done))
    copy(all, done, std::min(done, bytes - done));
  must_have(device.run(copies));
  return all;
}

/// Device memory full of random numbers of a type that is not quantized.
gpu::Range numbers(gpu::GpuDevice& device, TensorType type, std::size_t bytes, float scale = 1) {
  std::deque<std::vector<std::byte>> storage;
  std::mt19937 random(2);
  constexpr std::int64_t kRows = 32, kCols = 4096;
  const TensorView values = test::random_tensor(storage, type, kRows, kCols, scale, random);
  return repeated(device, {values.data, kRows * values.row_bytes()}, bytes);
}

gpu::Range random_bytes(gpu::GpuDevice& device, std::size_t bytes) {
  std::mt19937 random(3);
  std::vector<std::byte> tile(std::size_t{1} << 18U);
  for (std::byte& each : tile) each = static_cast<std::byte>(random() % 255 - 127);
  return repeated(device, tile, bytes);
}

/// How many operands of that size are read in turn, of those that fit half the memory.
std::size_t copies_of(const Bench& bench, const gpu::GpuDevice& device, std::size_t bytes) {
  const std::size_t wanted = (bench.extent.operand_bytes + bytes - 1) / bytes;
  const std::size_t fit =
      std::min(device.limits().memory_bytes / 2, device.limits().range_bytes_max) / bytes;
  return std::clamp<std::size_t>(std::min(wanted, fit), 1, kCopiesMax);
}

/// The list again, so often that it reads Extent::list_bytes.
std::vector<gpu::Operation> rounds_of(const Bench& bench,
                                      const std::vector<gpu::Operation>& operations,
                                      std::size_t bytes) {
  const std::size_t rounds = std::clamp<std::size_t>(
      bench.extent.list_bytes / bytes, 1, std::max<std::size_t>(1, kListMax / operations.size()));
  std::vector<gpu::Operation> list;
  for (std::size_t i = 0; i < rounds; ++i)
    list.insert(list.end(), operations.begin(), operations.end());
  return list;
}

/// Milliseconds of one of the operations, or of one of the groups that so many of them are.
double ms_of_each(const Bench& bench, gpu::GpuDevice& device,
                  const std::vector<gpu::Operation>& list, std::size_t group = 1) {
  const double ms = bench.median_ms([&] { must_have(device.run(list)); });
  return ms * static_cast<double>(group) / static_cast<double>(list.size());
}

/// Products of one weight type.
class Products {
 public:
  Products(Bench& bench, TensorType type, int rows, int cols)
      : bench_(bench), device_(open_device()), type_(type), rows_(rows), cols_(cols) {
    const gpu::DeviceLimits limits = device_->limits();
    halves_ = (type == TensorType::kF16 && limits.f16_products) ||
              (type == TensorType::kBF16 && limits.bf16_products);
    layout_ = gpu::row_layout(type, cols);
    bytes_ = static_cast<std::size_t>(rows) * layout_.row_words * 4;
    copies_ = copies_of(bench, *device_, bytes_);
    std::deque<std::vector<std::byte>> storage;
    std::mt19937 random(1);
    const TensorView tensor = repeated_tensor(storage, type, rows, cols, 1, random);
    const std::vector<std::uint32_t> packed = packed_rows(tensor);
    weights_ = repeated(*device_, std::as_bytes(std::span(packed)), copies_ * bytes_);
    const std::size_t inputs = static_cast<std::size_t>(cols) *
                               static_cast<std::size_t>(bench.extent.product_tokens.back());
    if (gpu::is_quantized(gpu::packed_type(type)))
      input_ = random_bytes(*device_, inputs);
    else
      input_ = numbers(*device_, halves_ ? type : TensorType::kF32, 4 * inputs);
    scales_ = numbers(*device_, TensorType::kF32, inputs / 4, 0.01F);
    result_ = room(*device_, sizeof(float) * static_cast<std::size_t>(rows) *
                                 static_cast<std::size_t>(bench.extent.product_tokens.back()));
  }

  std::string name() const {
    return "product " + std::string(tensor_type_name(type_)) + ", " + std::to_string(rows_) +
           " x " + std::to_string(cols_) + ", ";
  }

  void measure(int tokens) {
    std::vector<gpu::Operation> list;
    for (std::size_t i = 0; i < copies_; ++i) list.push_back(product(i, tokens));
    const bool few = tokens <= bench_.extent.few_tokens;
    if (few) list = rounds_of(bench_, list, copies_ * bytes_);
    const double ms = ms_of_each(bench_, *device_, list);
    const double flops = 2.0 * rows_ * cols_ * tokens;
    const std::string what = name() + std::to_string(tokens) + " tokens";
    const auto bytes = static_cast<double>(bytes_);
    if (few)
      bench_.report.line(what, ms, bytes / ms / 1e6, "GB/s", bench_.rates.of_copying(bytes, ms));
    else
      bench_.report.line(what, ms, flops / ms / 1e9, "TFLOP/s",
                         bench_.rates.of_products(flops, ms));
  }

 private:
  gpu::Operation product(std::size_t copy, int tokens) const {
    const std::uint32_t tile = tokens > 1 ? kernels::kTokensOfTile : 1;
    gpu::Operation operation;
    operation.kernel = halves_ ? gpu::Kernel::kMatmulHalves : gpu::Kernel::kMatmul;
    operation.type = static_cast<std::uint32_t>(gpu::packed_type(type_));
    operation.many = tokens > 1;
    operation.groups = {number(rows_), (number(tokens) + tile - 1) / tile, 1};
    const gpu::Range weights{weights_.buffer, copy * bytes_, bytes_};
    // Without bias and experts: any operand.
    if (halves_)
      operation.operands = {weights, input_, scales_, scales_, result_};
    else
      operation.operands = {weights, input_, scales_, scales_, scales_, result_};
    operation.set_sizes(kernels::MatmulSizes{layout_, number(cols_), number(rows_), 0,
                                             number(rows_), number(tokens), 0, 0, 0, 1});
    return operation;
  }

  Bench& bench_;
  const std::unique_ptr<gpu::GpuDevice> device_;
  const TensorType type_;
  const int rows_, cols_;
  bool halves_ = false;
  kernels::RowLayout layout_ = {};
  std::size_t bytes_ = 0;  ///< of one matrix
  std::size_t copies_ = 0;
  gpu::Range weights_, input_, scales_, result_;
};

/// Attention of the last `tokens` of a context over f16 KV, and what joins its splits.
class Attention {
 public:
  Attention(Bench& bench, const Shape& of, int context, int tokens)
      : bench_(bench),
        device_(open_device()),
        shape_(of.model()),
        context_(context),
        tokens_(tokens) {
    const int pages = (context + kPageTokens - 1) / kPageTokens;
    const auto width = static_cast<std::size_t>(shape_.head_width);
    const auto heads = static_cast<std::size_t>(tokens * shape_.heads);
    const auto kv_heads = static_cast<std::size_t>(shape_.kv_heads);
    splits_ = gpu::splits_of(static_cast<std::size_t>(tokens), shape_, pages,
                             gpu::attention_partials(kLongestStep));
    bytes_ = static_cast<std::size_t>(pages) * kPageTokens * kv_heads * 2 * width * 2;
    copies_ = copies_of(bench, *device_, bytes_);
    std::vector<std::uint32_t> table(static_cast<std::size_t>(pages)), rows;
    std::iota(table.begin(), table.end(), 0U);
    for (int t = 0; t < tokens; ++t) rows.insert(rows.end(), {number(context - tokens + t), 0U});
    table_ = on_device(table);
    rows_ = on_device(rows);
    queries_ = numbers(*device_, TensorType::kF32,
                       (heads + 2 * static_cast<std::size_t>(tokens) * kv_heads) * width * 4);
    kv_ = numbers(*device_, TensorType::kF16, copies_ * bytes_);
    partials_ = room(*device_, heads * splits_ * (width + kernels::kPartialHead) * 4);
    result_ = room(*device_, heads * width * 4);
  }

  void measure(const std::string& of) {
    std::vector<gpu::Operation> list;
    for (std::size_t i = 0; i < copies_; ++i) {
      list.push_back(attention(i));
      list.push_back(merge());
    }
    const bool prompt = tokens_ == context_;
    if (!prompt) list = rounds_of(bench_, list, copies_ * bytes_);
    const double ms = ms_of_each(bench_, *device_, list, 2);
    const std::string what = "attention of " + of + ", " + std::to_string(tokens_) +
                             " tokens after " + std::to_string(context_ - tokens_);
    // Two products of E for each head and token that is seen.
    const double flops = 4.0 * shape_.width * tokens_ * (context_ - (tokens_ - 1) / 2.0);
    const auto bytes = static_cast<double>(bytes_);
    if (prompt)
      bench_.report.line(what, ms, flops / ms / 1e9, "TFLOP/s",
                         bench_.rates.of_products(flops, ms));
    else
      bench_.report.line(what, ms, bytes / ms / 1e6, "GB/s", bench_.rates.of_copying(bytes, ms));
  }

 private:
  /// As a step has it, whose host's words are copied.
  gpu::Range on_device(const std::vector<std::uint32_t>& words) {
    return repeated(*device_, std::as_bytes(std::span(words)), words.size() * 4);
  }

  gpu::Operation attention(std::size_t copy) const {
    gpu::Operation operation;
    operation.operands = {queries_, gpu::Range{kv_.buffer, copy * bytes_, bytes_}, table_, rows_,
                          partials_};
    const kernels::AttentionSizes sizes{number(shape_.heads),
                                        number(shape_.kv_heads),
                                        number(shape_.head_width),
                                        1U << 30U,
                                        number(gpu::split_pages_of(shape_)),
                                        splits_,
                                        0,
                                        0,
                                        number(tokens_)};
    gpu::set_attention(operation, kernels::Kv::kF16, sizes, device_->limits());
    return operation;
  }

  gpu::Operation merge() const {
    gpu::Operation operation;
    operation.kernel = gpu::Kernel::kMerge;
    operation.groups = {
        number(tokens_),
        (number(shape_.width) + kernels::kFormElements - 1) / kernels::kFormElements, 1};
    operation.operands = {partials_, rows_, result_, result_, result_, result_};
    operation.set_sizes(kernels::MergeSizes{number(shape_.heads),
                                            number(shape_.head_width),
                                            number(gpu::split_pages_of(shape_)),
                                            splits_,
                                            1.0F,
                                            {1, 0, 0}});
    return operation;
  }

  Bench& bench_;
  const std::unique_ptr<gpu::GpuDevice> device_;
  const ModelShape shape_;
  const int context_, tokens_;
  std::uint32_t splits_ = 1;
  std::size_t bytes_ = 0;  ///< of one KV
  std::size_t copies_ = 0;
  gpu::Range table_, rows_, queries_, kv_, partials_, result_;
};

}  // namespace

void measure_products(Bench& bench, int rows, int cols) {
  for (const TensorType type : test::kWeightTypes)
    attempt(bench, "products of " + std::string(tensor_type_name(type)), [&] {
      Products products(bench, type, rows, cols);
      for (const int tokens : bench.extent.product_tokens) products.measure(tokens);
    });
}

void measure_attention(Bench& bench, const Shape& shape) {
  struct Step {
    int context, tokens;
  };
  const Extent& extent = bench.extent;
  const int longest = extent.contexts.back() + 1, most = extent.keystroke.back();
  for (const Step& step : {Step{extent.context, 1}, Step{extent.context, most}, Step{longest, 1},
                           Step{extent.prompt, extent.prompt}})
    attempt(bench, std::string("attention of ") + shape.name,
            [&] { Attention(bench, shape, step.context, step.tokens).measure(shape.name); });
}
