#include "engine/backend/cpu/multiplier.h"

#include <algorithm>

#include "engine/backend/cpu/kernels/weight_blocks.h"

namespace efimd::engine::cpu {
namespace {

/// Weights that a thread takes at a time. That is long enough to stream, and short enough to even
/// out stolen cores. Rows of the file are read in as many streams as a register has lanes, so they
/// need more.
constexpr std::size_t kChunkBytes = 128 * 1024;
constexpr std::size_t kPanelChunkBytes = 64 * 1024;
/// Rows of a chunk are whole groups of the widest kernel; with many tokens it takes two panels.
constexpr int kChunkRows = 16;
constexpr int kPanelChunkRows = 32;

struct Chunk {
  const Product* product;
  RowRange rows;
};

std::vector<Chunk> cut(std::span<const Product> products, int threads) {
  int total = 0;
  for (const Product& product : products) total += product.weights->rows;
  // At least four chunks a thread, if there are enough rows.
  const int fair = std::max(total / (4 * threads), 1);
  std::vector<Chunk> chunks;
  for (const Product& product : products) {
    const bool panels = product.weights->panels != nullptr;
    const std::size_t bytes = panels ? kPanelChunkBytes : kChunkBytes;
    const int whole = panels ? kPanelChunkRows : kChunkRows;
    const int stream = static_cast<int>(bytes / product.weights->row_bytes);
    const int taken = std::max(std::min(stream, fair) / whole, 1) * whole;
    for (int first = 0; first < product.weights->rows; first += taken)
      chunks.push_back({&product, {first, std::min(first + taken, product.weights->rows)}});
  }
  return chunks;
}

}  // namespace

bool Multiplier::reserve(std::size_t rows, std::size_t width) {
  const std::size_t elements = rows * width;
  const std::size_t tiled = tiled_elements(rows, width);
  return quants_.reserve(elements) && scales_.reserve(elements / kGroup) &&
         offsets_.reserve(elements / kGroup) && half_offsets_.reserve(2 * elements / kGroup) &&
         totals_.reserve(elements / kGroup) && tiled_quants_.reserve(tiled) &&
         tiled_scales_.reserve(tiled / kGroup) && tiled_totals_.reserve(tiled / kGroup);
}

std::size_t Multiplier::bytes(std::size_t rows, std::size_t width) const {
  return rows * width * 13 / 8 + tiled_elements(rows, width) * 5 / 4;
}

std::size_t Multiplier::tiled_elements(std::size_t rows, std::size_t width) const {
  if (kernels_.tiles_from == 0) return 0;
  return (rows + kBlockRows - 1) / kBlockRows * kBlockRows * width;
}

bool Multiplier::reads_tiles(const Product& product) const {
  const int rows = product.rows.last - product.rows.first;
  return kernels_.tiles_from != 0 && rows >= kernels_.tiles_from &&
         product.weights->panels != nullptr;
}

void Multiplier::quantize_row(std::span<const Product> products, const float* values, int width,
                              int row) {
  const bool needed = std::any_of(products.begin(), products.end(), [](const Product& product) {
    return is_quantized(product.weights->type);
  });
  if (!needed) return;
  const auto groups = static_cast<std::size_t>(width / kGroup);
  const std::size_t group = static_cast<std::size_t>(row) * groups;
  const std::size_t at = group * kGroup;
  QuantizedRow to{quants_.data() + at, scales_.data() + group, offsets_.data() + group,
                  half_offsets_.data() + 2 * group, totals_.data() + group};
  if (std::any_of(products.begin(), products.end(),
                  [this](const Product& product) { return reads_tiles(product); })) {
    const auto block = static_cast<std::size_t>(row / kBlockRows);
    const std::size_t place =
        block * groups * kBlockRows + static_cast<std::size_t>(row % kBlockRows);
    to.tiled_quants = tiled_quants_.data() + place * kGroup;
    to.tiled_scales = tiled_scales_.data() + place;
    to.tiled_totals = tiled_totals_.data() + place;
  }
  kernels_.quantize(values + at, width, to);
}

void Multiplier::multiply(std::span<const Product> products, const float* values) {
  const std::vector<Chunk> chunks = cut(products, pool_.threads());
  pool_.parallel_for(static_cast<int>(chunks.size()), [&](int index) {
    const auto& [product, range] = chunks[static_cast<std::size_t>(index)];
    const std::size_t at = static_cast<std::size_t>(product->rows.first) *
                           static_cast<std::size_t>(product->weights->cols);
    const std::size_t group = at / kGroup;
    TiledRows tiled;
    if (reads_tiles(*product))
      tiled = {tiled_quants_.data(), tiled_scales_.data(), tiled_totals_.data()};
    const Inputs inputs{.tokens = product->rows.last - product->rows.first,
                        .values = values + at,
                        .quants = quants_.data() + at,
                        .scales = scales_.data() + group,
                        .offsets = offsets_.data() + group,
                        .half_offsets = half_offsets_.data() + 2 * group,
                        .totals = totals_.data() + group,
                        .tiled = tiled,
                        .first_tiled = product->rows.first};
    const float* bias = product->bias->empty() ? nullptr : product->bias->data();
    kernels_.matmul(*product->weights, range, inputs,
                    {product->out, product->out_stride, bias, product->store});
  });
}

void Multiplier::overwrite() {
  quants_.overwrite();
  scales_.overwrite();
  totals_.overwrite();
  offsets_.overwrite();
  half_offsets_.overwrite();
  tiled_quants_.overwrite();
  tiled_scales_.overwrite();
  tiled_totals_.overwrite();
}

}  // namespace efimd::engine::cpu
