#include "engine/backend/gpu/gpu_backend.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/gpu/gpu_kv.h"
#include "engine/backend/gpu/gpu_weights.h"
#include "engine/backend/gpu/packed_weights.h"
#include "engine/backend/gpu/page_transfer.h"
#include "engine/backend/rope_frequencies.h"
#include "engine/backend/step_checks.h"

namespace efimd::engine::gpu {

namespace {

using namespace kernels;

/// Fewer pages than this leave no room for a prompt: 256 tokens.
constexpr int kWindowPagesMin = 8;
/// Attention over a window is split so that no row has more records than this.
constexpr int kSplitsMax = 32;
constexpr int kSplitPagesMin = 8;
constexpr u32 kEverything = u32{1} << 30U;
constexpr int kHeadWidthMax = 256;

std::size_t size(int count) { return static_cast<std::size_t>(count); }
u32 number(int count) { return static_cast<u32>(count); }
u32 groups_for(std::size_t threads) {
  return static_cast<u32>((threads + kElementThreads - 1) / kElementThreads);
}

/// The number of a KV type in all devices.
u32 number(KvType type) { return static_cast<u32>(type == KvType::kQ8 ? Kv::kQ8 : Kv::kF16); }

/// Memory that grows with nothing: what a step computes with.
struct Buffers {
  /// What the host says of a step. The host writes it in one piece, which the step's first operation copies.
  Range record_in, record;
  Range tokens, places, rows, logits_rows, turns, tables;  ///< parts of the record
  Range all_rows;                                          ///< 0, 1, 2 ...
  Range x, normed, q, k, v, attended, hidden, up, quants, scales, records;
  Range bias_turns;  ///< none where attention adds no key's bias
  Range router_logits, chosen, expert_weights, expert_parts;
};

/// What rows a product has when each goes to experts of its own.
struct Slots {
  int experts = 0;  ///< 0: none
  u32 share = 1;    ///< slots that read the same input row
};

class GpuBackend final : public Backend {
 public:
  GpuBackend(std::unique_ptr<GpuDevice> device, const ModelShape& shape, const GpuOptions& options)
      : device_(std::move(device)),
        shape_(shape),
        kv_type_(options.kv_type),
        page_count_(options.page_count),
        step_tokens_max_(std::max(1, options.step_tokens_max)),
        split_pages_(std::max(kSplitPagesMin, (page_count_ + kSplitsMax - 1) / kSplitsMax)) {}

  Result<void> open(const ModelWeights& weights);

  std::string kind() const override { return device_->kind(); }
  std::string name() const override { return device_->name(); }
  int step_tokens_max() const override { return step_tokens_max_; }
  int page_count() const override { return page_count_; }
  std::size_t page_bytes() const override { return page_bytes_of(shape_, kv_type_); }
  std::size_t resident_bytes() const override { return size(page_count_) * page_bytes(); }

  Result<void> begin(const Step& step) override;
  Result<void> attention_input(int layer) override;
  Result<void> attention(int layer) override;
  Result<void> attention_output(int layer) override;
  Result<void> feed_forward_input(int layer) override;
  Result<void> feed_forward_output(int layer) override;
  Result<std::span<const float>> logits() override;
  Result<void> copy_page(PageIndex from, PageIndex to, int tokens) override;
  std::string page_format() const override {
    return std::string(kv_type_name(kv_type_)) + ", [Hk][2][P][E]" +
           (kv_type_ == KvType::kQ8 ? " and scales of 32" : "") + ", splits of " +
           std::to_string(split_pages_) + " pages, " + kind() + ", " + name();
  }
  void expect_read(PageIndex page) override { pages_->expect(page); }
  Result<void> read_page(PageIndex page, std::span<std::byte> bytes) override;
  Result<void> write_page(PageIndex page, std::span<const std::byte> bytes) override;

 private:
  /// One matrix of a product.
  struct Product {
    const GpuMatrix& matrix;
    Range bias;
    Range out;
    bool add;
  };

