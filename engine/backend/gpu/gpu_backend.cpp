#include "engine/backend/gpu/gpu_backend.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/gpu/gpu_fit.h"
#include "engine/backend/gpu/gpu_kv.h"
#include "engine/backend/gpu/gpu_warm_up.h"
#include "engine/backend/gpu/gpu_weights.h"
#include "engine/backend/gpu/page_transfer.h"
#include "engine/backend/gpu/step_buffers.h"
#include "engine/backend/gpu/step_operations.h"
#include "engine/backend/rope_frequencies.h"
#include "engine/backend/size.h"

namespace efimd::engine::gpu {

namespace {

constexpr int kHeadWidthMax = 256;

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
        operations_(*device_, shape_, options.kv_type) {}

  Result<void> open(const ModelWeights& weights);

  std::string kind() const override { return device_->kind(); }
  std::string name() const override { return device_->name(); }
  int step_tokens_max() const override { return step_tokens_max_; }
  int page_count() const override { return page_count_; }
  std::size_t page_bytes() const override { return page_bytes_of(shape_, kv_type_); }
  std::size_t resident_bytes() const override { return size(page_count_) * page_bytes(); }

  Result<void> begin(const Step& step) override;
  Result<void> begin_behind(const Step& step, std::span<const float> x) override;
  Result<void> attention_input(int layer) override {
    operations_.attention_input(weights_.layers[size(layer)], kv_[size(layer)]);
    return {};
  }
  Result<void> attention(int layer) override {
    operations_.attention(weights_.layers[size(layer)], kv_[size(layer)]);
    return {};
  }
  Result<void> attention_output(int layer) override {
    operations_.attention_output(weights_.layers[size(layer)]);
    return {};
  }
  Result<void> feed_forward_input(int layer) override {
    operations_.feed_forward_input(weights_.layers[size(layer)]);
    return {};
  }
  Result<void> feed_forward_output(int layer) override;
  Result<std::span<const float>> logits() override;
  Result<std::span<const float>> residual() override;
  Result<void> copy_page(PageIndex from, PageIndex to, int tokens) override;
  std::string page_format() const override {
    return std::string(kv_type_name(kv_type_)) + ", [Hk][2][P][E]" +
           (kv_type_ == KvType::kQ8 ? " and scales of 32" : "") + ", splits of " +
           std::to_string(operations_.split_pages()) + " pages" + operations_.variants() + ", " +
           kind() + ", " + name();
  }
  void expect_read(PageIndex page) override { pages_->expect(page); }
  Result<void> read_page(PageIndex page, std::span<std::byte> bytes) override;
  Result<void> write_page(PageIndex page, std::span<const std::byte> bytes) override;

 private:
  Result<void> allocate();
  /// Makes bias_rope_table_ reach so many pages of a sequence, if a layer keeps keys without their
  /// bias.
  Result<void> extend_bias_rope_table(int pages);
  /// Makes `memory` hold so many bytes; what was in it is lost.
  Result<void> grow(Range& memory, std::size_t bytes, Memory where);
  /// Says the step to the device.
  Result<void> prepare(const Step& step);
  /// Adds a copy of `from` to memory that the host reads, and runs all that was added.
  Result<std::span<const float>> run_and_read(const Range& from);
  Result<void> run();

  const std::unique_ptr<GpuDevice> device_;
  const ModelShape shape_;
  const KvType kv_type_;
  const WithOutput with_output_;
  const double step_ms_max_;
  const int page_count_;
  int step_tokens_max_;  ///< buffers may have room for more
  GpuWeights weights_;
  std::vector<double> frequencies_;
  std::vector<Range> kv_;              ///< [L]
  std::optional<PageTransfer> pages_;  ///< after allocate()
  StepOperations operations_;
  Range logits_, in_, out_;  ///< grow; the last two are what the host writes and reads
  Range bias_rope_table_;    ///< none where attention adds no key's bias
  int bias_pages_ = 0;       ///< that bias_rope_table_ reaches

