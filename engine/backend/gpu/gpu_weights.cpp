#include "engine/backend/gpu/gpu_weights.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "engine/backend/gpu/packed_weights.h"

namespace efimd::engine::gpu {

namespace {

/// Packed rows travel through a buffer of this size.
constexpr std::size_t kStagingBytes = std::size_t{8} << 20;

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

std::size_t packed_bytes(const TensorView& tensor) {
  return tensor.present() ? size(tensor.rows) * 4 * row_layout(tensor.type, tensor.cols).row_words
                          : 0;
}

/// Whether the output matrix is the embedding itself.
bool tied(const ModelWeights& weights) {
  return weights.output.data == weights.token_embedding.data;
}

class Uploader {
 public:
  Uploader(GpuDevice& device, BufferId staging) : device_(device), staging_(staging) {}

  /// Whole, where all of it must be reachable at once.
  enum class Cut { kMayBeParts, kWhole };

  Result<GpuMatrix> matrix(const TensorView& tensor, Cut cut = Cut::kMayBeParts) {
    GpuMatrix result;
    if (!tensor.present()) return result;
    result.type = packed_type(tensor.type);
    result.layout = row_layout(tensor.type, tensor.cols);
    result.cols = static_cast<int>(tensor.cols);
    const std::size_t row_bytes = 4 * std::size_t{result.layout.row_words};
    const std::size_t fit = device_.limits().range_bytes_max / row_bytes;
    const auto rows_max = static_cast<std::int64_t>(std::min(fit, size(tensor.rows)));
    if (rows_max == 0 || (cut == Cut::kWhole && rows_max < tensor.rows))
      return fail(Fault::kUnsupported, device_.name() + " cannot address a matrix of " +
                                           std::to_string(packed_bytes(tensor)) + " bytes");
    for (std::int64_t first = 0; first < tensor.rows; first += rows_max) {
      const std::int64_t rows = std::min(rows_max, tensor.rows - first);
      auto part = upload(tensor, first, rows, result.layout);
      if (!part) return tl::unexpected(std::move(part).error());
      result.parts.push_back({*part, static_cast<int>(first), static_cast<int>(rows)});
    }
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
  Result<void> send(const Range& to) {
    Operation copy;
    copy.operands[0] = {staging_, 0, to.bytes};
    copy.operands[1] = to;
    return device_.run({&copy, 1});
  }

  Result<Range> upload(const TensorView& tensor, std::int64_t first, std::int64_t rows,
                       const kernels::RowLayout& layout) {
    const std::size_t row_bytes = 4 * std::size_t{layout.row_words};
    auto buffer = device_.allocate(size(rows) * row_bytes, Memory::kDevice);
    if (!buffer) return tl::unexpected(std::move(buffer).error());
    const auto rows_of_piece =
        static_cast<std::int64_t>(std::max<std::size_t>(1, kStagingBytes / row_bytes));
    auto* words = reinterpret_cast<std::uint32_t*>(device_.mapped(staging_).data());
    for (std::int64_t row = 0; row < rows; row += rows_of_piece) {
      const std::int64_t count = std::min(rows_of_piece, rows - row);
      for (std::int64_t i = 0; i < count; ++i)
        pack_row(tensor, first + row + i, layout,
                 {words + size(i) * layout.row_words, layout.row_words});
      if (auto sent = send({*buffer, size(row) * row_bytes, size(count) * row_bytes}); !sent)
        return tl::unexpected(std::move(sent).error());
    }
    return Range{*buffer, 0, size(rows) * row_bytes};
  }

  GpuDevice& device_;
  const BufferId staging_;
  std::vector<float> vectors_;
};

GpuLayer vectors_of(Uploader& uploader, const cpu::CpuLayer& from) {
  const auto norm = [&](const cpu::CpuNorm& of) {
    return GpuNorm{uploader.vector(of.weight), uploader.vector(of.bias)};
  };
  GpuLayer layer;
  layer.attention_norm = norm(from.attention_norm);
  layer.feed_forward_norm = norm(from.feed_forward_norm);
  layer.query_bias = uploader.vector(from.query_bias);
  layer.key_bias = uploader.vector(from.key_bias);
  layer.value_bias = uploader.vector(from.value_bias);
  layer.query_norm = uploader.vector(from.query_norm);
  layer.key_norm = uploader.vector(from.key_norm);
  layer.attention_output_bias = uploader.vector(from.attention_output_bias);
  layer.gate_bias = uploader.vector(from.gate_bias);
  layer.up_bias = uploader.vector(from.up_bias);
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
    for (Range* range :
         {&layer.query_bias, &layer.key_bias, &layer.value_bias, &layer.query_norm, &layer.key_norm,
          &layer.attention_output_bias, &layer.gate_bias, &layer.up_bias, &layer.down_bias})
      set(*range);
  }
}

Result<void> upload_layer(Uploader& uploader, const LayerWeights& from, GpuLayer& layer) {
  using Cut = Uploader::Cut;
  const Cut stacked = from.router.present() ? Cut::kWhole : Cut::kMayBeParts;
  const std::tuple<const TensorView*, GpuMatrix*, Cut> matrices[] = {
      {&from.query, &layer.query, Cut::kMayBeParts},
      {&from.key, &layer.key, Cut::kMayBeParts},
      {&from.value, &layer.value, Cut::kMayBeParts},
      {&from.attention_output, &layer.attention_output, Cut::kMayBeParts},
      {&from.router, &layer.router, Cut::kMayBeParts},
      {&from.gate, &layer.gate, stacked},
      {&from.up, &layer.up, stacked},
      {&from.down, &layer.down, stacked}};
  for (const auto& [tensor, matrix, cut] : matrices) {
    auto done = uploader.matrix(*tensor, cut);
    if (!done) return tl::unexpected(std::move(done).error());
    *matrix = *std::move(done);
  }
  return {};
}

}  // namespace

std::size_t GpuWeights::bytes(const ModelWeights& weights) {
  std::size_t bytes = packed_bytes(weights.token_embedding) + kStagingBytes;
  if (!tied(weights)) bytes += packed_bytes(weights.output);
  for (const LayerWeights& layer : weights.layers)
    for (const TensorView* tensor :
         {&layer.query, &layer.key, &layer.value, &layer.attention_output, &layer.router,
          &layer.gate, &layer.up, &layer.down})
      bytes += packed_bytes(*tensor);
  return bytes;
}

Result<GpuWeights> GpuWeights::upload(GpuDevice& device, const ModelShape& shape,
                                      const ModelWeights& weights) {
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
    result.layers.push_back(vectors_of(uploader, fitted->layers[i]));
    if (auto done = upload_layer(uploader, weights.layers[i], result.layers.back()); !done)
      return tl::unexpected(std::move(done).error());
  }
  auto embedding = uploader.matrix(weights.token_embedding);
  if (!embedding) return tl::unexpected(std::move(embedding).error());
  result.token_embedding = *std::move(embedding);
  auto output =
      tied(weights) ? Result<GpuMatrix>(result.token_embedding) : uploader.matrix(weights.output);
  if (!output) return tl::unexpected(std::move(output).error());
  result.output = *std::move(output);
  const auto vectors = uploader.place_vectors();
  if (!vectors) return tl::unexpected(vectors.error());
  set_buffer(result, *vectors);
  return result;
}

}  // namespace efimd::engine::gpu
