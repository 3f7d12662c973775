#include "engine/backend/cpu/kv/kv_form.h"

#include <string>
#include <utility>

#include "engine/backend/cpu/aligned_array.h"
#include "engine/backend/cpu/kv/key_bias.h"
#include "engine/backend/cpu/kv/kv8_memory.h"
#include "engine/backend/cpu/kv/kv_memory.h"
#include "engine/backend/size.h"

namespace efimd::engine::cpu {

namespace {

KvSizes sizes_of(const ModelShape& shape, int page_count) {
  return {shape.layers, shape.kv_heads, shape.head_width, page_count};
}

class HalfKv final : public KvForm {
 public:
  HalfKv(const ModelShape& shape, const CpuKernels& kernels, KvMemory memory)
      : kernels_(kernels),
        kv_heads_(shape.kv_heads),
        head_width_(shape.head_width),
        memory_(std::move(memory)) {}
  bool reserve(int rows) { return halves_.reserve(size(rows) * 2 * size(key_width())); }

  std::string_view name() const override { return "f16, K [E][P], V [P][Ev]"; }
  int value_width() const override { return memory_.value_width(); }
  bool adds_key_bias(int) const override { return false; }
  void prepare(int) override {}
  void put(int layer, int row, PageIndex page, int slot, const float* keys,
           const float* values) override {
    std::uint16_t* key = halves_.data() + size(row) * 2 * size(key_width());
    std::uint16_t* value = key + key_width();
    kernels_.to_half(keys, key_width(), key);
    kernels_.to_half(values, key_width(), value);
    for (int head = 0; head < kv_heads_; ++head) {
      const int at = head * head_width_;
      memory_.put(layer, head, page, slot, key + at, value + at);
    }
  }
  void attend(int layer, const AttentionPlan& plan, int index, const float* q,
              float* partials) const override {
    AttentionTask task = plan.task(index, q, partials);
    task.kv = memory_.head(layer, plan.kv_head(index));
    task.page_stride = memory_.page_stride();
    kernels_.attention(task);
  }
  void copy(PageIndex from, PageIndex to, int tokens) override { memory_.copy(from, to, tokens); }
  void overwrite_rows() override { halves_.overwrite(); }

 private:
  PageMemory& pages_of() override { return memory_.pages(); }
  int key_width() const { return kv_heads_ * head_width_; }

  const CpuKernels& kernels_;
  const int kv_heads_;
  const int head_width_;
  KvMemory memory_;
  AlignedArray<std::uint16_t> halves_;  ///< [T][2][Hk][E]: K and V of a row on their way to a page
};

class ByteKv final : public KvForm {
 public:
  ByteKv(const ModelShape& shape, const CpuKernels& kernels, Kv8Memory memory, KeyBias bias)
      : kernels_(kernels),
        kv_heads_(shape.kv_heads),
        head_width_(shape.head_width),
        adjacent_pairs_(shape.rope_pairs == RopePairs::kAdjacent),
        memory_(std::move(memory)),
        bias_(std::move(bias)) {}

  std::string_view name() const override { return "q8, K [E][P], V [P][Ev], scales of 32"; }
  int value_width() const override { return memory_.value_width(); }
  bool adds_key_bias(int layer) const override { return bias_.has(layer); }
  void prepare(int end) override { bias_.prepare(end); }
  void put(int layer, int, PageIndex page, int slot, const float* keys,
           const float* values) override {
    for (int head = 0; head < kv_heads_; ++head) {
      const int at = head * head_width_;
      memory_.put(layer, head, page, slot, keys + at, values + at);
    }
  }
  void attend(int layer, const AttentionPlan& plan, int index, const float* q,
              float* partials) const override {
    const int kv_head = plan.kv_head(index);
    Kv8Source source{};
    source.kv = memory_.head(layer, kv_head);
    source.head_bytes = memory_.head_stride();
    source.page_stride = memory_.pages().page_bytes();
    if (bias_.has(layer)) {
      source.bias_along = bias_.along(layer, kv_head);
      source.bias_across = bias_.across(layer, kv_head);
      source.turns = bias_.turns(plan.range_begin(index) / kPageTokens);
      source.pairs = bias_.pairs();
      source.adjacent_pairs = adjacent_pairs_;
    }
    kernels_.attention_kv8(plan.task(index, q, partials), source);
  }
  void copy(PageIndex from, PageIndex to, int tokens) override { memory_.copy(from, to, tokens); }

 private:
  PageMemory& pages_of() override { return memory_.pages(); }

  const CpuKernels& kernels_;
  const int kv_heads_;
  const int head_width_;
  const bool adjacent_pairs_;
  Kv8Memory memory_;
  KeyBias bias_;
};

Result<std::unique_ptr<KvForm>> make_half(const ModelShape& shape, const CpuKernels& kernels,
                                          const KvFormOptions& options) {
  Result<KvMemory> memory = KvMemory::open(sizes_of(shape, options.page_count));
  if (!memory) return tl::unexpected(std::move(memory).error());
  auto form = std::make_unique<HalfKv>(shape, kernels, *std::move(memory));
  if (!form->reserve(options.step_tokens_max))
    return fail(Fault::kNoMemory,
                "KV: cannot allocate the rows of a step, " +
                    std::to_string(4 * size(options.step_tokens_max) * size(shape.kv_heads) *
                                   size(shape.head_width)) +
                    " bytes",
                "close other programs");
  return form;
}

Result<std::unique_ptr<KvForm>> make_byte(const ModelShape& shape, const CpuKernels& kernels,
                                          const KvFormOptions& options) {
  Result<Kv8Memory> memory = Kv8Memory::open(sizes_of(shape, options.page_count));
  if (!memory) return tl::unexpected(std::move(memory).error());
  return std::make_unique<ByteKv>(shape, kernels, *std::move(memory),
                                  KeyBias(shape, options.rope_factors, options.key_biases));
}

}  // namespace

Result<std::unique_ptr<KvForm>> make_kv_form(const ModelShape& shape, const CpuKernels& kernels,
                                             const KvFormOptions& options) {
  return options.type == KvType::kQ8 ? make_byte(shape, kernels, options)
                                     : make_half(shape, kernels, options);
}

std::size_t kv_page_bytes(const ModelShape& shape, KvType type) {
  const KvSizes sizes = sizes_of(shape, 1);
  return type == KvType::kQ8 ? Kv8Memory::page_bytes_of(sizes) : KvMemory::page_bytes_of(sizes);
}

}  // namespace efimd::engine::cpu
