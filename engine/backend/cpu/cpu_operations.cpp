// The operations of a step on the CPU, as loops over the worker pool. The arithmetic is in
// kernels_*.cpp.
//
// A layer at one token has five loops that all threads join: Q K V, attention, output, gate and up,
// down. What lies between them (norms, RoPE, quantization of inputs) is done row by row. At few
// rows the calling thread does it alone, because that costs less than waking the others.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "engine/backend/cpu/cpu_device.h"

namespace efimd::engine::cpu {

namespace {

const std::vector<float> kNoBias;

/// Elements from which on it pays to share a row-by-row operation.
constexpr std::size_t kSharedElements = 16 * 1024;

void scale_row(float* row, int width, float scale) {
  if (scale == 1.0F) return;
  for (int i = 0; i < width; ++i) row[i] *= scale;
}

}  // namespace

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

Result<void> CpuBackend::prepare(const Step& step) {
  assert(well_formed(step, *this));
  if (auto checked = check_tokens(step, shape_.vocabulary); !checked) return checked;
  panels_.adopt();
  step_ = step;
  rows_ = static_cast<int>(step.tokens.size());
  place_rows();
  rope_.prepare(positions_);
  plan_.prepare(step);
  if (!partials_.reserve(plan_.partial_floats())) {
    return fail(Fault::kNoMemory,
                "attention: cannot allocate " +
                    std::to_string(plan_.partial_floats() * sizeof(float)) + " bytes",
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
  if (pool_.leaves_off()) return;
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
  panels_.note_work();
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
  panels_.note_work();
  pool_.parallel_for(plan_.tasks(), [&](int index) {
    kv_->attend(layer, plan_, index, q_.data(), partials_.data());
  });
  each_row(rows_, query_width(), [&](int row) {
    float* attended = attended_.data() + size(row) * size(query_width());
    plan_.merge(row, partials_.data(), attended);
    scale_row(attended, query_width(), shape_.residual_scale);
  });
  return {};
}

Result<void> CpuBackend::attention_output(int layer) {
  panels_.note_work();
  const CpuLayer& weights = weights_.layers[size(layer)];
  const Product product{&weights.attention_output,      {0, rows_}, x_.data(), size(shape_.width),
                        &weights.attention_output_bias, Store::kAdd};
  multiply({&product, 1}, attended_.data(), query_width(), rows_);
  return {};
}

Result<void> CpuBackend::feed_forward_input(int layer) {
  panels_.note_work();
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
  panels_.note_work();
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
  if (pool_.leaves_off()) return;  // there is nothing to route by
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
  if (pool_.leaves_off()) return;
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

}  // namespace efimd::engine::cpu
