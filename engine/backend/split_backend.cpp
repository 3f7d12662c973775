#include "engine/backend/split_backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/backend/device_check.h"
#include "engine/backend/gpu/gpu_fit.h"

namespace efimd::engine {

namespace {

class SplitBackend final : public Backend {
 public:
  SplitBackend(std::unique_ptr<Backend> first, std::unique_ptr<Backend> second, int layers_of_first,
               int layers)
      : first_(std::move(first)),
        second_(std::move(second)),
        layers_of_first_(layers_of_first),
        layers_(layers) {}

  std::string kind() const override { return first_->kind(); }
  std::string name() const override {
    return first_->name() + "; " + std::to_string(layers_of_first_) + " of " +
           std::to_string(layers_) + " layers, the others on " + second_->name();
  }
  int step_tokens_max() const override {
    return std::min(first_->step_tokens_max(), second_->step_tokens_max());
  }
  int page_count() const override { return std::min(first_->page_count(), second_->page_count()); }
  std::size_t page_bytes() const override { return first_->page_bytes() + second_->page_bytes(); }
  std::size_t resident_bytes() const override {
    return first_->resident_bytes() + second_->resident_bytes();
  }

  Result<void> begin(const Step& step) override {
    step_ = step;
    return first_->begin(step);
  }
  Result<void> begin_behind(const Step& step, std::span<const float> x) override {
    step_ = step;
    return first_->begin_behind(step, x);
  }
  Result<void> attention_input(int layer) override {
    if (layer == layers_of_first_)
      if (auto handed = hand_over(); !handed) return handed;
    return of(layer).attention_input(in_part(layer));
  }
  Result<void> attention(int layer) override { return of(layer).attention(in_part(layer)); }
  Result<void> attention_output(int layer) override {
    return of(layer).attention_output(in_part(layer));
  }
  Result<void> feed_forward_input(int layer) override {
    return of(layer).feed_forward_input(in_part(layer));
  }
  Result<void> feed_forward_output(int layer) override {
    return of(layer).feed_forward_output(in_part(layer));
  }
  Result<std::span<const float>> logits() override { return second_->logits(); }
  Result<std::span<const float>> residual() override { return second_->residual(); }

  Result<void> copy_page(PageIndex from, PageIndex to, int tokens) override {
    return first_->copy_page(from, to, tokens).and_then([&] {
      return second_->copy_page(from, to, tokens);
    });
  }
  std::string page_format() const override {
    return std::to_string(layers_of_first_) + " layers: " + first_->page_format() +
           "; the others: " + second_->page_format();
  }
  void expect_read(PageIndex page) override {
    first_->expect_read(page);
    second_->expect_read(page);
  }
  Result<void> read_page(PageIndex page, std::span<std::byte> bytes) override {
    if (auto fitting = check(bytes.size()); !fitting) return fitting;
    return first_->read_page(page, bytes.first(first_->page_bytes())).and_then([&] {
      return second_->read_page(page, bytes.subspan(first_->page_bytes()));
    });
  }
  Result<void> write_page(PageIndex page, std::span<const std::byte> bytes) override {
    if (auto fitting = check(bytes.size()); !fitting) return fitting;
    return first_->write_page(page, bytes.first(first_->page_bytes())).and_then([&] {
      return second_->write_page(page, bytes.subspan(first_->page_bytes()));
    });
  }
  void overwrite_activations() override {
    first_->overwrite_activations();
    second_->overwrite_activations();
  }

 private:
  Backend& of(int layer) { return layer < layers_of_first_ ? *first_ : *second_; }
  int in_part(int layer) const {
    return layer < layers_of_first_ ? layer : layer - layers_of_first_;
  }
  Result<void> hand_over() {
    const auto x = first_->residual();
    if (!x) return tl::unexpected(x.error());
    return second_->begin_behind(step_, *x);
  }
  Result<void> check(std::size_t bytes) const {
    if (bytes == page_bytes()) return {};
    return fail(Fault::kBadInput, "a KV page is moved through a buffer of another size");
  }

  const std::unique_ptr<Backend> first_, second_;
  const int layers_of_first_, layers_;
  Step step_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_split_backend(
    std::unique_ptr<gpu::GpuDevice> device, const ModelShape& shape, const ModelWeights& weights,
    const gpu::GpuOptions& of_gpu, const CpuOptions& of_cpu, std::shared_ptr<const Model> model) {
  const int layers = gpu::layers_that_fit(device->limits(), shape, weights, of_gpu);
  if (layers == 0)
    return fail(Fault::kNoMemory, device->name() + " lacks the memory for one layer of the model",
                "choose a smaller model or quantization");
  ModelShape front = shape, back = shape;
  front.layers = layers, back.layers = shape.layers - layers;
  ModelWeights of_front = weights, of_back = weights;
  of_front.layers.resize(static_cast<std::size_t>(layers));
  of_back.layers.erase(of_back.layers.begin(), of_back.layers.begin() + layers);

  gpu::GpuOptions gpu_options = of_gpu;
  gpu_options.with_output = gpu::WithOutput::kNo;
  auto first = gpu::make_gpu_backend(std::move(device), front, of_front, gpu_options);
  if (!first) return first;
  if (auto good = check_device(**first, front, of_front, of_cpu, gpu::WithOutput::kNo); !good)
    return tl::unexpected(std::move(good).error());
  CpuOptions cpu_options = of_cpu;
  cpu_options.page_count = (*first)->page_count();
  cpu_options.step_tokens_max = (*first)->step_tokens_max();
  auto second = make_cpu_backend(back, of_back, cpu_options, std::move(model));
  if (!second) return second;
  return std::unique_ptr<Backend>(
      std::make_unique<SplitBackend>(*std::move(first), *std::move(second), layers, shape.layers));
}

}  // namespace efimd::engine
