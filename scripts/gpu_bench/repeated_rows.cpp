// Weights of 7B models within seconds: to make random ones and to pack them takes minutes a model, and a device is as fast
// with rows that come again after 1 MiB. They are random all the same, for power, and with it the clock, depends on the bits.
//
// This file takes the place of engine/backend/gpu/packed_weights.cpp, whose pack_row() it calls for the rows that are there.
#define pack_row pack_one_row
#include "engine/backend/gpu/packed_weights.cpp"  // NOLINT(bugprone-suspicious-include)
#undef pack_row

#include <map>
#include <tuple>

#include "repeated_rows.h"
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
  tensor.data = test::random_tensor(storage, type, rows_of_tile(tensor), cols, scale, random).data;
  return tensor;
}

const std::vector<std::uint32_t>& packed_rows(const TensorView& tensor) {
  // Memory that is given back and taken again finds the rows of a tensor that was there: as good as its own.
  using Key = std::tuple<const std::byte*, engine::TensorType, std::int64_t, std::int64_t>;
  static std::map<Key, std::vector<std::uint32_t>> tiles;
  const std::int64_t rows = rows_of_tile(tensor);
  std::vector<std::uint32_t>& words = tiles[{tensor.data, tensor.type, tensor.cols, rows}];
  if (!words.empty()) return words;
  const auto layout = engine::gpu::row_layout(tensor.type, tensor.cols);
  words.resize(static_cast<std::size_t>(rows) * layout.row_words);
  for (std::int64_t row = 0; row < rows; ++row)
    engine::gpu::pack_one_row(
        tensor, row, layout,
        std::span(words).subspan(static_cast<std::size_t>(row) * layout.row_words,
                                 layout.row_words));
  return words;
}

namespace efimd::engine::gpu {

void pack_row(const TensorView& tensor, std::int64_t row, const kernels::RowLayout& layout,
              std::span<std::uint32_t> words) {
  const auto at = static_cast<std::size_t>(row % rows_of_tile(tensor)) * layout.row_words;
  std::ranges::copy(std::span(packed_rows(tensor)).subspan(at, layout.row_words), words.begin());
}

}  // namespace efimd::engine::gpu
