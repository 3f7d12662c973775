#include "engine/backend/gpu/gpu_backend.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/gpu/gpu_attention.h"
#include "engine/backend/gpu/gpu_fit.h"
#include "engine/backend/gpu/gpu_fused.h"
#include "engine/backend/gpu/gpu_kv.h"
#include "engine/backend/gpu/gpu_warm_up.h"
#include "engine/backend/gpu/gpu_weights.h"
#include "engine/backend/gpu/packed_weights.h"
#include "engine/backend/gpu/page_transfer.h"
#include "engine/backend/gpu/step_buffers.h"
#include "engine/backend/gpu/step_record.h"
#include "engine/backend/rope_frequencies.h"
#include "engine/backend/size.h"

namespace efimd::engine::gpu {

namespace {

using namespace kernels;

constexpr u32 kEverything = u32{1} << 30U;
constexpr int kHeadWidthMax = 256;

u32 groups_for(std::size_t elements, u32 of_group = kElementThreads) {
  return static_cast<u32>((elements + of_group - 1) / of_group);
}

Kv kv_form(KvType type) { return type == KvType::kQ8 ? Kv::kQ8 : Kv::kF16; }

/// How rows of a product go to experts.
struct Slots {
  int experts = 0;  ///< 0: none
  u32 share = 1;    ///< slots that read the same input row
};

/// What becomes of what an output held.
enum class Sum { kIsAll, kAdds };

class GpuBackend final : public Backend {
 public:
  GpuBackend(std::unique_ptr<GpuDevice> device, const ModelShape& shape, const GpuOptions& options)
      : device_(std::move(device)),
        shape_(shape),
        kv_type_(options.kv_type),
        with_output_(options.with_output),
        step_ms_max_(options.step_ms_max),
        page_count_(options.page_count),
        step_tokens_max_(std::max(1, options.step_tokens_max)),
        split_pages_(split_pages_of(shape)) {}

  Result<void> open(const ModelWeights& weights);

  std::string kind() const override { return device_->kind(); }
  std::string name() const override { return device_->name(); }
  int step_tokens_max() const override { return step_tokens_max_; }
  int page_count() const override { return page_count_; }
  std::size_t page_bytes() const override { return page_bytes_of(shape_, kv_type_); }
  std::size_t resident_bytes() const override { return size(page_count_) * page_bytes(); }

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
  std::string page_format() const override {
    return std::string(kv_type_name(kv_type_)) + ", [Hk][2][P][E]" +
           (kv_type_ == KvType::kQ8 ? " and scales of 32" : "") + ", splits of " +
           std::to_string(split_pages_) + " pages" +
           (with_tiles(device_->limits(), kv_form(kv_type_), number(shape_.head_width))
                ? " in tiles"
                : "") +
           ", " + kind() + ", " + name();
  }
  void expect_read(PageIndex page) override { pages_->expect(page); }
  Result<void> read_page(PageIndex page, std::span<std::byte> bytes) override;
  Result<void> write_page(PageIndex page, std::span<const std::byte> bytes) override;

 private:
  Result<void> allocate();
  /// Makes bias_turns_ reach so many pages of a sequence, where a layer's keys are kept without
  /// their bias.
  Result<void> turn_biases(int pages);
  /// Makes `memory` hold so many bytes; what was in it is lost.
  Result<void> grow(Range& memory, std::size_t bytes, Memory where);
  /// Says the step to the device.
  Result<void> prepare(const Step& step);
  /// Copies `from` to memory that the host reads, after all that was added, and runs it all.
  Result<std::span<const float>> run_and_read(const Range& from);
  void copy(const Range& from, const Range& to);

  template <class Sizes>
  Operation& add(Kernel kernel, std::array<u32, 3> groups, std::initializer_list<Range> operands,
                 const Sizes& sizes);
  // Each writes the forms that `next` reads, of which f32 goes to a buffer of its own, and quants
  // to at_.quants.
  void norm(const GpuNorm& norm, const Range& rows, int count, Forms next);
  void activate(const GpuLayer& layer, int rows);
  // A layer's norm, product and what follows it as one.
  void norm_heads(const GpuLayer& layer, const Range& kv);
  void norm_gates(const GpuLayer& layer);
  /// out = or += matrix x (+ bias), for rows that the operation in front has written.
  void multiply(const GpuMatrix& matrix, const Range& bias, const Range& x, const Range& out,
                Sum sum, int rows, Slots slots = {});
  void experts_input(const GpuLayer& layer);
  void experts_output(const GpuLayer& layer);
  Result<void> run();