  int query_width() const { return shape_.heads * shape_.head_width; }
  int key_width() const { return shape_.kv_heads * shape_.head_width; }
  int used() const { return std::max(shape_.experts_used, 1); }
  Result<void> allocate();
  /// Steps of one token, of two and of a short prompt: every kernel the model needs is compiled, and known to run.
  Result<void> warm_up();
  Result<Range> take(std::size_t count, Memory where);
  Result<void> allocate_record();
  /// Makes at_.bias_turns reach so many pages of a sequence, where a layer's keys are kept without their bias.
  Result<void> turn_biases(int pages);
  /// Whether keys are stored without their bias, which attention adds. A norm of the heads comes between the bias and
  /// the rotation: then they cannot be told apart.
  bool adds_key_bias(const GpuLayer& layer) const {
    return kv_type_ == KvType::kQ8 && layer.key_bias.bytes > 0 && layer.key_norm.bytes == 0;
  }
  template <class T>
  std::span<T> mapped(const Range& range) {
    return {reinterpret_cast<T*>(device_->mapped(range.buffer).data() + range.offset),
            range.bytes / sizeof(T)};
  }
  /// A part of the record where the host writes it.
  template <class T>
  std::span<T> written(const Range& part) {
    return mapped<T>({at_.record_in.buffer, part.offset, part.bytes});
  }
  void copy(const Range& from, const Range& to);
  void place_rows();
  void turn_rows();

  template <class Sizes>
  Operation& add(Kernel kernel, std::array<u32, 3> groups, std::initializer_list<Range> operands,
                 const Sizes& sizes);
  void norm(const GpuNorm& norm, const Range& rows, int count);
  /// Quantizes `rows` rows of x where a product needs it, and multiplies.
  void multiply(std::initializer_list<Product> products, const Range& x, int rows,
                Slots slots = {});
  void multiply_part(const Product& product, const GpuMatrix::Part& part, const Range& x, int rows,
                     Slots slots);
  void activate(bool gated, int rows);
  void experts_input(const GpuLayer& layer);
  void experts_output(const GpuLayer& layer);
  Result<void> run();

  const std::unique_ptr<GpuDevice> device_;
  const ModelShape shape_;
  const KvType kv_type_;
  const int page_count_;
  const int step_tokens_max_;
  const int split_pages_;
  GpuWeights weights_;
  std::vector<double> frequencies_;
  std::vector<Range> kv_;              ///< [L]
  std::optional<PageTransfer> pages_;  ///< after allocate()
  Buffers at_;
  Range logits_, logits_out_;  ///< grow
  int bias_pages_ = 0;         ///< that at_.bias_turns reaches

