#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/gpu/gpu_device.h"
#include "engine/backend/gpu/gpu_weights.h"
#include "engine/backend/gpu/step_buffers.h"
#include "engine/backend/gpu/step_record.h"
#include "engine/backend/kv_type.h"
#include "engine/model/model.h"
#include "kernels/sizes.h"

namespace efimd::engine::gpu {

/// The operations of a step in their order. GpuBackend says when a part of a layer comes. This
/// class says which operations that is on this device, over which operands.
///
/// Thread: one. Owns: the buffers of a step's operations, and its record; the device owns the
/// memory. Limits and failures: allocate()'s alone. The rest only adds to a list.
class StepOperations {
 public:
  /// `device` and `shape` outlive it.
  StepOperations(const GpuDevice& device, const ModelShape& shape, KvType kv_type);
  /// Memory for steps of so many tokens over so many pages.
  Result<void> allocate(GpuDevice& device, int tokens_max, int page_count);

  /// No step will have more tokens.
  void lower_tokens_max(int tokens_max) { tokens_max_ = tokens_max; }

  /// Empties the list and writes the record of the next step.
  void begin(const Step& step, std::span<const double> frequencies);
  /// The record goes to the device. `bias_rope_table` is that of gpu_kv.h; none if attention adds no
  /// key's bias.
  void send_record(const Range& bias_rope_table);

  void copy(const Range& from, const Range& to);
  void embed(const GpuMatrix& table);
  void attention_input(const GpuLayer& layer, const Range& kv);
  void attention(const GpuLayer& layer, const Range& kv);
  void attention_output(const GpuLayer& layer);
  void feed_forward_input(const GpuLayer& layer);
  void feed_forward_output(const GpuLayer& layer);
  /// Of the step's logits_rows.
  void logits(const GpuWeights& weights, const Range& out);

  std::span<const Operation> list() const { return operations_; }
  void clear() { operations_.clear(); }
  /// The residual stream of `rows()` rows.
  const Range& x() const { return at_.x; }
  int rows() const { return rows_; }
  /// Of the step's longest sequence.
  int pages_max() const { return record_.pages_max(); }
  /// Fixed by the model.
  int split_pages() const { return split_pages_; }
  /// Which of gpu::Variants decide the bits of K and V: "", or words for Backend::page_format().
  std::string variants() const;

 private:
  /// Whether an output is replaced or added to.
  enum class Sum { kIsAll, kAdds };
  /// out = or += matrix x (+ bias).
  struct Product {
    const GpuMatrix& matrix;
    Range bias;
    Range x;
    Range out;
    Sum sum = Sum::kIsAll;
    int experts = 0;          ///< that its rows, slots then, go to; 0: none
    std::uint32_t share = 1;  ///< slots that read the same input row
  };

  template <class Sizes>
  Operation& add(Kernel kernel, std::array<std::uint32_t, 3> groups,
                 std::initializer_list<Range> operands, const Sizes& sizes);
  // Each writes the forms that `next` reads: f32 to a buffer of its own, quants to at_.quants.
  void norm(const GpuNorm& norm, const Range& rows, int count, kernels::Forms next);
  void activate(const GpuLayer& layer, int rows);
  /// For rows that the operation before it has written.
  void multiply(const Product& product, int rows);
  void experts_input(const GpuLayer& layer);
  void experts_output(const GpuLayer& layer);

  const GpuDevice& device_;
  const ModelShape& shape_;
  const kernels::Kv kv_form_;
  const int split_pages_;
  int tokens_max_ = 0;  ///< the buffers may have room for more
  StepBuffers at_;
  StepRecord record_;
  Range bias_rope_table_;
  int rows_ = 0;
  int logits_rows_ = 0;
  std::uint32_t splits_ = 1;
  std::uint32_t rotated_pairs_ = 0;  ///< of a head
  std::vector<Operation> operations_;
};

}  // namespace efimd::engine::gpu
