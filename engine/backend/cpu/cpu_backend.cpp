// The CPU device: layer-sized operations as loops over the worker pool. The arithmetic is in
// kernels_*.cpp.
//
// A layer at one token has five loops that all threads join: Q K V, attention, output, gate and up,
// down. What lies between them (norms, RoPE, quantization of inputs) is done row by row: at few
// rows by the calling thread alone, since it costs less than waking the others.
#include "engine/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/aligned_array.h"
#include "engine/backend/cpu/available_memory.h"
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

namespace efimd::engine {

namespace {

using namespace cpu;  // the parts of this device

const std::vector<float> kNoBias;

/// Elements from which on it pays to share a row-by-row operation.
constexpr std::size_t kSharedElements = 16 * 1024;

void scale_row(float* row, int width, float scale) {
  if (scale == 1.0F) return;
  for (int i = 0; i < width; ++i) row[i] *= scale;
}

std::string device_name(Isa isa, int threads) {
  const char* set = isa == Isa::kAvx512Bf16 ? "AVX-512 VNNI BF16"
                    : isa == Isa::kAvx512   ? "AVX-512 VNNI"
                    : isa == Isa::kAvxVnni  ? "AVX-VNNI"
                    : isa == Isa::kAvx2     ? "AVX2"
                                            : "scalar";
  return processor_name() + ", " + set + ", " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads");
}

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
        page_format_(std::string(kv_->name()) + ", cpu " + std::string(isa_name(isa))),
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

 private:
  int query_width() const { return shape_.heads * shape_.head_width; }
  int key_width() const { return shape_.kv_heads * shape_.head_width; }
  int input_width_max() const {
    return std::max({shape_.width, query_width(), shape_.feed_forward});
  }

  Result<void> prepare(const Step& step);
  /// kIo once the model's file is not what it was: what was computed since is void.
  Result<void> check_file() const;
  void place_rows();
  void store_row(int layer, int row);
  /// body(row) for rows 0 .. rows - 1 of `width` elements each.
  template <class Body>
  void each_row(int rows, int width, const Body& body);
  void norm_row(const CpuNorm& norm, const float* x, float* out) const;
  /// RMS norm of each of `heads` heads [E]; none where there are no weights.
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