  Step step_;
  int rows_ = 0;
  int pages_max_ = 1;  ///< of a sequence of the step
  u32 splits_ = 1;
  std::size_t record_bytes_ = 0;  ///< of the record, that this step says something in
  std::vector<Operation> operations_;
};

Result<Range> GpuBackend::take(std::size_t count, Memory where) {
  const std::size_t bytes = std::max<std::size_t>(count, 4) * sizeof(float);
  auto buffer = device_->allocate(bytes, where);
  if (!buffer) return tl::unexpected(std::move(buffer).error());
  return Range{*buffer, 0, bytes};
}

Result<void> GpuBackend::allocate() {
  const std::size_t rows = size(step_tokens_max_);
  const std::size_t slots = rows * size(used());
  const std::size_t widest = std::max(rows * size(std::max(shape_.width, query_width())),
                                      slots * size(shape_.feed_forward));
  const std::size_t records =
      rows * size(shape_.heads) * size(kSplitsMax) * (kRecordHead + size(shape_.head_width));
  const std::tuple<Range*, std::size_t, Memory> wanted[] = {
      {&at_.all_rows, rows, Memory::kDevice},
      {&at_.x, rows * size(shape_.width), Memory::kDevice},
      {&at_.normed, rows * size(shape_.width), Memory::kDevice},
      {&at_.q, rows * size(query_width()), Memory::kDevice},
      {&at_.k, rows * size(key_width()), Memory::kDevice},
      {&at_.v, rows * size(key_width()), Memory::kDevice},
      {&at_.attended, rows * size(query_width()), Memory::kDevice},
      {&at_.hidden, slots * size(shape_.feed_forward), Memory::kDevice},
      {&at_.up, slots * size(shape_.feed_forward), Memory::kDevice},
      {&at_.quants, widest / 4 + 1, Memory::kDevice},
      {&at_.scales, 2 * (widest / 32 + 1), Memory::kDevice},
      {&at_.records, records, Memory::kDevice},
      {&at_.router_logits, rows * size(shape_.experts), Memory::kDevice},
      {&at_.chosen, slots, Memory::kDevice},
      {&at_.expert_weights, slots, Memory::kDevice},
      {&at_.expert_parts, shape_.experts > 0 ? slots * size(shape_.width) : 0, Memory::kDevice}};
  for (const auto& [range, count, where] : wanted) {
    auto taken = take(count, where);
    if (!taken) return tl::unexpected(std::move(taken).error());
    *range = *taken;
  }
  for (int layer = 0; layer < shape_.layers; ++layer) {
    auto pages = take(size(page_count_) * layer_page_bytes(shape_, kv_type_) / sizeof(float),
                      Memory::kDevice);
    if (!pages) return tl::unexpected(std::move(pages).error());
    kv_.push_back(*pages);
  }
  pages_.emplace(*device_, kv_, layer_page_bytes(shape_, kv_type_));
  if (auto staged = pages_->allocate(); !staged) return staged;
  return allocate_record();
}

Result<void> GpuBackend::allocate_record() {
  const std::size_t rows = size(step_tokens_max_);
  const std::pair<Range*, std::size_t> parts[] = {
      {&at_.tokens, rows},
      {&at_.places, rows},
      {&at_.rows, 2 * rows},
      {&at_.logits_rows, rows},
      {&at_.turns, rows * size(std::max(shape_.rope_width, 2))},
      {&at_.tables, rows * size(page_count_)}};  // last: only what is used of it is copied
  const std::size_t step = device_->limits().offset_alignment;
  std::size_t bytes = 0;
  for (const auto& [range, count] : parts) {
    *range = {BufferId::kNone, bytes, count * sizeof(u32)};
    bytes = (bytes + range->bytes + step - 1) / step * step;
  }
  auto in = take(bytes / sizeof(u32), Memory::kHostWrites);
  if (!in) return tl::unexpected(std::move(in).error());
  auto record = take(bytes / sizeof(u32), Memory::kDevice);
  if (!record) return tl::unexpected(std::move(record).error());
  at_.record_in = *in;
  at_.record = *record;
  for (const auto& [range, count] : parts) range->buffer = record->buffer;

  const auto all = mapped<u32>(at_.record_in).first(rows);
  for (std::size_t row = 0; row < rows; ++row) all[row] = static_cast<u32>(row);
  copy({at_.record_in.buffer, 0, rows * sizeof(u32)}, {at_.all_rows.buffer, 0, rows * sizeof(u32)});
  return run();
}

void GpuBackend::copy(const Range& from, const Range& to) {
  Operation& operation = operations_.emplace_back();
  operation.operands[0] = from;
  operation.operands[1] = to;
}

Result<void> GpuBackend::open(const ModelWeights& weights) {
  auto uploaded = GpuWeights::upload(*device_, shape_, weights);
  if (!uploaded) return tl::unexpected(std::move(uploaded).error());
  weights_ = *std::move(uploaded);
  frequencies_ = rope_frequencies(shape_, weights_.rope_factors);
  if (auto allocated = allocate(); !allocated) return allocated;
  if (auto turned = turn_biases(page_count_); !turned) return turned;
  return warm_up();
}

Result<void> GpuBackend::turn_biases(int pages) {
  if (pages <= bias_pages_ || std::ranges::none_of(weights_.layers, [&](const GpuLayer& layer) {
        return adds_key_bias(layer);
      }))
    return {};
  const std::vector<float> turns = bias_turns(shape_, frequencies_, pages);
  auto taken = take(turns.size(), Memory::kDevice);
  if (!taken) return tl::unexpected(std::move(taken).error());
  at_.bias_turns = *taken;
  if (auto sent = pages_->send(*taken, std::as_bytes(std::span(turns))); !sent) return sent;
  bias_pages_ = pages;
  return {};
}

Result<void> GpuBackend::warm_up() {
  const std::array<TokenId, kPageTokens> tokens = {};
  const PageIndex page = 0;
  const int row = 0;
  for (const int wanted : {1, 2, kPageTokens}) {
    const int count = std::min(wanted, step_tokens_max_);
    const StepSequence sequence{0, count, 0, {&page, 1}};
    Result<void> done = begin({std::span(tokens).first(size(count)), {&sequence, 1}, {&row, 1}});
    for (int layer = 0; done && layer < shape_.layers; ++layer)
      done = attention_input(layer)
                 .and_then([&] { return attention(layer); })
                 .and_then([&] { return attention_output(layer); })
                 .and_then([&] { return feed_forward_input(layer); })
                 .and_then([&] { return feed_forward_output(layer); });
    if (done) done = logits().map([](auto) {});
    if (!done) return done;
  }
  return {};
}

void GpuBackend::place_rows() {
  const auto rows = written<u32>(at_.rows);
  const auto places = written<u32>(at_.places);
  const auto tables = written<u32>(at_.tables);
  std::size_t table = 0;
  u32 pages_max = 1;
  for (const StepSequence& sequence : step_.sequences) {
    const int end = sequence.position + sequence.count;
    const std::size_t pages = size((end + kPageTokens - 1) / kPageTokens);
    for (std::size_t i = 0; i < pages; ++i)
      tables[table + i] = static_cast<u32>(sequence.page_table[i]);
    for (int i = 0; i < sequence.count; ++i) {
      const std::size_t row = size(sequence.first + i);
      const int position = sequence.position + i;
      rows[2 * row] = number(position);
      rows[2 * row + 1] = static_cast<u32>(table);
      places[row] = tables[table + size(position / kPageTokens)] * kPageTokens +
                    number(position % kPageTokens);
    }
    table += pages;
    pages_max = std::max(pages_max, static_cast<u32>(pages));
  }
  pages_max_ = static_cast<int>(pages_max);
  // In powers of two, so that a sequence that grows repeats its list of operations.
  splits_ = 1;
  while (splits_ * number(split_pages_) < pages_max) splits_ *= 2;
  splits_ = std::min(splits_, number(kSplitsMax));
  const std::size_t table_words = std::min(std::bit_ceil(table), at_.tables.bytes / sizeof(u32));
  record_bytes_ = at_.tables.offset + table_words * sizeof(u32);
}

void GpuBackend::turn_rows() {
  const auto turns = written<float>(at_.turns);
  const auto rows = written<u32>(at_.rows);
  const std::size_t half = frequencies_.size();
  const double magnitude = static_cast<double>(shape_.rope_magnitude);
  for (std::size_t row = 0; row < size(rows_); ++row) {
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = rows[2 * row] * frequencies_[i];
      turns[2 * row * half + i] = static_cast<float>(magnitude * std::cos(angle));
      turns[(2 * row + 1) * half + i] = static_cast<float>(magnitude * std::sin(angle));
    }
  }
}

Result<void> GpuBackend::begin(const Step& step) {
  assert(well_formed(step, *this));
  if (auto checked = check_tokens(step, shape_.vocabulary); !checked) return checked;
  step_ = step;
  rows_ = static_cast<int>(step.tokens.size());
  operations_.clear();
  pages_->changed();
  std::ranges::copy(step.tokens, written<TokenId>(at_.tokens).begin());
  std::ranges::copy(step.logits_rows, written<int>(at_.logits_rows).begin());
  place_rows();
  // A table may name a page more than once, and so be longer than the device's pages.
  if (auto turned = turn_biases(pages_max_); !turned) return turned;
  turn_rows();
  copy({at_.record_in.buffer, 0, record_bytes_}, {at_.record.buffer, 0, record_bytes_});
  const GpuMatrix& table = weights_.token_embedding;
  for (const GpuMatrix::Part& part : table.parts) {
    add(Kernel::kEmbedRows, {number(rows_), 1, 1}, {at_.tokens, part.range, at_.x},
        EmbedSizes{table.layout, number(shape_.width), number(part.first),
                   number(part.first + part.rows), shape_.embedding_scale})
        .type = static_cast<u32>(table.type);
  }
  return {};
}

template <class Sizes>
Operation& GpuBackend::add(Kernel kernel, std::array<u32, 3> groups,
                           std::initializer_list<Range> operands, const Sizes& sizes) {
  Operation& operation = operations_.emplace_back();
  operation.kernel = kernel;
  operation.groups = groups;
  std::ranges::copy(operands, operation.operands.begin());
  // An operand that this step does not use stands for any memory.
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operation.operands[i].buffer == BufferId::kNone) operation.operands[i] = at_.all_rows;
  operation.set_sizes(sizes);
  return operation;
}

