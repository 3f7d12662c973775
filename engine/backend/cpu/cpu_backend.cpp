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

#include "engine/backend/cpu/aligned_array.h"
#include "engine/backend/cpu/attention_plan.h"
#include "engine/backend/cpu/cpu_weights.h"
#include "engine/backend/cpu/isa.h"
#include "engine/backend/cpu/kernels.h"
#include "engine/backend/cpu/kv_memory.h"
#include "engine/backend/cpu/rope.h"
#include "engine/backend/cpu/weight_blocks.h"
#include "engine/backend/cpu/worker_pool.h"

namespace efimd::engine {

namespace {

using namespace cpu;  // the parts of this device

/// Weights that a thread takes at a time: long enough to stream, short enough to even out stolen
/// cores.
constexpr std::size_t kChunkBytes = 128 * 1024;
/// Rows of a chunk are whole groups of the widest kernel.
constexpr int kChunkRows = 16;
/// Elements from which on it pays to share a row-by-row operation.
constexpr std::size_t kSharedElements = 16 * 1024;

std::size_t size(int count) { return static_cast<std::size_t>(count); }

/// weights * inputs, one of several products of the same inputs.
struct Product {
  const Weights* weights;
  float* out;
  std::size_t out_stride;
  const std::vector<float>* bias;  ///< empty: none
  Store store;
};

std::string device_name(Isa isa, int threads) {
  const char* set = isa == Isa::kAvx512 ? "AVX-512 VNNI" : isa == Isa::kAvx2 ? "AVX2" : "scalar";
  return processor_name() + ", " + set + ", " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads");
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const ModelShape& shape, CpuWeights weights, KvMemory kv, Isa isa, int threads,
             int step_tokens_max)
      : shape_(shape),
        weights_(std::move(weights)),
        kv_(std::move(kv)),
        kernels_(kernels_of(isa)),
        pool_(threads),
        name_(device_name(isa, pool_.threads())),
        step_tokens_max_(step_tokens_max),
        rope_(shape),
        plan_({shape.kv_heads, shape.heads / shape.kv_heads, shape.head_width, kv_.value_width()}) {
  }

  /// Memory of the activations; false when there is none.
  [[nodiscard]] bool reserve();
  /// Bytes that reserve() asks for.
  std::size_t activation_bytes() const;
  void keep_alive(std::shared_ptr<const Model> model) { model_ = std::move(model); }

  std::string kind() const override { return "cpu"; }
  std::string name() const override { return name_; }
  int step_tokens_max() const override { return step_tokens_max_; }
  int page_count() const override { return kv_.page_count(); }
  std::size_t page_bytes() const override { return kv_.page_bytes(); }
  std::size_t resident_bytes() const override { return kv_.resident_bytes(); }

  Result<void> begin(const Step& step) override;
  Result<void> attention_input(int layer) override;
  Result<void> attention(int layer) override;
  Result<void> attention_output(int layer) override;
  Result<void> feed_forward_input(int layer) override;
  Result<void> feed_forward_output(int layer) override;
  Result<std::span<const float>> logits() override;
  Result<void> copy_page(PageIndex from, PageIndex to, int tokens) override;

 private:
  int query_width() const { return shape_.heads * shape_.head_width; }
  int key_width() const { return shape_.kv_heads * shape_.head_width; }
  int input_width_max() const {
    return std::max({shape_.width, query_width(), shape_.feed_forward});
  }

  /// Whether the step keeps the promises of backend.h; a step that does not is a mistake of this
  /// program.
  [[maybe_unused]] bool well_formed(const Step& step) const;
  void place_rows();
  void store_row(int layer, int row);
  /// body(row) for rows 0 .. rows - 1 of `width` elements each.
  template <class Body>
  void each_row(int rows, int width, const Body& body);
  /// Quantizes row `row` of `values` when one of the products needs it.
  void quantize_row(const std::vector<Product>& products, const float* values, int width, int row);
  void multiply(const std::vector<Product>& products, const float* values, int rows);

  const ModelShape shape_;
  const CpuWeights weights_;
  std::shared_ptr<const Model> model_;  ///< null for weights without a file
  KvMemory kv_;
  const CpuKernels& kernels_;
  WorkerPool pool_;
  const std::string name_;
  const int step_tokens_max_;