  Step step_;
};

Result<void> GpuBackend::allocate() {
  if (auto taken = operations_.allocate(*device_, step_tokens_max_, page_count_); !taken)
    return taken;
  const std::size_t bytes = layer_page_bytes(shape_, kv_type_);
  for (int layer = 0; layer < shape_.layers; ++layer) {
    auto pages = take(*device_, size(page_count_) * bytes / sizeof(float), Memory::kDevice);
    if (!pages) return tl::unexpected(std::move(pages).error());
    kv_.push_back(*pages);
  }
  pages_.emplace(*device_, kv_, bytes);
  return pages_->allocate();
}

Result<void> GpuBackend::open(const ModelWeights& weights) {
  auto uploaded =
      GpuWeights::upload(*device_, shape_, weights, kv_type_ == KvType::kQ8, with_output_);
  if (!uploaded) return tl::unexpected(std::move(uploaded).error());
  weights_ = *std::move(uploaded);
  frequencies_ = rope_frequencies(shape_, weights_.rope_factors);
  if (auto allocated = allocate(); !allocated) return allocated;
  if (auto extended = extend_bias_rope_table(page_count_); !extended) return extended;
  WarmUp warm_up(*this, shape_.layers, with_output_);
  if (auto warm = warm_up.run(operations_.split_pages() * kPageTokens); !warm) return warm;
  if (step_ms_max_ == 0) return {};
  return warm_up.tokens_within(step_ms_max_).map([&](int tokens) {
    step_tokens_max_ = tokens;
    operations_.lower_tokens_max(tokens);
  });
}

Result<void> GpuBackend::extend_bias_rope_table(int pages) {
  if (pages <= bias_pages_ || std::ranges::none_of(weights_.layers, [&](const GpuLayer& layer) {
        return layer.key_bias.bytes > 0;
      }))
    return {};
  const std::vector<float> rope_table = bias_rope_table(shape_, frequencies_, pages);
  auto taken = take(*device_, rope_table.size(), Memory::kDevice);
  if (!taken) return tl::unexpected(std::move(taken).error());
  bias_rope_table_ = *taken;
  if (auto sent = pages_->send(*taken, std::as_bytes(std::span(rope_table))); !sent) return sent;
  bias_pages_ = pages;
  return {};
}

Result<void> GpuBackend::prepare(const Step& step) {
  assert(well_formed(step, *this));
  if (auto checked = check_tokens(step, shape_.vocabulary); !checked) return checked;
  step_ = step;
  pages_->changed();
  operations_.begin(step, frequencies_);
  // A table may name a page more than once, and so be longer than the device's pages.
  if (auto extended = extend_bias_rope_table(operations_.pages_max()); !extended) return extended;
  operations_.send_record(bias_rope_table_);
  return {};
}

Result<void> GpuBackend::begin_behind(const Step& step, std::span<const float> x) {
  if (auto prepared = prepare(step); !prepared) return prepared;
  assert(x.size() == size(operations_.rows()) * size(shape_.width));
  const Range& residual = operations_.x();
  if (auto grown = grow(in_, residual.bytes, Memory::kHostWrites); !grown) return grown;
  std::ranges::copy(std::as_bytes(x), device_->mapped(in_.buffer).begin());
  operations_.copy({in_.buffer, 0, x.size_bytes()}, {residual.buffer, 0, x.size_bytes()});
  return {};
}

Result<void> GpuBackend::begin(const Step& step) {
  if (auto prepared = prepare(step); !prepared) return prepared;
  operations_.embed(weights_.token_embedding);
  return {};
}

Result<void> GpuBackend::feed_forward_output(int layer) {
  operations_.feed_forward_output(weights_.layers[size(layer)]);
  const bool ends_here =
      layer + 1 == shape_.layers && step_.logits_rows.empty() && with_output_ == WithOutput::kYes;
  return ends_here ? run() : Result<void>();
}

Result<std::span<const float>> GpuBackend::logits() {
  const std::size_t bytes = step_.logits_rows.size() * size(shape_.vocabulary) * sizeof(float);
  if (auto grown = grow(logits_, bytes, Memory::kDevice); !grown)
    return tl::unexpected(std::move(grown).error());
  operations_.logits(weights_, logits_);
  return run_and_read({logits_.buffer, 0, bytes});
}

Result<std::span<const float>> GpuBackend::residual() {
  return run_and_read(
      {operations_.x().buffer, 0, size(operations_.rows()) * size(shape_.width) * sizeof(float)});
}

Result<std::span<const float>> GpuBackend::run_and_read(const Range& from) {
  if (auto grown = grow(out_, from.bytes, Memory::kHostReads); !grown)
    return tl::unexpected(std::move(grown).error());
  operations_.copy(from, {out_.buffer, 0, from.bytes});
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
  Result<void> done = device_->run(operations_.list());
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
