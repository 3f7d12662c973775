#include "engine/backend/gpu/step_record.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "engine/backend/gpu/step_buffers.h"
#include "engine/backend/size.h"

namespace efimd::engine::gpu {

namespace {

using u32 = std::uint32_t;

}  // namespace

template <class T>
std::span<T> StepRecord::written(const Range& part) {
  return {reinterpret_cast<T*>(host_.data() + part.offset), part.bytes / sizeof(T)};
}

Result<void> StepRecord::allocate(GpuDevice& device, const ModelShape& shape, int tokens_max,
                                  int page_count) {
  device_ = &device;
  alignment_ = device.limits().offset_alignment;
  lay_out(size(tokens_max), size(std::max(shape.rope_width, 2)));
  const std::size_t bytes = tables_.offset + size(tokens_max) * size(page_count) * sizeof(u32);
  const auto in = take(device, bytes / sizeof(u32), Memory::kHostWrites);
  if (!in) return tl::unexpected(in.error());
  const auto record = take(device, bytes / sizeof(u32), Memory::kDevice);
  if (!record) return tl::unexpected(record.error());
  in_ = in->buffer;
  record_ = record->buffer;
  host_.resize(bytes);
  return {};
}

void StepRecord::lay_out(std::size_t rows, std::size_t rope_width) {
  std::size_t end = 0;
  const auto lay = [&](Range& part, std::size_t words) {
    part = {record_, end, words * sizeof(u32)};
    end = (end + part.bytes + alignment_ - 1) / alignment_ * alignment_;
  };
  lay(all_rows_, rows);
  lay(tokens_, rows);
  lay(places_, rows);
  lay(rows_, 2 * rows);
  lay(logits_rows_, rows);
  lay(rope_table_, rows * rope_width);
  lay(tables_, 0);
  tables_.bytes = host_.size() > end ? host_.size() - end : 0;
}

void StepRecord::write(const Step& step, const ModelShape& shape,
                       std::span<const double> frequencies) {
  lay_out(step.tokens.size(), size(std::max(shape.rope_width, 2)));
  const auto all = written<u32>(all_rows_);
  std::iota(all.begin(), all.end(), u32{0});
  std::ranges::copy(step.tokens, written<TokenId>(tokens_).begin());
  std::ranges::copy(step.logits_rows, written<int>(logits_rows_).begin());
  place_rows(step);
  write_rope_table(step, shape, frequencies);
  std::ranges::copy(std::span(host_).first(bytes_), device_->mapped(in_).begin());
}

void StepRecord::place_rows(const Step& step) {
  const auto rows = written<u32>(rows_);
  const auto places = written<u32>(places_);
  const auto tables = written<u32>(tables_);
  std::size_t table = 0;
  pages_max_ = 1;
  for (const StepSequence& sequence : step.sequences) {
    const int end = sequence.position + sequence.count;
    const int pages = (end + kPageTokens - 1) / kPageTokens;
    for (std::size_t i = 0; i < size(pages); ++i)
      tables[table + i] = static_cast<u32>(sequence.page_table[i]);
    for (int i = 0; i < sequence.count; ++i) {
      const std::size_t row = size(sequence.first + i);
      const int position = sequence.position + i;
      rows[2 * row] = static_cast<u32>(position);
      rows[2 * row + 1] = static_cast<u32>(table);
      places[row] = tables[table + size(position / kPageTokens)] * kPageTokens +
                    static_cast<u32>(position % kPageTokens);
    }
    table += size(pages);
    pages_max_ = std::max(pages_max_, pages);
  }
  // In powers of two, so that a sequence that grows repeats its list of operations.
  const std::size_t words = std::min(std::bit_ceil(table), tables_.bytes / sizeof(u32));
  bytes_ = tables_.offset + words * sizeof(u32);
}

void StepRecord::write_rope_table(const Step& step, const ModelShape& shape,
                                  std::span<const double> frequencies) {
  const auto rope_table = written<float>(rope_table_);
  const auto rows = written<u32>(rows_);
  const std::size_t half = frequencies.size();
  const double magnitude = static_cast<double>(shape.rope_magnitude);
  for (std::size_t row = 0; row < step.tokens.size(); ++row) {
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = rows[2 * row] * frequencies[i];
      rope_table[2 * row * half + i] = static_cast<float>(magnitude * std::cos(angle));
      rope_table[(2 * row + 1) * half + i] = static_cast<float>(magnitude * std::sin(angle));
    }
  }
}

Operation StepRecord::copy() const {
  Operation operation;
  operation.operands[0] = {in_, 0, bytes_};
  operation.operands[1] = {record_, 0, bytes_};
  return operation;
}

}  // namespace efimd::engine::gpu