  // The step.
  Step step_;
  int rows_ = 0;
  std::vector<int> positions_;    ///< [T]
  std::vector<PageIndex> pages_;  ///< [T] that a row's K and V go to
  Rope rope_;
  AttentionPlan plan_;

  // Activations, all [T][...].
  AlignedArray<float> x_;               ///< [D]
  AlignedArray<float> normed_;          ///< [D]
  AlignedArray<float> q_;               ///< [H][E]
  AlignedArray<float> k_, v_;           ///< [Hk][E]
  AlignedArray<float> attended_;        ///< [H][E]
  AlignedArray<float> gate_, up_;       ///< [F]; gate becomes silu(gate) * up
  AlignedArray<std::uint16_t> halves_;  ///< [2][Hk][E]: K and V of a row on their way to a page
  // The input of the current products, quantized.
  AlignedArray<std::int8_t> quants_;
  AlignedArray<float> scales_, totals_;
  AlignedArray<std::int32_t> sums_;

  AlignedArray<float> records_;  ///< of attention
  AlignedArray<float> logits_;
};

bool CpuBackend::reserve() {
  const std::size_t rows = size(step_tokens_max_);
  const std::size_t inputs = rows * size(input_width_max());
  return x_.reserve(rows * size(shape_.width)) && normed_.reserve(rows * size(shape_.width)) &&
         q_.reserve(rows * size(query_width())) && k_.reserve(rows * size(key_width())) &&
         v_.reserve(rows * size(key_width())) && attended_.reserve(rows * size(query_width())) &&
         gate_.reserve(rows * size(shape_.feed_forward)) &&
         up_.reserve(rows * size(shape_.feed_forward)) &&
         halves_.reserve(2 * rows * size(key_width())) && quants_.reserve(inputs) &&
         scales_.reserve(inputs / kGroup) && sums_.reserve(inputs / kGroup) &&
         totals_.reserve(inputs / kGroup);
}

std::size_t CpuBackend::activation_bytes() const {
  const std::size_t floats = 2 * size(shape_.width) + 2 * size(query_width()) +
                             3 * size(key_width()) + 2 * size(shape_.feed_forward);
  return size(step_tokens_max_) * (4 * floats + size(input_width_max()) * 11 / 8);
}

bool CpuBackend::well_formed(const Step& step) const {
  const int rows = static_cast<int>(step.tokens.size());
  const auto fits = [&](const StepSequence& sequence) {
    const auto here = [&](PageIndex page) { return page >= 0 && page < kv_.page_count(); };
    return sequence.first >= 0 && sequence.count >= 1 && sequence.position >= 0 &&
           sequence.first + sequence.count <= rows &&
           sequence.page_table.size() * kPageTokens >= size(sequence.position + sequence.count) &&
           std::all_of(sequence.page_table.begin(), sequence.page_table.end(), here);
  };
  const auto is_row = [&](int row) { return row >= 0 && row < rows; };
  return rows >= 1 && rows <= step_tokens_max_ &&
         std::all_of(step.sequences.begin(), step.sequences.end(), fits) &&
         std::all_of(step.logits_rows.begin(), step.logits_rows.end(), is_row);
}

void CpuBackend::place_rows() {
  positions_.assign(size(rows_), 0);
  pages_.assign(size(rows_), -1);
  for (const StepSequence& sequence : step_.sequences) {
    for (int i = 0; i < sequence.count; ++i) {
      const std::size_t row = size(sequence.first + i);
      assert(pages_[row] == -1);  // no row belongs to two sequences
      positions_[row] = sequence.position + i;
      pages_[row] = sequence.page_table[size(positions_[row] / kPageTokens)];
      kv_.touch(pages_[row]);
    }
  }
  assert(std::find(pages_.begin(), pages_.end(), -1) == pages_.end());  // and every row to one
}

Result<void> CpuBackend::begin(const Step& step) {
  assert(well_formed(step));
  for (const TokenId token : step.tokens) {
    if (token < 0 || token >= shape_.vocabulary)
      return fail(Fault::kBadInput, "token " + std::to_string(token) +
                                        " is outside the vocabulary of " +
                                        std::to_string(shape_.vocabulary));
  }
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
  each_row(rows_, shape_.width, [&](int row) {
    read_row(weights_.token_embedding, step_.tokens[size(row)],
             x_.data() + size(row) * size(shape_.width));
  });
  return {};
}

template <class Body>
void CpuBackend::each_row(int rows, int width, const Body& body) {
  if (size(rows) * size(width) >= kSharedElements) return pool_.parallel_for(rows, body);
  for (int row = 0; row < rows; ++row) body(row);
}

void CpuBackend::quantize_row(const std::vector<Product>& products, const float* values, int width,
                              int row) {
  const bool needed = std::any_of(products.begin(), products.end(), [](const Product& product) {
    return is_quantized(product.weights->type);
  });
  if (!needed) return;
  const std::size_t at = size(row) * size(width);
  kernels_.quantize(values + at, width,
                    {quants_.data() + at, scales_.data() + at / kGroup, sums_.data() + at / kGroup,
                     totals_.data() + at / kGroup});
}

void CpuBackend::multiply(const std::vector<Product>& products, const float* values, int rows) {
  struct Chunk {
    const Product* product;
    RowRange rows;
  };
  int total = 0;
  for (const Product& product : products) total += product.weights->rows;
  // At least four chunks a thread, where there are so many rows.
  const int fair = std::max(total / (4 * pool_.threads()), 1);
  std::vector<Chunk> chunks;
  for (const Product& product : products) {
    const int stream = static_cast<int>(kChunkBytes / product.weights->row_bytes);
    const int taken = std::max(std::min(stream, fair) / kChunkRows, 1) * kChunkRows;
    for (int first = 0; first < product.weights->rows; first += taken)
      chunks.push_back({&product, {first, std::min(first + taken, product.weights->rows)}});
  }
  const Inputs inputs{rows, values, quants_.data(), scales_.data(), sums_.data(), totals_.data()};
  pool_.parallel_for(static_cast<int>(chunks.size()), [&](int index) {
    const auto& [product, range] = chunks[size(index)];
    const float* bias = product->bias->empty() ? nullptr : product->bias->data();
    kernels_.matmul(*product->weights, range, inputs,
                    {product->out, product->out_stride, bias, product->store});
  });
}

const std::vector<float> kNoBias;

Result<void> CpuBackend::attention_input(int layer) {
  const CpuLayer& weights = weights_.layers[size(layer)];
  const std::vector<Product> products = {
      {&weights.query, q_.data(), size(query_width()), &weights.query_bias, Store::kSet},
      {&weights.key, k_.data(), size(key_width()), &weights.key_bias, Store::kSet},
      {&weights.value, v_.data(), size(key_width()), &weights.value_bias, Store::kSet}};
  each_row(rows_, shape_.width, [&](int row) {
    const std::size_t at = size(row) * size(shape_.width);
    kernels_.rms_norm(x_.data() + at, weights.attention_norm.data(), shape_.width,
                      shape_.norm_epsilon, normed_.data() + at);
    quantize_row(products, normed_.data(), shape_.width, row);
  });
  multiply(products, normed_.data(), rows_);
  each_row(rows_, query_width() + 2 * key_width(), [&](int row) { store_row(layer, row); });
  return {};
}

void CpuBackend::store_row(int layer, int row) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_width));
  float* q = q_.data() + size(row) * size(query_width());
  for (int head = 0; head < shape_.heads; ++head) rope_.rotate(row, q + head * shape_.head_width);
  for (int i = 0; i < query_width(); ++i) q[i] *= scale;

  float* k = k_.data() + size(row) * size(key_width());
  const float* v = v_.data() + size(row) * size(key_width());
  std::uint16_t* key = halves_.data() + size(row) * 2 * size(key_width());
  std::uint16_t* value = key + key_width();
  for (int head = 0; head < shape_.kv_heads; ++head)
    rope_.rotate(row, k + head * shape_.head_width);
  kernels_.to_half(k, key_width(), key);
  kernels_.to_half(v, key_width(), value);
  for (int head = 0; head < shape_.kv_heads; ++head) {
    const int at = head * shape_.head_width;
    kv_.put(layer, head, pages_[size(row)], positions_[size(row)] % kPageTokens, key + at,
            value + at);
  }
}

