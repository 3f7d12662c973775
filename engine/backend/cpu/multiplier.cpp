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

bool Multiplier::reserve(std::size_t elements) {
  return quants_.reserve(elements) && scales_.reserve(elements / kGroup) &&
         offsets_.reserve(elements / kGroup) && half_offsets_.reserve(2 * elements / kGroup) &&
         totals_.reserve(elements / kGroup);
}

void Multiplier::quantize_row(std::span<const Product> products, const float* values, int width,
                              int row) {
  const bool needed = std::any_of(products.begin(), products.end(), [](const Product& product) {
    return is_quantized(product.weights->type);
  });
  if (!needed) return;
  const std::size_t at = static_cast<std::size_t>(row) * static_cast<std::size_t>(width);
  kernels_.quantize(
      values + at, width,
      {quants_.data() + at, scales_.data() + at / kGroup, offsets_.data() + at / kGroup,
       half_offsets_.data() + 2 * at / kGroup, totals_.data() + at / kGroup});
}

void Multiplier::multiply(std::span<const Product> products, const float* values) {
  const std::vector<Chunk> chunks = cut(products, pool_.threads());
  pool_.parallel_for(static_cast<int>(chunks.size()), [&](int index) {
    const auto& [product, range] = chunks[static_cast<std::size_t>(index)];
    const std::size_t at = static_cast<std::size_t>(product->rows.first) *
                           static_cast<std::size_t>(product->weights->cols);
    const std::size_t group = at / kGroup;
    const Inputs inputs{.tokens = product->rows.last - product->rows.first,
                        .values = values + at,
                        .quants = quants_.data() + at,
                        .scales = scales_.data() + group,
                        .offsets = offsets_.data() + group,
                        .half_offsets = half_offsets_.data() + 2 * group,
                        .totals = totals_.data() + group};
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
}

}  // namespace efimd::engine::cpu