  AlignedArray<float> records_;  ///< of attention
  AlignedArray<float> logits_;
};

bool CpuBackend::reserve() {
  const std::size_t rows = size(step_tokens_max_);
  const std::size_t hidden = hidden_rows_max();
  const bool experts = shape_.experts > 0;
  return x_.reserve(rows * size(shape_.width)) && normed_.reserve(rows * size(shape_.width)) &&
         q_.reserve(rows * size(query_width())) && k_.reserve(rows * size(key_width())) &&
         v_.reserve(rows * size(key_width())) && attended_.reserve(rows * size(query_width())) &&
         hidden_.reserve(hidden * size(shape_.feed_forward)) &&
         up_.reserve(hidden * size(shape_.feed_forward)) &&
         multiplier_.reserve(hidden * size(input_width_max())) &&
         (!experts || (router_logits_.reserve(rows * size(shape_.experts)) &&
                       expert_in_.reserve(hidden * size(shape_.width)) &&
                       expert_out_.reserve(hidden * size(shape_.width))));
}

std::size_t CpuBackend::activation_bytes() const {
  const std::size_t row = 2 * size(shape_.width) + 2 * size(query_width()) + 2 * size(key_width()) +
                          size(shape_.experts);
  const std::size_t hidden_row =
      2 * size(shape_.feed_forward) + (shape_.experts > 0 ? 2 * size(shape_.width) : 0);
  return sizeof(float) * (size(step_tokens_max_) * row + hidden_rows_max() * hidden_row) +
         Multiplier::bytes(hidden_rows_max() * size(input_width_max()));
}

void CpuBackend::place_rows() {
  int end = 0;
  positions_.assign(size(rows_), 0);
  pages_.assign(size(rows_), -1);
  for (const StepSequence& sequence : step_.sequences) {
    end = std::max(end, sequence.position + sequence.count);
    for (int i = 0; i < sequence.count; ++i) {
      const std::size_t row = size(sequence.first + i);
      assert(pages_[row] == -1);  // no row belongs to two sequences
      positions_[row] = sequence.position + i;
      pages_[row] = sequence.page_table[size(positions_[row] / kPageTokens)];
      kv_->pages().touch(pages_[row]);
    }
  }
  assert(std::find(pages_.begin(), pages_.end(), -1) == pages_.end());  // and every row to one
  kv_->prepare(end);
}

Result<void> CpuBackend::check_file() const {
  if (model_ == nullptr || model_->file().intact()) return {};
  return fail(Fault::kIo, model_->path().string() + " was changed while it is in use",
              "put the whole file there, then run 'efimd stop'");
}

void CpuBackend::start_panels(const CpuOptions& options) {
  // Pages of KV are taken as they are used: their memory is spoken for.
  const std::size_t spoken_for = size(page_count()) * page_bytes();
  PanelStore::Options wish{.form = options.weights, .told = options.weights_told};
  if (const std::size_t available = available_memory(); available > 0)
    wish.available_bytes = available - std::min(spoken_for, available);
  if (model_ != nullptr)
    wish.give_back = [this](std::span<const std::byte> bytes) { model_->file().give_back(bytes); };
  // The scalar table is the specification and reads the file.
  panels_.start(isa_ == Isa::kScalar ? std::vector<Weights*>() : weights_.matrices(),
                std::move(wish));
}

Result<void> CpuBackend::prepare(const Step& step) {
  assert(well_formed(step, *this));
  if (auto checked = check_tokens(step, shape_.vocabulary); !checked) return checked;
  panels_.adopt();
  step_ = step;
  rows_ = static_cast<int>(step.tokens.size());
  place_rows();
  rope_.prepare(positions_);
  plan_.prepare(step);
  if (!records_.reserve(plan_.record_floats())) {
    return fail(Fault::kNoMemory,
                "attention: cannot allocate " +
                    std::to_string(plan_.record_floats() * sizeof(float)) + " bytes",
                "lower the window or close other programs");
  }
  return {};
}

Result<void> CpuBackend::begin(const Step& step) {
  if (auto prepared = prepare(step); !prepared) return prepared;
  each_row(rows_, shape_.width, [&](int row) {
    float* x = x_.data() + size(row) * size(shape_.width);
    read_row(weights_.token_embedding, step_.tokens[size(row)], x);
    scale_row(x, shape_.width, shape_.embedding_scale);
  });
  return {};
}

Result<void> CpuBackend::begin_behind(const Step& step, std::span<const float> x) {
  if (auto prepared = prepare(step); !prepared) return prepared;
  assert(x.size() == size(rows_) * size(shape_.width));
  std::ranges::copy(x, x_.data());
  return {};
}

template <class Body>
void CpuBackend::each_row(int rows, int width, const Body& body) {
  if (size(rows) * size(width) >= kSharedElements) return pool_.parallel_for(rows, body);
  for (int row = 0; row < rows; ++row) body(row);
}

void CpuBackend::norm_row(const CpuNorm& norm, const float* x, float* out) const {
  if (norm.bias.empty())
    kernels_.rms_norm(x, norm.weight.data(), shape_.width, shape_.norm_epsilon, out);
  else
    kernels_.layer_norm(x, norm.weight.data(), norm.bias.data(), shape_.width, shape_.norm_epsilon,
                        out);
}

void CpuBackend::norm_heads(const std::vector<float>& norm, int heads, float* row) const {
  if (norm.empty()) return;
  for (int head = 0; head < heads; ++head, row += shape_.head_width)
    kernels_.rms_norm(row, norm.data(), shape_.head_width, shape_.norm_epsilon, row);
}

void CpuBackend::multiply(std::span<const Product> products, const float* values, int width,
                          int rows) {
  each_row(rows, width, [&](int row) { multiplier_.quantize_row(products, values, width, row); });
  multiplier_.multiply(products, values);
}

Result<void> CpuBackend::attention_input(int layer) {
  const CpuLayer& weights = weights_.layers[size(layer)];
  const RowRange all{0, rows_};
  const std::vector<float>& key_bias = kv_->adds_key_bias(layer) ? kNoBias : weights.key_bias;
  const Product products[] = {
      {&weights.query, all, q_.data(), size(query_width()), &weights.query_bias, Store::kSet},
      {&weights.key, all, k_.data(), size(key_width()), &key_bias, Store::kSet},
      {&weights.value, all, v_.data(), size(key_width()), &weights.value_bias, Store::kSet}};
  each_row(rows_, shape_.width, [&](int row) {
    const std::size_t at = size(row) * size(shape_.width);
    norm_row(weights.attention_norm, x_.data() + at, normed_.data() + at);
  });
  multiply(products, normed_.data(), shape_.width, rows_);
  each_row(rows_, query_width() + 2 * key_width(), [&](int row) {
    norm_heads(weights.query_norm, shape_.heads, q_.data() + size(row) * size(query_width()));
    norm_heads(weights.key_norm, shape_.kv_heads, k_.data() + size(row) * size(key_width()));
    store_row(layer, row);
  });
  return {};
}

void CpuBackend::store_row(int layer, int row) {
  float* q = q_.data() + size(row) * size(query_width());
  for (int head = 0; head < shape_.heads; ++head) rope_.rotate(row, q + head * shape_.head_width);
  scale_row(q, query_width(), shape_.score_scale());

  float* k = k_.data() + size(row) * size(key_width());
  for (int head = 0; head < shape_.kv_heads; ++head)
    rope_.rotate(row, k + head * shape_.head_width);
  kv_->put(layer, row, pages_[size(row)], positions_[size(row)] % kPageTokens, k,
           v_.data() + size(row) * size(key_width()));
}

Result<void> CpuBackend::attention(int layer) {
  pool_.parallel_for(plan_.tasks(), [&](int index) {
    kv_->attend(layer, plan_, index, q_.data(), records_.data());
  });
  each_row(rows_, query_width(), [&](int row) {
    float* attended = attended_.data() + size(row) * size(query_width());
    plan_.merge(row, records_.data(), attended);
    scale_row(attended, query_width(), shape_.residual_scale);
  });
  return {};
}

Result<void> CpuBackend::attention_output(int layer) {
  const CpuLayer& weights = weights_.layers[size(layer)];
  const Product product{&weights.attention_output,      {0, rows_}, x_.data(), size(shape_.width),
                        &weights.attention_output_bias, Store::kAdd};
  multiply({&product, 1}, attended_.data(), query_width(), rows_);
  return {};
}

Result<void> CpuBackend::feed_forward_input(int layer) {
  const CpuLayer& weights = weights_.layers[size(layer)];
  each_row(rows_, shape_.width, [&](int row) {
    const std::size_t at = size(row) * size(shape_.width);
    norm_row(weights.feed_forward_norm, x_.data() + at, normed_.data() + at);
  });
  if (shape_.experts > 0) {
    experts_input(weights);
    return {};
  }
  const std::size_t width = size(shape_.feed_forward);
  const bool gated = !weights.gate.empty();
  std::vector<Product> products = {{weights.up.data(),
                                    {0, rows_},
                                    gated ? up_.data() : hidden_.data(),
                                    width,
                                    &weights.up_bias,
                                    Store::kSet}};
  if (gated)
    products.push_back(
        {weights.gate.data(), {0, rows_}, hidden_.data(), width, &weights.gate_bias, Store::kSet});
  multiply(products, normed_.data(), shape_.width, rows_);
  activate(gated, rows_, shape_.residual_scale);
  return {};
}

void CpuBackend::activate(bool gated, int rows, float scale) {
  const auto function =
      shape_.activation == Activation::kSilu ? kernels_.silu_mul : kernels_.gelu_mul;
  each_row(rows, shape_.feed_forward, [&](int row) {
    const std::size_t at = size(row) * size(shape_.feed_forward);
    float* hidden = hidden_.data() + at;
    function(hidden, gated ? up_.data() + at : nullptr, shape_.feed_forward, hidden);
    scale_row(hidden, shape_.feed_forward, scale);
  });
}

Result<void> CpuBackend::feed_forward_output(int layer) {
  const CpuLayer& weights = weights_.layers[size(layer)];
  if (shape_.experts > 0) {
    experts_output(weights);
    return layer + 1 < shape_.layers ? Result<void>() : check_file();
  }
  const Product product{weights.down.data(), {0, rows_},         x_.data(),
                        size(shape_.width),  &weights.down_bias, Store::kAdd};
  multiply({&product, 1}, hidden_.data(), shape_.feed_forward, rows_);
  return layer + 1 < shape_.layers ? Result<void>() : check_file();
}

void CpuBackend::experts_input(const CpuLayer& weights) {
  const Product router{&weights.router,      {0, rows_}, router_logits_.data(),
                       size(shape_.experts), &kNoBias,   Store::kSet};
  multiply({&router, 1}, normed_.data(), shape_.width, rows_);
  experts_.route({router_logits_.data(), size(rows_) * size(shape_.experts)}, rows_);

  const std::size_t width = size(shape_.width);
  each_row(experts_.slots(), shape_.width, [&](int slot) {
    std::copy_n(normed_.data() + size(experts_.row_of(slot)) * width, width,
                expert_in_.data() + size(slot) * width);
  });
  const std::size_t hidden = size(shape_.feed_forward);
  std::vector<Product> products;
  for (const auto& [expert, first, count] : experts_.shares()) {
    const std::size_t at = size(first) * hidden;
    const RowRange rows{first, first + count};
    products.push_back(
        {&weights.gate[size(expert)], rows, hidden_.data() + at, hidden, &kNoBias, Store::kSet});
    products.push_back(
        {&weights.up[size(expert)], rows, up_.data() + at, hidden, &kNoBias, Store::kSet});
  }
  multiply(products, expert_in_.data(), shape_.width, experts_.slots());
  activate(true, experts_.slots(), shape_.residual_scale);
}

void CpuBackend::experts_output(const CpuLayer& weights) {
  const std::size_t width = size(shape_.width);
  std::vector<Product> products;
  for (const auto& [expert, first, count] : experts_.shares())
    products.push_back({&weights.down[size(expert)],
                        {first, first + count},
                        expert_out_.data() + size(first) * width,
                        width,
                        &kNoBias,
                        Store::kSet});
  multiply(products, hidden_.data(), shape_.feed_forward, experts_.slots());
  each_row(rows_, shape_.width, [&](int row) {
    float* x = x_.data() + size(row) * width;
    for (const auto& [slot, weight] : experts_.choices(row)) {
      const float* part = expert_out_.data() + size(slot) * width;
      for (std::size_t i = 0; i < width; ++i) x[i] += weight * part[i];
    }
  });
}

Result<std::span<const float>> CpuBackend::logits() {
  const int rows = static_cast<int>(step_.logits_rows.size());
  const std::size_t width = size(shape_.vocabulary);
  if (!logits_.reserve(size(rows) * width)) {
    return fail(
        Fault::kNoMemory,
        "logits: cannot allocate " + std::to_string(size(rows) * width * sizeof(float)) + " bytes",
        "close other programs");
  }
  each_row(rows, shape_.width, [&](int row) {
    const std::size_t from = size(step_.logits_rows[size(row)]) * size(shape_.width);
    norm_row(weights_.output_norm, x_.data() + from,
             normed_.data() + size(row) * size(shape_.width));
  });
  const Product product{&weights_.output, {0, rows}, logits_.data(), width, &kNoBias, Store::kSet};
  multiply({&product, 1}, normed_.data(), shape_.width, rows);
  if (auto whole = check_file(); !whole) return tl::unexpected(std::move(whole).error());
  return std::span<const float>(logits_.data(), size(rows) * width);
}

Result<std::span<const float>> CpuBackend::residual() {
  return std::span<const float>(x_.data(), size(rows_) * size(shape_.width));
}

Result<void> CpuBackend::copy_page(PageIndex from, PageIndex to, int tokens) {
  kv_->copy(from, to, tokens);
  return {};
}

Result<void> CpuBackend::read_page(PageIndex page, std::span<std::byte> bytes) {
  const std::span<const std::byte> memory = kv_->pages().page(page);
  if (bytes.size() != memory.size())
    return fail(Fault::kBadInput, "a KV page is read into a buffer of another size");
  std::ranges::copy(memory, bytes.begin());
  return {};
}

Result<void> CpuBackend::write_page(PageIndex page, std::span<const std::byte> bytes) {
  if (bytes.size() != page_bytes())
    return fail(Fault::kBadInput, "a KV page is written from a buffer of another size");
  std::ranges::copy(bytes, kv_->pages().page_to_write(page).begin());
  return {};
}

/// A norm of the heads comes between the bias and the rotation: then they cannot be told apart.
std::vector<std::span<const float>> separable_key_biases(const CpuWeights& weights) {
  std::vector<std::span<const float>> biases;
  for (const CpuLayer& layer : weights.layers)
    biases.push_back(layer.key_norm.empty() ? std::span<const float>(layer.key_bias)
                                            : std::span<const float>());
  return biases;
}

Result<std::unique_ptr<CpuBackend>> make(const ModelShape& shape, const ModelWeights& weights,
                                         const CpuOptions& options) {
  const Isa isa = options.isa.value_or(best_isa());
  if (!runs_here(isa)) {
    return fail(Fault::kUnsupported,
                "this processor does not run the " + std::string(isa_name(isa)) + " kernels");
  }
  Result<CpuWeights> fitted = CpuWeights::from(shape, weights);
  if (!fitted) return tl::unexpected(std::move(fitted).error());
  const int step_tokens_max = std::max(options.step_tokens_max, 1);
  auto kv = make_kv_form(shape, kernels_of(isa),
                         {.type = options.kv_type,
                          .page_count = options.page_count,
                          .step_tokens_max = step_tokens_max,
                          .rope_factors = fitted->rope_factors,
                          .key_biases = separable_key_biases(*fitted)});
  if (!kv) return tl::unexpected(std::move(kv).error());
  const int threads = options.threads > 0 ? options.threads : physical_cores();
  auto backend = std::make_unique<CpuBackend>(shape, *std::move(fitted), *std::move(kv), isa,
                                              threads, step_tokens_max);
  if (!backend->reserve()) {
    return fail(
        Fault::kNoMemory,
        "activations: cannot allocate " + std::to_string(backend->activation_bytes()) + " bytes",
        "close other programs");
  }
  return backend;
}

Result<std::unique_ptr<CpuBackend>> make_guarded(const ModelShape& shape,
                                                 const ModelWeights& weights,
                                                 const CpuOptions& options) {
  try {
    return make(shape, weights, options);
  } catch (const std::bad_alloc&) {
    return fail(Fault::kNoMemory, "the CPU device: no memory for its tables",
                "close other programs");
  } catch (const std::system_error& error) {
    return fail(Fault::kNoMemory, std::string("worker threads cannot be started: ") + error.what(),
                "raise the limit of processes, or set fewer threads");
  }
}

}  // namespace

std::size_t cpu_page_bytes(const ModelShape& shape, KvType type) {
  return kv_page_bytes(shape, type);
}

Result<std::unique_ptr<Backend>> make_cpu_backend(std::shared_ptr<const Model> model,
                                                  const CpuOptions& options) {
  const Model& of = *model;
  return make_cpu_backend(of.shape(), of.weights(), options, std::move(model));
}

Result<std::unique_ptr<Backend>> make_cpu_backend(const ModelShape& shape,
                                                  const ModelWeights& weights,
                                                  const CpuOptions& options,
                                                  std::shared_ptr<const Model> model) {
  auto backend = make_guarded(shape, weights, options);
  if (!backend) return tl::unexpected(std::move(backend).error());
  if (model != nullptr) (*backend)->keep_alive(std::move(model));
  (*backend)->start_panels(options);
  return std::unique_ptr<Backend>(*std::move(backend));
}

}  // namespace efimd::engine