void GpuBackend::norm(const GpuNorm& norm, const Range& rows, int count) {
  add(Kernel::kNormRows, {number(count), 1, 1}, {rows, at_.x, norm.weight, norm.bias, at_.normed},
      NormSizes{number(shape_.width), norm.bias.bytes > 0 ? 1U : 0U, shape_.norm_epsilon});
}

void GpuBackend::multiply(std::initializer_list<Product> products, const Range& x, int rows,
                          Slots slots) {
  const bool quantized = std::ranges::any_of(
      products, [](const Product& each) { return is_quantized(each.matrix.type); });
  if (quantized) {
    const std::size_t inputs = size(rows) / slots.share;
    const std::size_t groups = inputs * size(products.begin()->matrix.cols) / 32;
    add(Kernel::kQuantizeRows, {groups_for(groups), 1, 1}, {x, at_.quants, at_.scales},
        QuantizeSizes{static_cast<u32>(groups)});
  }
  for (const Product& product : products)
    for (const GpuMatrix::Part& part : product.matrix.parts)
      multiply_part(product, part, x, rows, slots);
}

void GpuBackend::multiply_part(const Product& product, const GpuMatrix::Part& part, const Range& x,
                               int rows, Slots slots) {
  const GpuMatrix& matrix = product.matrix;
  const bool with_experts = slots.experts > 0;
  const bool many = rows > 1 && !with_experts;
  const u32 outputs = number(with_experts ? part.rows / slots.experts : part.rows);
  // Rows of the output: of the whole matrix, or of one expert.
  int stride = 0;
  for (const GpuMatrix::Part& each : matrix.parts) stride += each.rows;
  if (with_experts) stride /= slots.experts;
  const u32 tile = many ? kTokensOfTile : 1;
  Operation& operation =
      add(Kernel::kMatmul,
          {std::min(outputs, kMatmulRowsMax), (number(rows) + tile - 1) / tile,
           (outputs + kMatmulRowsMax - 1) / kMatmulRowsMax},
          {part.range, is_quantized(matrix.type) ? at_.quants : x, at_.scales, product.bias,
           at_.chosen, product.out},
          MatmulSizes{matrix.layout, number(matrix.cols), outputs, number(part.first),
                      number(stride), number(rows), product.add ? 1U : 0U,
                      product.bias.bytes > 0 ? 1U : 0U, number(slots.experts), slots.share});
  operation.type = static_cast<u32>(matrix.type);
  operation.many = many;
}