Result<void> CpuBackend::attention(int layer) {
  const std::uint16_t* kv = kv_.head(layer, 0);
  const auto head_stride = size(kPageTokens) * size(shape_.head_width + kv_.value_width());
  pool_.parallel_for(plan_.tasks(), [&](int index) {
    kernels_.attention(
        plan_.task(index, q_.data(), kv, head_stride, kv_.page_stride(), records_.data()));
  });
  each_row(rows_, query_width(), [&](int row) {
    plan_.merge(row, records_.data(), attended_.data() + size(row) * size(query_width()));
  });
  return {};
}

Result<void> CpuBackend::attention_output(int layer) {
  const CpuLayer& weights = weights_.layers[size(layer)];
  const std::vector<Product> products = {
      {&weights.attention_output, x_.data(), size(shape_.width), &kNoBias, Store::kAdd}};
  each_row(rows_, query_width(),
           [&](int row) { quantize_row(products, attended_.data(), query_width(), row); });
  multiply(products, attended_.data(), rows_);
  return {};
}

Result<void> CpuBackend::feed_forward_input(int layer) {
  const CpuLayer& weights = weights_.layers[size(layer)];
  const std::size_t width = size(shape_.feed_forward);
  const std::vector<Product> products = {
      {&weights.gate, gate_.data(), width, &kNoBias, Store::kSet},
      {&weights.up, up_.data(), width, &kNoBias, Store::kSet}};
  each_row(rows_, shape_.width, [&](int row) {
    const std::size_t at = size(row) * size(shape_.width);
    kernels_.rms_norm(x_.data() + at, weights.feed_forward_norm.data(), shape_.width,
                      shape_.norm_epsilon, normed_.data() + at);
    quantize_row(products, normed_.data(), shape_.width, row);
  });
  multiply(products, normed_.data(), rows_);
  each_row(rows_, shape_.feed_forward, [&](int row) {
    float* gate = gate_.data() + size(row) * width;
    kernels_.silu_mul(gate, up_.data() + size(row) * width, shape_.feed_forward, gate);
  });
  return {};
}

