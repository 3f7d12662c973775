#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/gpu/gpu_device.h"
#include "engine/model/model.h"

namespace efimd::engine::gpu {

/// The host's description of a step for the device: tokens, places of their K and V, page tables,
/// and the RoPE table of their positions. The host writes it in one piece, which the step's first
/// operation copies.
class StepRecord {
 public:
  Result<void> allocate(GpuDevice& device, const ModelShape& shape, int tokens_max, int page_count);

  void write(const Step& step, const ModelShape& shape, std::span<const double> frequencies);
  /// Of what write() wrote, to the device.
  Operation copy() const;
  /// Of the step's longest sequence.
  int pages_max() const { return pages_max_; }

  // On the device:
  const Range& tokens() const { return tokens_; }            ///< [T]
  const Range& places() const { return places_; }            ///< [T]: page * P + slot
  const Range& rows() const { return rows_; }                ///< [T] (position, begin of its table)
  const Range& all_rows() const { return all_rows_; }        ///< 0, 1 .. T - 1
  const Range& logits_rows() const { return logits_rows_; }  ///< rows of which logits are wanted
  const Range& rope_table() const { return rope_table_; }    ///< [T][2][rope_width / 2]
  const Range& tables() const { return tables_; }            ///< page tables of all sequences

 private:
  /// The parts of a step of so many rows, one after another, page tables last.
  void lay_out(std::size_t rows, std::size_t rope_width);
  template <class T>
  std::span<T> written(const Range& part);
  void place_rows(const Step& step);
  void write_rope_table(const Step& step, const ModelShape& shape,
                        std::span<const double> frequencies);

  GpuDevice* device_ = nullptr;
  BufferId in_ = BufferId::kNone;  ///< where the host writes
  BufferId record_ = BufferId::kNone;
  std::vector<std::byte> host_;  ///< what it writes
  std::size_t alignment_ = 1;
  Range all_rows_, tokens_, places_, rows_, logits_rows_, rope_table_, tables_;
  std::size_t bytes_ = 0;  ///< in which the step says something
  int pages_max_ = 1;
};

}  // namespace efimd::engine::gpu