Result<void> GpuBackend::attention_input(int layer) {
  const GpuLayer& weights = weights_.layers[size(layer)];
  norm(weights.attention_norm, at_.all_rows, rows_);
  multiply({{weights.query, weights.query_bias, at_.q, false},
            {weights.key, adds_key_bias(weights) ? Range{} : weights.key_bias, at_.k, false},
            {weights.value, weights.value_bias, at_.v, false}},
           at_.normed, rows_);
  add(Kernel::kStoreRows, {number(rows_), number(shape_.heads + 2 * shape_.kv_heads), 1},
      {at_.q, at_.k, at_.v, at_.turns, weights.query_norm, weights.key_norm, kv_[size(layer)],
       at_.places},
      StoreSizes{number(shape_.heads), number(shape_.kv_heads), number(shape_.head_width),
                 static_cast<u32>(frequencies_.size()),
                 shape_.rope_pairs == RopePairs::kAdjacent ? 1U : 0U,
                 weights.query_norm.bytes > 0 ? 1U : 0U, weights.key_norm.bytes > 0 ? 1U : 0U,
                 shape_.norm_epsilon, shape_.score_scale()})
      .type = number(kv_type_);
  return {};
}

Result<void> GpuBackend::attention(int layer) {
  const u32 window = shape_.attention_window > 0 ? number(shape_.attention_window) : kEverything;
  const GpuLayer& weights = weights_.layers[size(layer)];
  const bool biased = adds_key_bias(weights);
  add(Kernel::kAttention, {number(rows_), number(shape_.heads), splits_},
      {at_.q, kv_[size(layer)], at_.tables, at_.rows, at_.records, weights.key_bias,
       at_.bias_turns},
      AttentionSizes{number(shape_.heads), number(shape_.kv_heads), number(shape_.head_width),
                     window, number(split_pages_), splits_,
                     biased ? static_cast<u32>(frequencies_.size()) : 0,
                     shape_.rope_pairs == RopePairs::kAdjacent ? 1U : 0U})
      .type = number(kv_type_);
  add(Kernel::kMerge, {number(rows_), number(shape_.heads), 1},
      {at_.records, at_.rows, at_.attended},
      MergeSizes{number(shape_.heads), number(shape_.head_width), number(split_pages_), splits_,
                 shape_.residual_scale});
  return {};
}

