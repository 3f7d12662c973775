#include "engine/backend/gpu/gpu_weights.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

#include "engine/backend/cpu/worker_pool.h"
#include "engine/backend/gpu/packed_weights.h"
#include "engine/backend/size.h"

namespace efimd::engine::gpu {

namespace {

/// Packed rows travel through a buffer of this size.
constexpr std::size_t kStagingBytes = std::size_t{8} << 20;

std::size_t packed_bytes(const TensorView& tensor) {
  return tensor.present() ? size(tensor.rows) * 4 * row_layout(tensor.type, tensor.cols).row_words
                          : 0;
}

/// Whether the output matrix is the embedding itself.
bool tied(const ModelWeights& weights) {
  return weights.output.data == weights.token_embedding.data;
}

/// Threads that pack rows; if none can be started, the caller works alone.
std::unique_ptr<cpu::WorkerPool> packers() {
  try {
    return std::make_unique<cpu::WorkerPool>(cpu::physical_cores());
  } catch (const std::system_error&) {
    return std::make_unique<cpu::WorkerPool>(1);
  }
}

class Uploader {
 public:
  Uploader(GpuDevice& device, BufferId staging)
      : device_(device), staging_(staging), packers_(packers()) {}

  /// Tensors that are there, one below the other. With experts each is a part, because all of it
  /// must be reachable at once.
  Result<GpuMatrix> matrix(const std::vector<const TensorView*>& tensors, int experts = 0) {
    GpuMatrix result;
    std::vector<const TensorView*> alike;
    for (const TensorView* tensor : tensors) {
      if (!tensor->present()) continue;
      if (!alike.empty() && (experts > 0 || alike.front()->type != tensor->type)) {
        if (auto added = add_parts(alike, experts, result); !added)
          return tl::unexpected(std::move(added).error());
        alike.clear();
      }
      alike.push_back(tensor);
    }
    if (!alike.empty())
      if (auto added = add_parts(alike, experts, result); !added)
        return tl::unexpected(std::move(added).error());
    return result;
  }

  /// Notes a vector; its range is valid when place_vectors() was called.
  Range vector(const std::vector<float>& values) {
    if (values.empty()) return {};
    const Range range{BufferId::kNone, vectors_.size() * sizeof(float),
                      values.size() * sizeof(float)};
    vectors_.insert(vectors_.end(), values.begin(), values.end());
    const std::size_t step = device_.limits().offset_alignment / sizeof(float);
    vectors_.resize((vectors_.size() + step - 1) / step * step);
    return range;
  }

  Result<BufferId> place_vectors() {
    const auto bytes = std::as_bytes(std::span(vectors_));
    auto buffer = device_.allocate(bytes.size(), Memory::kDevice);
    for (std::size_t at = 0; buffer && at < bytes.size(); at += kStagingBytes) {
      const auto piece = bytes.subspan(at, std::min(kStagingBytes, bytes.size() - at));
      std::ranges::copy(piece, device_.mapped(staging_).begin());
      if (auto sent = send({*buffer, at, piece.size()}); !sent)
        return tl::unexpected(std::move(sent).error());
    }
    return buffer;
  }

 private:
  using Tensors = std::span<const TensorView* const>;

  /// Whether the device multiplies them with inputs of their type: of one type in all of a matrix,
  /// for inputs have one.
  bool takes_halves(const TensorView& tensor, const GpuMatrix& matrix) const {
    const DeviceLimits limits = device_.limits();
    const bool can = (tensor.type == TensorType::kF16 && limits.f16_products) ||
                     (tensor.type == TensorType::kBF16 && limits.bf16_products);
    const auto of_another_type = [&](const GpuMatrix::Part& part) {
      return part.halves && part.type != packed_type(tensor.type);
    };
    return can && tensor.cols % kernels::kHalvesPiece == 0 &&
           std::ranges::none_of(matrix.parts, of_another_type);
  }

  Result<void> add_parts(Tensors tensors, int experts, GpuMatrix& matrix) {
    const TensorView& kind = *tensors.front();
    matrix.cols = static_cast<int>(kind.cols);
    const auto layout = row_layout(kind.type, kind.cols);
    std::int64_t all = 0;
    for (const TensorView* tensor : tensors) all += tensor->rows;
    const std::size_t row_bytes = 4 * std::size_t{layout.row_words};
    const std::size_t fit = device_.limits().range_bytes_max / row_bytes;
    const auto rows_max = static_cast<std::int64_t>(std::min(fit, size(all)));
    if (rows_max == 0 || (experts > 0 && rows_max < all))
      return fail(Fault::kUnsupported, device_.name() + " cannot address a matrix of " +
                                           std::to_string(size(all) * row_bytes) + " bytes");
    for (std::int64_t first = 0; first < all; first += rows_max) {
      const std::int64_t rows = std::min(rows_max, all - first);
      auto part = upload(tensors, first, rows, layout);
      if (!part) return tl::unexpected(std::move(part).error());
      matrix.parts.push_back({*part, packed_type(kind.type), takes_halves(kind, matrix), layout,
                              matrix.rows, static_cast<int>(rows)});
      matrix.rows += static_cast<int>(experts > 0 ? rows / experts : rows);
    }
    return {};
  }

