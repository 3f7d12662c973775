#include "repeated_rows.h"

#include <algorithm>

#include "engine/backend/gpu/packed_weights.h"
#include "tests/engine/backend/weight_values.h"

using namespace efimd;
using engine::TensorView;

namespace {

constexpr std::size_t kTileBytes = std::size_t{1} << 20;

std::int64_t rows_of_tile(const TensorView& tensor) {
  const std::size_t rows = (kTileBytes + tensor.row_bytes() - 1) / tensor.row_bytes();
  return std::min(tensor.rows, static_cast<std::int64_t>(rows));
}

}  // namespace

TensorView repeated_tensor(std::deque<std::vector<std::byte>>& storage, engine::TensorType type,
                           std::int64_t rows, std::int64_t cols, float scale,
                           std::mt19937& random) {
  TensorView tensor{type, nullptr, rows, cols};
  std::deque<std::vector<std::byte>> of_tile;
  const TensorView tile =
      test::random_tensor(of_tile, type, rows_of_tile(tensor), cols, scale, random);
  const std::span bytes(tile.data, static_cast<std::size_t>(tile.rows) * tile.row_bytes());
  std::vector<std::byte>& all = storage.emplace_back();
  const std::size_t total = static_cast<std::size_t>(rows) * tensor.row_bytes();
  all.reserve(total);
  while (all.size() < total) {
    const auto next = bytes.first(std::min(bytes.size(), total - all.size()));
    all.insert(all.end(), next.begin(), next.end());
  }
  tensor.data = all.data();
  return tensor;
}

std::vector<std::uint32_t> packed_rows(const TensorView& tensor) {
  const auto layout = engine::gpu::row_layout(tensor.type, tensor.cols);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(rows_of_tile(tensor)) *
                                   layout.row_words);
  for (std::size_t at = 0; at < words.size(); at += layout.row_words)
    engine::gpu::pack_row(tensor, static_cast<std::int64_t>(at / layout.row_words), layout,
                          std::span(words).subspan(at, layout.row_words));
  return words;
}
