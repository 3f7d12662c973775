#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/kv/attention_plan.h"
#include "engine/backend/cpu/kv/page_memory.h"
#include "engine/backend/kv_type.h"
#include "engine/model/model.h"

namespace efimd::engine::cpu {

/// How K and V lie in the device's pages, and how attention reads them. The types of KV differ in
/// nothing else.
///
/// Thread: engine, except put() (one thread for each row) and attend() (one for each task).
/// Owns: the pages.
class KvForm {
 public:
  virtual ~KvForm() = default;

  /// Names element type and layout of a page's bytes.
  virtual std::string_view name() const = 0;
  virtual int value_width() const = 0;  ///< of AttentionPlan::Heads
  PageMemory& pages() { return pages_of(); }

  /// Whether put() takes the keys of a layer without their bias.
  virtual bool adds_key_bias(int layer) const = 0;
  /// A step will read positions before `end`.
  virtual void prepare(int end) = 0;
  /// Puts the keys and values ([Hk][E] each, keys rotated) of the step's row `row` into `slot` of a
  /// touched page.
  virtual void put(int layer, int row, PageIndex page, int slot, const float* keys,
                   const float* values) = 0;
  /// Task `index` of the plan.
  virtual void attend(int layer, const AttentionPlan& plan, int index, const float* q,
                      float* partials) const = 0;
  /// Copies the first `tokens` slots of a page, all layers.
  virtual void copy(PageIndex from, PageIndex to, int tokens) = 0;
  /// Overwrites the rows of the last step that were on their way to a page.
  virtual void overwrite_rows() {}

 private:
  virtual PageMemory& pages_of() = 0;
};

struct KvFormOptions {
  KvType type = KvType::kF16;
  int page_count = 0;
  int step_tokens_max = 0;
  std::span<const float> rope_factors = {};
  std::vector<std::span<const float>> key_biases =
      {};  ///< [L]; empty where keys have none of their own
};
/// Fails as KvMemory::open() and Kv8Memory::open().
Result<std::unique_ptr<KvForm>> make_kv_form(const ModelShape& shape, const CpuKernels& kernels,
                                             const KvFormOptions& options);
/// Bytes of a page of such a model.
std::size_t kv_page_bytes(const ModelShape& shape, KvType type);

}  // namespace efimd::engine::cpu