  Result<void> send(const Range& to) {
    Operation copy;
    copy.operands[0] = {staging_, 0, to.bytes};
    copy.operands[1] = to;
    return device_.run({&copy, 1});
  }

  static void pack(Tensors tensors, std::int64_t row, const kernels::RowLayout& layout,
                   std::span<std::uint32_t> words) {
    while (row >= tensors.front()->rows) {
      row -= tensors.front()->rows;
      tensors = tensors.subspan(1);
    }
    pack_row(*tensors.front(), row, layout, words);
  }

  Result<Range> upload(Tensors tensors, std::int64_t first, std::int64_t rows,
                       const kernels::RowLayout& layout) {
    const std::size_t row_bytes = 4 * std::size_t{layout.row_words};
    auto buffer = device_.allocate(size(rows) * row_bytes, Memory::kDevice);
    if (!buffer) return tl::unexpected(std::move(buffer).error());
    const auto rows_of_piece =
        static_cast<std::int64_t>(std::max<std::size_t>(1, kStagingBytes / row_bytes));
    for (std::int64_t row = 0; row < rows; row += rows_of_piece) {
      const std::int64_t count = std::min(rows_of_piece, rows - row);
      packed_.resize(size(count) * layout.row_words);
      packers_->parallel_for(static_cast<int>(count), [&](int i) {
        pack(tensors, first + row + i, layout,
             std::span(packed_).subspan(size(i) * layout.row_words, layout.row_words));
      });
      std::ranges::copy(std::as_bytes(std::span(packed_)), device_.mapped(staging_).begin());
      if (auto sent = send({*buffer, size(row) * row_bytes, size(count) * row_bytes}); !sent)
        return tl::unexpected(std::move(sent).error());
    }
    return Range{*buffer, 0, size(rows) * row_bytes};
  }