Result<void> CpuBackend::feed_forward_output(int layer) {
  const std::vector<Product> products = {
      {&weights_.layers[size(layer)].down, x_.data(), size(shape_.width), &kNoBias, Store::kAdd}};
  each_row(rows_, shape_.feed_forward,
           [&](int row) { quantize_row(products, gate_.data(), shape_.feed_forward, row); });
  multiply(products, gate_.data(), rows_);
  return {};
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
  const std::vector<Product> products = {
      {&weights_.output, logits_.data(), width, &kNoBias, Store::kSet}};
  each_row(rows, shape_.width, [&](int row) {
    const std::size_t from = size(step_.logits_rows[size(row)]) * size(shape_.width);
    kernels_.rms_norm(x_.data() + from, weights_.output_norm.data(), shape_.width,
                      shape_.norm_epsilon, normed_.data() + size(row) * size(shape_.width));
    quantize_row(products, normed_.data(), shape_.width, row);
  });
  multiply(products, normed_.data(), rows);
  return std::span<const float>(logits_.data(), size(rows) * width);
}

Result<void> CpuBackend::copy_page(PageIndex from, PageIndex to, int tokens) {
  kv_.copy(from, to, tokens);
  return {};
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
  Result<KvMemory> kv =
      KvMemory::open({shape.layers, shape.kv_heads, shape.head_width, options.page_count});
  if (!kv) return tl::unexpected(std::move(kv).error());
  const int threads = options.threads > 0 ? options.threads : physical_cores();
  auto backend = std::make_unique<CpuBackend>(shape, *std::move(fitted), *std::move(kv), isa,
                                              threads, std::max(options.step_tokens_max, 1));
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

Result<std::unique_ptr<Backend>> make_cpu_backend(std::shared_ptr<const Model> model,
                                                  const CpuOptions& options) {
  auto backend = make_guarded(model->shape(), model->weights(), options);
  if (!backend) return tl::unexpected(std::move(backend).error());
  (*backend)->keep_alive(std::move(model));
  return std::unique_ptr<Backend>(*std::move(backend));
}

Result<std::unique_ptr<Backend>> make_cpu_backend(const ModelShape& shape,
                                                  const ModelWeights& weights,
                                                  const CpuOptions& options) {
  auto backend = make_guarded(shape, weights, options);
  if (!backend) return tl::unexpected(std::move(backend).error());
  return std::unique_ptr<Backend>(*std::move(backend));
}

}  // namespace efimd::engine
