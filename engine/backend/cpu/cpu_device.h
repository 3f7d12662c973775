#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/aligned_array.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/cpu/cpu_weights.h"
#include "engine/backend/cpu/expert_plan.h"
#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/kv/attention_plan.h"
#include "engine/backend/cpu/kv/kv_form.h"
#include "engine/backend/cpu/multiplier.h"
#include "engine/backend/cpu/panel_store.h"
#include "engine/backend/cpu/rope.h"
#include "engine/backend/cpu/worker_pool.h"
#include "engine/backend/size.h"

namespace efimd::engine::cpu {

/// "AMD EPYC, AVX-512 VNNI, 2 threads"
std::string device_name(Isa isa, int threads);

/// The CPU as a Backend. make_cpu_backend() is the way to one.
///
/// Thread: engine; its loops run on the worker pool.
class CpuBackend final : public Backend {
 public:
  CpuBackend(const ModelShape& shape, CpuWeights weights, std::unique_ptr<KvForm> kv, Isa isa,
             int threads, int step_tokens_max)
      : shape_(shape),
        weights_(std::move(weights)),
        kv_(std::move(kv)),
        isa_(isa),
        kernels_(kernels_of(isa)),
        pool_(threads),
        multiplier_(kernels_, pool_),
        name_(device_name(isa, pool_.threads())),
        page_format_(std::string(kv_->name()) + ", cpu " + std::string(arithmetic_name(isa))),
        step_tokens_max_(step_tokens_max),
        rope_(shape, weights_.rope_factors),
        plan_({.kv_heads = shape.kv_heads,
               .group = shape.heads / shape.kv_heads,
               .head_width = shape.head_width,
               .value_width = kv_->value_width(),
               .window = shape.attention_window}),
        experts_(shape.experts, shape.experts_used) {}

  /// Memory of the activations; false when there is none.
  [[nodiscard]] bool reserve();
  /// Bytes that reserve() asks for.
  std::size_t activation_bytes() const;
  void keep_alive(std::shared_ptr<const Model> model) { model_ = std::move(model); }
  /// Begins to make panels, if `options` and memory allow; after keep_alive().
  void start_panels(const CpuOptions& options);

  std::string kind() const override { return "cpu"; }
  std::string name() const override { return name_; }
  int step_tokens_max() const override { return step_tokens_max_; }
  int page_count() const override { return kv_->pages().page_count(); }
  std::size_t page_bytes() const override { return kv_->pages().page_bytes(); }
  std::size_t resident_bytes() const override { return kv_->pages().resident_bytes(); }

  Result<void> begin(const Step& step) override;
  Result<void> begin_behind(const Step& step, std::span<const float> x) override;
  Result<void> attention_input(int layer) override;
  Result<void> attention(int layer) override;
  Result<void> attention_output(int layer) override;
  Result<void> feed_forward_input(int layer) override;
  Result<void> feed_forward_output(int layer) override;
  Result<std::span<const float>> logits() override;
  Result<std::span<const float>> residual() override;
  Result<void> copy_page(PageIndex from, PageIndex to, int tokens) override;
  std::string page_format() const override { return page_format_; }
  Result<void> read_page(PageIndex page, std::span<std::byte> bytes) override;
  Result<void> write_page(PageIndex page, std::span<const std::byte> bytes) override;
  bool gives_pages_back() const override { return true; }
  bool goes_on_behind_layers() const override { return true; }
  void leave_off_at(const std::stop_token* stop) override { pool_.leave_off_at(stop); }
  void give_page_back(PageIndex page) override { kv_->pages().give_back(page); }
  void overwrite_activations() override;

 private:
  int query_width() const { return shape_.heads * shape_.head_width; }
  int key_width() const { return shape_.kv_heads * shape_.head_width; }
  int input_width_max() const {
    return std::max({shape_.width, query_width(), shape_.feed_forward});
  }

  Result<void> prepare(const Step& step);
  /// kIo after the model's file changed: all results since then are void.
  Result<void> check_file() const;
  void place_rows();
  void store_row(int layer, int row);
  /// body(row) for rows 0 .. rows - 1 of `width` elements each.
  template <class Body>
  void each_row(int rows, int width, const Body& body);
  void norm_row(const CpuNorm& norm, const float* x, float* out) const;
  /// RMS norm of each of `heads` heads [E]; none if there are no weights.
  void norm_heads(const std::vector<float>& norm, int heads, float* rows) const;
  /// Quantizes `rows` rows of values [...][width] for the products, and runs them.
  void multiply(std::span<const Product> products, const float* values, int width, int rows);
  /// hidden_ = activation(hidden_) (* up_) in the first `rows` rows, times `scale`.
  void activate(bool gated, int rows, float scale);
  /// The same as the dense feed-forward, over the experts that the router names.
  void experts_input(const CpuLayer& weights);
  void experts_output(const CpuLayer& weights);
  /// Rows of the feed-forward's inside: one for each row and expert.
  std::size_t hidden_rows_max() const {
    return size(step_tokens_max_) * size(std::max(shape_.experts_used, 1));
  }

  const ModelShape shape_;
  CpuWeights weights_;
  std::shared_ptr<const Model> model_;  ///< null for weights without a file
  PanelStore panels_;                   ///< of weights_
  const std::unique_ptr<KvForm> kv_;
  const Isa isa_;
  const CpuKernels& kernels_;
  WorkerPool pool_;
  Multiplier multiplier_;
  const std::string name_;
  const std::string page_format_;
  const int step_tokens_max_;

  // The step.
  Step step_;
  int rows_ = 0;
  std::vector<int> positions_;    ///< [T]
  std::vector<PageIndex> pages_;  ///< [T] that a row's K and V go to
  Rope rope_;
  AttentionPlan plan_;

  // Activations, all [T][...].
  AlignedArray<float> x_;            ///< [D]
  AlignedArray<float> normed_;       ///< [D]
  AlignedArray<float> q_;            ///< [H][E]
  AlignedArray<float> k_, v_;        ///< [Hk][E]
  AlignedArray<float> attended_;     ///< [H][E]
  AlignedArray<float> hidden_, up_;  ///< [F]; gate, then activation(gate) * up
  // Of a mixture of experts; hidden_, up_ and these have a row for each slot of the plan.
  ExpertPlan experts_;
  AlignedArray<float> router_logits_;           ///< [T][experts]
  AlignedArray<float> expert_in_, expert_out_;  ///< [D]

  AlignedArray<float> partials_;  ///< of attention
  AlignedArray<float> logits_;
};

}  // namespace efimd::engine::cpu