Result<void> GpuBackend::attention_output(int layer) {
  const GpuLayer& weights = weights_.layers[size(layer)];
  multiply({{weights.attention_output, weights.attention_output_bias, at_.x, true}}, at_.attended,
           rows_);
  return {};
}

Result<void> GpuBackend::feed_forward_input(int layer) {
  const GpuLayer& weights = weights_.layers[size(layer)];
  norm(weights.feed_forward_norm, at_.all_rows, rows_);
  if (shape_.experts > 0) {
    experts_input(weights);
    return {};
  }
  const bool gated = weights.gate.present();
  if (gated)
    multiply({{weights.gate, weights.gate_bias, at_.hidden, false},
              {weights.up, weights.up_bias, at_.up, false}},
             at_.normed, rows_);
  else
    multiply({{weights.up, weights.up_bias, at_.hidden, false}}, at_.normed, rows_);
  activate(gated, rows_);
  return {};
}

void GpuBackend::activate(bool gated, int rows) {
  const std::size_t count = size(rows) * size(shape_.feed_forward);
  add(Kernel::kActivate, {groups_for(count), 1, 1}, {at_.hidden, at_.up},
      ActivateSizes{static_cast<u32>(count), gated ? 1U : 0U,
                    shape_.activation == Activation::kGelu ? 1U : 0U, shape_.residual_scale});
}

Result<void> GpuBackend::feed_forward_output(int layer) {
  const GpuLayer& weights = weights_.layers[size(layer)];
  if (shape_.experts > 0)
    experts_output(weights);
  else
    multiply({{weights.down, weights.down_bias, at_.x, true}}, at_.hidden, rows_);
  const bool last = layer + 1 == shape_.layers;
  return last && step_.logits_rows.empty() ? run() : Result<void>();
}

void GpuBackend::experts_input(const GpuLayer& layer) {
  const u32 experts_used = number(shape_.experts_used);
  multiply({{layer.router, {}, at_.router_logits, false}}, at_.normed, rows_);
  add(Kernel::kRoute, {groups_for(size(rows_)), 1, 1},
      {at_.router_logits, at_.chosen, at_.expert_weights},
      RouteSizes{number(rows_), number(shape_.experts), experts_used});
  const int slots = rows_ * shape_.experts_used;
  multiply({{layer.gate, {}, at_.hidden, false}, {layer.up, {}, at_.up, false}}, at_.normed, slots,
           {shape_.experts, experts_used});
  activate(true, slots);
}

void GpuBackend::experts_output(const GpuLayer& layer) {
  multiply({{layer.down, {}, at_.expert_parts, false}}, at_.hidden, rows_ * shape_.experts_used,
           {shape_.experts, 1});
  add(Kernel::kCombine, {groups_for(size(rows_) * size(shape_.width)), 1, 1},
      {at_.expert_parts, at_.expert_weights, at_.x},
      CombineSizes{number(rows_), number(shape_.width), number(shape_.experts_used)});
}

Result<std::span<const float>> GpuBackend::logits() {
  const int rows = static_cast<int>(step_.logits_rows.size());
  const std::size_t count = size(rows) * size(shape_.vocabulary);
  const std::size_t bytes = count * sizeof(float);
  if (logits_.bytes < bytes) {
    auto larger = take(2 * count, Memory::kDevice);
    if (!larger) return tl::unexpected(std::move(larger).error());
    auto larger_out = take(2 * count, Memory::kHostReads);
    if (!larger_out) return tl::unexpected(std::move(larger_out).error());
    logits_ = *larger;
    logits_out_ = *larger_out;
  }
  norm(weights_.output_norm, at_.logits_rows, rows);
  multiply({{weights_.output, {}, logits_, false}}, at_.normed, rows);
  copy({logits_.buffer, 0, bytes}, {logits_out_.buffer, 0, bytes});
  if (auto done = run(); !done) return tl::unexpected(std::move(done).error());
  return mapped<const float>(logits_out_).first(count);
}