  GpuDevice& device_;
  const BufferId staging_;
  const std::unique_ptr<cpu::WorkerPool> packers_;
  std::vector<float> vectors_;
  std::vector<std::uint32_t> packed_;  ///< rows on their way to the staging memory
};

/// Vectors one after another, zeros for absent ones; nothing if all are absent.
std::vector<float> joined(
    std::initializer_list<std::pair<const std::vector<float>*, int>> vectors_and_widths) {
  std::vector<float> result;
  for (const auto& [vector, width] : vectors_and_widths) {
    result.insert(result.end(), vector->begin(), vector->end());
    if (vector->empty()) result.resize(result.size() + size(width));
  }
  const bool none =
      std::ranges::all_of(vectors_and_widths, [](const auto& each) { return each.first->empty(); });
  return none ? std::vector<float>() : result;
}

GpuLayer vectors_of(Uploader& uploader, const ModelShape& shape, const cpu::CpuLayer& from,
                    bool gated, bool bias_of_keys_apart) {
  const auto norm = [&](const cpu::CpuNorm& of) {
    return GpuNorm{uploader.vector(of.weight), uploader.vector(of.bias)};
  };
  GpuLayer layer;
  layer.attention_norm = norm(from.attention_norm);
  layer.feed_forward_norm = norm(from.feed_forward_norm);
  const bool apart = bias_of_keys_apart && from.key_norm.empty();
  const std::vector<float> none;
  const int key_width = shape.kv_heads * shape.head_width;
  layer.qkv_bias = uploader.vector(joined({{&from.query_bias, shape.heads * shape.head_width},
                                           {apart ? &none : &from.key_bias, key_width},
                                           {&from.value_bias, key_width}}));
  if (apart) layer.key_bias = uploader.vector(from.key_bias);
  layer.query_norm = uploader.vector(from.query_norm);
  layer.key_norm = uploader.vector(from.key_norm);
  layer.attention_output_bias = uploader.vector(from.attention_output_bias);
  layer.gate_up_bias = uploader.vector(joined(
      {{&from.gate_bias, gated ? shape.feed_forward : 0}, {&from.up_bias, shape.feed_forward}}));
  layer.down_bias = uploader.vector(from.down_bias);
  return layer;
}

/// Vectors were noted before their buffer existed.
void set_buffer(GpuWeights& weights, BufferId buffer) {
  const auto set = [&](Range& range) {
    if (range.bytes > 0) range.buffer = buffer;
  };
  const auto set_norm = [&](GpuNorm& norm) {
    set(norm.weight);
    set(norm.bias);
  };
  set_norm(weights.output_norm);
  for (GpuLayer& layer : weights.layers) {
    set_norm(layer.attention_norm);
    set_norm(layer.feed_forward_norm);
    for (Range* range : {&layer.qkv_bias, &layer.key_bias, &layer.query_norm, &layer.key_norm,
                         &layer.attention_output_bias, &layer.gate_up_bias, &layer.down_bias})
      set(*range);
  }
}

Result<void> upload_layer(Uploader& uploader, const LayerWeights& from, int experts,
                          GpuLayer& layer) {
  using Tensors = std::vector<const TensorView*>;
  const std::tuple<Tensors, GpuMatrix*, int> matrices[] = {
      {{&from.query, &from.key, &from.value}, &layer.qkv, 0},
      {{&from.attention_output}, &layer.attention_output, 0},
      {{&from.router}, &layer.router, 0},
      {{&from.gate, &from.up}, &layer.gate_up, experts},
      {{&from.down}, &layer.down, experts}};
  for (const auto& [tensors, matrix, stacked] : matrices) {
    auto done = uploader.matrix(tensors, stacked);
    if (!done) return tl::unexpected(std::move(done).error());
    *matrix = *std::move(done);
  }
  // Both read what one norm writes, in one type of halves.
  if (layer.router.inputs().halves != layer.gate_up.inputs().halves)
    for (GpuMatrix::Part& part : layer.router.parts) part.halves = false;
  return {};
}

}  // namespace

kernels::Forms GpuMatrix::inputs() const {
  kernels::Forms forms = {};
  for (const Part& part : parts) {
    if (part.halves)
      forms.halves = part.type == kernels::Packed::kF16 ? 1 : 2;
    else
      (is_quantized(part.type) ? forms.quants : forms.floats) = 1;
  }
  return forms;
}

std::size_t GpuWeights::bytes(const ModelWeights& weights, WithOutput with_output) {
  std::size_t bytes = packed_bytes(weights.token_embedding) + kStagingBytes;
  if (with_output == WithOutput::kYes && !tied(weights)) bytes += packed_bytes(weights.output);
  for (const LayerWeights& layer : weights.layers)
    for (const TensorView* tensor :
         {&layer.query, &layer.key, &layer.value, &layer.attention_output, &layer.router,
          &layer.gate, &layer.up, &layer.down})
      bytes += packed_bytes(*tensor);
  return bytes;
}

Result<GpuWeights> GpuWeights::upload(GpuDevice& device, const ModelShape& shape,
                                      const ModelWeights& weights, bool bias_of_keys_apart,
                                      WithOutput with_output) {
  const auto fitted = cpu::CpuWeights::from(shape, weights);
  if (!fitted) return tl::unexpected(fitted.error());
  const auto staging = device.allocate(
      std::max(
          kStagingBytes,
          std::size_t{4} * row_layout(TensorType::kF32, std::max({shape.width, shape.feed_forward,
                                                                  shape.heads * shape.head_width}))
                               .row_words),
      Memory::kHostWrites);
  if (!staging) return tl::unexpected(staging.error());
  Uploader uploader(device, *staging);

  GpuWeights result;
  result.rope_factors = fitted->rope_factors;
  result.output_norm = {uploader.vector(fitted->output_norm.weight),
                        uploader.vector(fitted->output_norm.bias)};
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const LayerWeights& layer = weights.layers[i];
    const bool gated = layer.gate.present();
    result.layers.push_back(
        vectors_of(uploader, shape, fitted->layers[i], gated, bias_of_keys_apart));
    result.layers.back().gated = gated;
    const int experts = layer.router.present() ? shape.experts : 0;
    if (auto done = upload_layer(uploader, layer, experts, result.layers.back()); !done)
      return tl::unexpected(std::move(done).error());
  }
  auto embedding = uploader.matrix({&weights.token_embedding});
  if (!embedding) return tl::unexpected(std::move(embedding).error());
  result.token_embedding = *std::move(embedding);
  if (tied(weights)) {
    result.output = result.token_embedding;
  } else if (with_output == WithOutput::kYes) {
    auto output = uploader.matrix({&weights.output});
    if (!output) return tl::unexpected(std::move(output).error());
    result.output = *std::move(output);
  }
  const auto vectors = uploader.place_vectors();
  if (!vectors) return tl::unexpected(vectors.error());
  set_buffer(result, *vectors);
  return result;
}

}  // namespace efimd::engine::gpu