  const std::unique_ptr<GpuDevice> device_;
  const ModelShape shape_;
  const KvType kv_type_;
  const WithOutput with_output_;
  const double step_ms_max_;
  const int page_count_;
  int step_tokens_max_;  ///< buffers may have room for more
  const int split_pages_;
  GpuWeights weights_;
  std::vector<double> frequencies_;
  std::vector<Range> kv_;              ///< [L]
  std::optional<PageTransfer> pages_;  ///< after allocate()
  StepBuffers at_;
  StepRecord record_;
  Range logits_, in_, out_;  ///< grow; the last two are what the host writes and reads
  Range bias_turns_;         ///< none where attention adds no key's bias
  int bias_pages_ = 0;       ///< that bias_turns_ reaches

  Step step_;
  int rows_ = 0;
  u32 splits_ = 1;
  std::vector<Operation> operations_;
};

Result<void> GpuBackend::allocate() {
  if (auto taken = at_.allocate(*device_, shape_, step_tokens_max_); !taken) return taken;
  const std::size_t bytes = layer_page_bytes(shape_, kv_type_);
  for (int layer = 0; layer < shape_.layers; ++layer) {
    auto pages = take(*device_, size(page_count_) * bytes / sizeof(float), Memory::kDevice);
    if (!pages) return tl::unexpected(std::move(pages).error());
    kv_.push_back(*pages);
  }
  pages_.emplace(*device_, kv_, bytes);
  if (auto staged = pages_->allocate(); !staged) return staged;
  return record_.allocate(*device_, shape_, step_tokens_max_, page_count_);
}

void GpuBackend::copy(const Range& from, const Range& to) {
  Operation& operation = operations_.emplace_back();
  operation.operands[0] = from;
  operation.operands[1] = to;
}

Result<void> GpuBackend::open(const ModelWeights& weights) {
  auto uploaded =
      GpuWeights::upload(*device_, shape_, weights, kv_type_ == KvType::kQ8, with_output_);
  if (!uploaded) return tl::unexpected(std::move(uploaded).error());
  weights_ = *std::move(uploaded);
  frequencies_ = rope_frequencies(shape_, weights_.rope_factors);
  if (auto allocated = allocate(); !allocated) return allocated;
  if (auto turned = turn_biases(page_count_); !turned) return turned;
  WarmUp warm_up(*this, shape_.layers, with_output_);
  if (auto warm = warm_up.run(split_pages_ * kPageTokens); !warm) return warm;
  if (step_ms_max_ == 0) return {};
  return warm_up.tokens_within(step_ms_max_).map([&](int tokens) { step_tokens_max_ = tokens; });
}

Result<void> GpuBackend::turn_biases(int pages) {
  if (pages <= bias_pages_ || std::ranges::none_of(weights_.layers, [&](const GpuLayer& layer) {
        return layer.key_bias.bytes > 0;
      }))
    return {};
  const std::vector<float> turns = bias_turns(shape_, frequencies_, pages);
  auto taken = take(*device_, turns.size(), Memory::kDevice);
  if (!taken) return tl::unexpected(std::move(taken).error());
  bias_turns_ = *taken;
  if (auto sent = pages_->send(*taken, std::as_bytes(std::span(turns))); !sent) return sent;
  bias_pages_ = pages;
  return {};
}

Result<void> GpuBackend::prepare(const Step& step) {
  assert(well_formed(step, *this));
  if (auto checked = check_tokens(step, shape_.vocabulary); !checked) return checked;
  step_ = step;
  rows_ = static_cast<int>(step.tokens.size());
  operations_.clear();
  pages_->changed();
  record_.write(step, shape_, frequencies_);
  splits_ =
      splits_of(size(rows_), shape_, record_.pages_max(), attention_records(step_tokens_max_));
  // A table may name a page more than once, and so be longer than the device's pages.
  if (auto turned = turn_biases(record_.pages_max()); !turned) return turned;
  operations_.push_back(record_.copy());
  return {};
}

Result<void> GpuBackend::begin_behind(const Step& step, std::span<const float> x) {
  if (auto prepared = prepare(step); !prepared) return prepared;
  assert(x.size() == size(rows_) * size(shape_.width));
  if (auto grown = grow(in_, at_.x.bytes, Memory::kHostWrites); !grown) return grown;
  std::ranges::copy(std::as_bytes(x), device_->mapped(in_.buffer).begin());
  copy({in_.buffer, 0, x.size_bytes()}, {at_.x.buffer, 0, x.size_bytes()});
  return {};
}

Result<void> GpuBackend::begin(const Step& step) {
  if (auto prepared = prepare(step); !prepared) return prepared;
  const GpuMatrix& table = weights_.token_embedding;
  for (const GpuMatrix::Part& part : table.parts) {
    add(Kernel::kEmbedRows, {number(rows_), 1, 1}, {record_.tokens(), part.range, at_.x},
        EmbedSizes{part.layout, number(shape_.width), number(part.first),
                   number(part.first + part.rows), shape_.embedding_scale})
        .type = static_cast<u32>(part.type);
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
    if (operation.operands[i].buffer == BufferId::kNone) operation.operands[i] = record_.all_rows();
  operation.set_sizes(sizes);
  return operation;
}

void GpuBackend::norm(const GpuNorm& norm, const Range& rows, int count, Forms next) {
  add(Kernel::kNormRows, {number(count), 1, 1},
      {rows, at_.x, norm.weight, norm.bias, at_.normed, at_.quants, at_.scales, at_.halves},
      NormSizes{number(shape_.width), norm.bias.bytes > 0 ? 1U : 0U, shape_.norm_epsilon, next});
}

void GpuBackend::multiply(const GpuMatrix& matrix, const Range& bias, const Range& x,
                          const Range& out, Sum sum, int rows, Slots slots) {
  const bool with_experts = slots.experts > 0;
  const bool many = rows > 1 && !with_experts;
  for (const GpuMatrix::Part& part : matrix.parts) {
    const u32 outputs = number(with_experts ? part.rows / slots.experts : part.rows);
    const std::array<u32, 3> groups = {std::min(outputs, kMatmulRowsMax),
                                       many ? groups_for(size(rows), kTokensOfTile) : number(rows),
                                       (outputs + kMatmulRowsMax - 1) / kMatmulRowsMax};
    const MatmulSizes sizes{part.layout,
                            number(matrix.cols),
                            outputs,
                            number(part.first),
                            number(matrix.rows),
                            number(rows),
                            sum == Sum::kAdds ? 1U : 0U,
                            bias.bytes > 0 ? 1U : 0U,
                            number(slots.experts),
                            slots.share};
    const Range& input = is_quantized(part.type) ? at_.quants : x;
    Operation& operation = part.halves
                               ? add(Kernel::kMatmulHalves, groups,
                                     {part.range, at_.halves, bias, at_.chosen, out}, sizes)
                               : add(Kernel::kMatmul, groups,
                                     {part.range, input, at_.scales, bias, at_.chosen, out}, sizes);
    operation.type = static_cast<u32>(part.type);
    operation.many = many;
  }
}

Result<void> GpuBackend::attention_input(int layer) {
  const GpuLayer& weights = weights_.layers[size(layer)];
  if (with_norm_heads(device_->limits(), shape_, weights, kv_form(kv_type_), rows_)) {
    norm_heads(weights, kv_[size(layer)]);
    return {};
  }
  norm(weights.attention_norm, record_.all_rows(), rows_, weights.qkv.inputs());
  multiply(weights.qkv, weights.qkv_bias, at_.normed, at_.qkv, Sum::kIsAll, rows_);
  add(Kernel::kStoreRows, {number(rows_), number(shape_.heads + 2 * shape_.kv_heads), 1},
      {at_.qkv, record_.turns(), weights.query_norm, weights.key_norm, kv_[size(layer)],
       record_.places()},
      StoreSizes{number(shape_.heads), number(shape_.kv_heads), number(shape_.head_width),
                 static_cast<u32>(frequencies_.size()),
                 shape_.rope_pairs == RopePairs::kAdjacent ? 1U : 0U,
                 weights.query_norm.bytes > 0 ? 1U : 0U, weights.key_norm.bytes > 0 ? 1U : 0U,
                 shape_.norm_epsilon, shape_.score_scale()})
      .type = static_cast<u32>(kv_form(kv_type_));
  return {};
}

void GpuBackend::norm_heads(const GpuLayer& layer, const Range& kv) {
  for (const GpuMatrix::Part& part : layer.qkv.parts)
    set_fused(add(Kernel::kNormHeads, {},
                  {part.range, at_.x, layer.attention_norm.weight, layer.qkv_bias, at_.qkv,
                   record_.turns(), kv, record_.places()},
                  heads_sizes(shape_, layer, part, rows_, static_cast<u32>(frequencies_.size()))),
              part, rows_);
}

void GpuBackend::norm_gates(const GpuLayer& layer) {
  const GpuMatrix::Part& part = layer.gate_up.parts.front();
  set_fused(add(Kernel::kNormGates, {},
                {part.range, at_.x, layer.feed_forward_norm.weight, layer.gate_up_bias, at_.hidden,
                 at_.quants, at_.scales, at_.halves},
                gates_sizes(shape_, layer, rows_)),
            part, rows_);
}

Result<void> GpuBackend::attention(int layer) {
  const u32 window = shape_.attention_window > 0 ? number(shape_.attention_window) : kEverything;
  const GpuLayer& weights = weights_.layers[size(layer)];
  const AttentionSizes sizes{number(shape_.heads),
                             number(shape_.kv_heads),
                             number(shape_.head_width),
                             window,
                             number(split_pages_),
                             splits_,
                             weights.key_bias.bytes > 0 ? static_cast<u32>(frequencies_.size()) : 0,
                             shape_.rope_pairs == RopePairs::kAdjacent ? 1U : 0U,
                             number(rows_)};
  Operation& operation = add(Kernel::kAttention, {},
                             {at_.qkv, kv_[size(layer)], record_.tables(), record_.rows(),
                              at_.records, weights.key_bias, bias_turns_},
                             sizes);
  DeviceLimits limits = device_->limits();
  limits.shared_attention_min = shared_attention_min(limits, size(rows_), record_.pages_max());
  set_attention(operation, kv_form(kv_type_), sizes, limits,
                static_cast<int>(step_.sequences.size()));
  const int width = shape_.heads * shape_.head_width;
  add(Kernel::kMerge, {number(rows_), groups_for(size(width), kFormElements), 1},
      {at_.records, record_.rows(), at_.attended, at_.quants, at_.scales, at_.halves},
      MergeSizes{number(shape_.heads), number(shape_.head_width), number(split_pages_), splits_,
                 shape_.residual_scale, weights.attention_output.inputs()});
  return {};
}

Result<void> GpuBackend::attention_output(int layer) {
  const GpuLayer& weights = weights_.layers[size(layer)];
  multiply(weights.attention_output, weights.attention_output_bias, at_.attended, at_.x, Sum::kAdds,
           rows_);
  return {};
}

Result<void> GpuBackend::feed_forward_input(int layer) {
  const GpuLayer& weights = weights_.layers[size(layer)];
  if (shape_.experts > 0) {
    experts_input(weights);
    return {};
  }
  if (with_norm_gates(device_->limits(), shape_, weights, rows_)) {
    norm_gates(weights);
    return {};
  }
  norm(weights.feed_forward_norm, record_.all_rows(), rows_, weights.gate_up.inputs());
  multiply(weights.gate_up, weights.gate_up_bias, at_.normed, at_.gate_up, Sum::kIsAll, rows_);
  activate(weights, rows_);
  return {};
}

void GpuBackend::activate(const GpuLayer& layer, int rows) {
  add(Kernel::kActivate, {groups_for(size(shape_.feed_forward), kFormElements), number(rows), 1},
      {at_.gate_up, at_.hidden, at_.quants, at_.scales, at_.halves},
      ActivateSizes{number(shape_.feed_forward), layer.gated ? 1U : 0U,
                    shape_.activation == Activation::kGelu ? 1U : 0U, shape_.residual_scale,
                    layer.down.inputs()});
}

Result<void> GpuBackend::feed_forward_output(int layer) {
  const GpuLayer& weights = weights_.layers[size(layer)];
  if (shape_.experts > 0)
    experts_output(weights);
  else
    multiply(weights.down, weights.down_bias, at_.hidden, at_.x, Sum::kAdds, rows_);
  const bool ends_here =
      layer + 1 == shape_.layers && step_.logits_rows.empty() && with_output_ == WithOutput::kYes;
  return ends_here ? run() : Result<void>();
}

void GpuBackend::experts_input(const GpuLayer& layer) {
  const u32 experts_used = number(shape_.experts_used);
  const Forms of_router = layer.router.inputs(), of_experts = layer.gate_up.inputs();
  norm(layer.feed_forward_norm, record_.all_rows(), rows_,
       {of_router.floats | of_experts.floats, of_router.quants | of_experts.quants,
        std::max(of_router.halves, of_experts.halves)});
  multiply(layer.router, {}, at_.normed, at_.router_logits, Sum::kIsAll, rows_);
  add(Kernel::kRoute, {groups_for(size(rows_)), 1, 1},
      {at_.router_logits, at_.chosen, at_.expert_weights},
      RouteSizes{number(rows_), number(shape_.experts), experts_used});
  const int slots = rows_ * shape_.experts_used;
  multiply(layer.gate_up, {}, at_.normed, at_.gate_up, Sum::kIsAll, slots,
           {shape_.experts, experts_used});
  activate(layer, slots);
}

void GpuBackend::experts_output(const GpuLayer& layer) {
  multiply(layer.down, {}, at_.hidden, at_.expert_parts, Sum::kIsAll, rows_ * shape_.experts_used,
           {shape_.experts, 1});
  add(Kernel::kCombine, {groups_for(size(rows_) * size(shape_.width)), 1, 1},
      {at_.expert_parts, at_.expert_weights, at_.x},
      CombineSizes{number(rows_), number(shape_.width), number(shape_.experts_used)});
}

Result<std::span<const float>> GpuBackend::logits() {
  const int rows = static_cast<int>(step_.logits_rows.size());
  const std::size_t bytes = size(rows) * size(shape_.vocabulary) * sizeof(float);
  if (auto grown = grow(logits_, bytes, Memory::kDevice); !grown)
    return tl::unexpected(std::move(grown).error());
  norm(weights_.output_norm, record_.logits_rows(), rows, weights_.output.inputs());
  multiply(weights_.output, {}, at_.normed, logits_, Sum::kIsAll, rows);
  return run_and_read({logits_.buffer, 0, bytes});
}

Result<std::span<const float>> GpuBackend::residual() {
  return run_and_read({at_.x.buffer, 0, size(rows_) * size(shape_.width) * sizeof(float)});
}

Result<std::span<const float>> GpuBackend::run_and_read(const Range& from) {
  if (auto grown = grow(out_, from.bytes, Memory::kHostReads); !grown)
    return tl::unexpected(std::move(grown).error());
  copy(from, {out_.buffer, 0, from.bytes});
  if (auto done = run(); !done) return tl::unexpected(std::move(done).error());
  return std::span(reinterpret_cast<const float*>(device_->mapped(out_.buffer).data()),
                   from.bytes / sizeof(float));
}

Result<void> GpuBackend::grow(Range& memory, std::size_t bytes, Memory where) {
  if (memory.bytes >= bytes) return {};
  const auto larger = take(*device_, 2 * bytes / sizeof(float), where);
  if (!larger) return tl::unexpected(larger.error());
  memory = *larger;
  return {};
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
  // The whole page: what lies after its tokens is masked, and one copy a layer is cheaper than
  // many.
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
  auto backend =
      std::make_unique<GpuBackend>(std::move(device), shape,
                                   GpuOptions{*pages, options.step_tokens_max, options.kv_type,
                                              options.with_output, options.step_ms_max});
  if (auto opened = backend->open(weights); !opened)
    return tl::unexpected(std::move(opened).error());
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace efimd::engine::gpu