Result<void> GpuBackend::run() {
  Result<void> done = device_->run(operations_);
  operations_.clear();
  return done;
}

Result<void> GpuBackend::copy_page(PageIndex from, PageIndex to, int tokens) {
  assert(tokens >= 0 && tokens <= kPageTokens && from != to);
  if (tokens == 0) return {};
  pages_->changed(to);
  // The whole page: what lies behind its tokens is masked, and one copy a layer is cheaper than many.
  std::vector<Operation> copies(size(shape_.layers));
  for (std::size_t layer = 0; layer < copies.size(); ++layer) {
    copies[layer].operands[0] = pages_->range(layer, from);
    copies[layer].operands[1] = pages_->range(layer, to);
  }
  return device_->run(copies);
}

Result<void> GpuBackend::read_page(PageIndex page, std::span<std::byte> bytes) {
  if (bytes.size() != page_bytes())
    return fail(Fault::kBadInput, "a KV page is read into a buffer of another size");
  return pages_->read(page, bytes);
}

Result<void> GpuBackend::write_page(PageIndex page, std::span<const std::byte> bytes) {
  if (bytes.size() != page_bytes())
    return fail(Fault::kBadInput, "a KV page is written from a buffer of another size");
  return pages_->write(page, bytes);
}

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes >> 20U) + " MiB"; }

/// As many of the wanted pages as the device's operands and memory hold beside the weights.
Result<int> pages_that_fit(const GpuDevice& device, const ModelShape& shape,
                           const ModelWeights& weights, const GpuOptions& options) {
  const DeviceLimits limits = device.limits();
  const std::size_t page_bytes = page_bytes_of(shape, options.kv_type);
  // Activations: a few values of every width for each token, and the records of attention.
  const std::size_t row_floats =
      size(8 * shape.width + 4 * shape.heads * shape.head_width) +
      3 * size(shape.feed_forward) * size(std::max(shape.experts_used, 1)) +
      size(shape.heads * kSplitsMax) * size(shape.head_width + 2);
  const std::size_t fixed = GpuWeights::bytes(weights) +
                            size(std::max(1, options.step_tokens_max)) * row_floats * sizeof(float);
  const std::size_t rest = limits.memory_bytes > fixed ? limits.memory_bytes - fixed : 0;
  const std::size_t pages =
      std::min({size(std::max(0, options.page_count)), rest / page_bytes,
                limits.range_bytes_max / layer_page_bytes(shape, options.kv_type)});
  const std::size_t wanted = std::min(size(std::max(1, options.page_count)), size(kWindowPagesMin));
  if (pages >= wanted) return static_cast<int>(pages);
  return fail(Fault::kNoMemory,
              device.name() + " has " + mebibytes(limits.memory_bytes) + "; the model takes " +
                  mebibytes(fixed) + " and a window of KV " + mebibytes(wanted * page_bytes),
              "choose a smaller model or quantization");
}

}  // namespace

Result<std::unique_ptr<Backend>> make_gpu_backend(std::unique_ptr<GpuDevice> device,
                                                  const ModelShape& shape,
                                                  const ModelWeights& weights,
                                                  const GpuOptions& options) {
  if (shape.head_width > kHeadWidthMax || shape.head_width % 2 != 0)
    return fail(Fault::kUnsupported, "heads of " + std::to_string(shape.head_width) +
                                         " elements are not supported on a GPU");
  const auto pages = pages_that_fit(*device, shape, weights, options);
  if (!pages) return tl::unexpected(pages.error());
  auto backend = std::make_unique<GpuBackend>(
      std::move(device), shape, GpuOptions{*pages, options.step_tokens_max, options.kv_type});
  if (auto opened = backend->open(weights); !opened)
    return tl::unexpected(std::move(opened).error());
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace efimd::engine::gpu
