#include "tests/engine/backend/gpu/split_models.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "engine/backend/gpu/gpu_fit.h"
#include "engine/backend/split_backend.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/evaluate.h"
#include "tests/engine/backend/gpu/wrapped_device.h"

namespace efimd::test {
namespace {

using namespace engine::gpu;
using engine::Backend;
using engine::KvType;

constexpr int kLayers = 3;

/// A device that says it has less memory.
class SmallDevice final : public WrappedDevice {
 public:
  SmallDevice(std::unique_ptr<GpuDevice> device, std::size_t memory_bytes)
      : WrappedDevice(std::move(device)), memory_bytes_(memory_bytes) {}
  DeviceLimits limits() const override {
    DeviceLimits limits = WrappedDevice::limits();
    limits.memory_bytes = memory_bytes_;
    return limits;
  }

 private:
  std::size_t memory_bytes_;
};

/// The least memory, to 4 KiB, that holds so many layers.
std::size_t memory_for(int layers, const GpuDevice& device, const MemoryModel& model,
                       const GpuOptions& options) {
  DeviceLimits limits = device.limits();
  for (limits.memory_bytes = 0;
       layers_that_fit(limits, model.shape, model.weights, options) < layers;)
    limits.memory_bytes += 4096;
  return limits.memory_bytes;
}

std::unique_ptr<Backend> split(const OpenDevice& open, const MemoryModel& model, KvType kv_type) {
  auto device = open();
  if (!device) return nullptr;
  const GpuOptions of_gpu{64, 64, kv_type};
  engine::CpuOptions of_cpu;
  of_cpu.threads = 2;
  of_cpu.kv_type = kv_type;
  const std::size_t memory = memory_for(2, *device, model, of_gpu);
  auto backend =
      engine::make_split_backend(std::make_unique<SmallDevice>(std::move(device), memory),
                                 model.shape, model.weights, of_gpu, of_cpu);
  REQUIRE(backend);
  CHECK((*backend)->name().find("; 2 of 3 layers, the others on ") != std::string::npos);
  return *std::move(backend);
}

void check_model(Variety variety, KvType kv_type, const OpenDevice& open) {
  INFO(variety.name << ", KV " << kv_type_name(kv_type));
  variety.shape.layers = kLayers;
  const MemoryModel model(variety.shape, variety.options);
  const auto backend = split(open, model, kv_type), other = split(open, model, kv_type);
  if (!backend || !other) return;
  const auto cpu = device(model, engine::Isa::kScalar, 2, kv_type);
  const auto tokens = random_tokens(70, model.shape.vocabulary, 1);
  const auto wanted = evaluate(*cpu, model, tokens, {64, 6}, pages_from(5, 7));
  double squares = 0;
  for (const float logit : wanted) squares += static_cast<double>(logit) * logit;
  const double size = std::sqrt(squares / static_cast<double>(wanted.size()));
  std::vector<Expected> expected;
  for (const float logit : wanted)
    expected.push_back({logit, (kv_type == KvType::kQ8 ? 1e-2 : 2e-3) * size});
  const auto whole = evaluate(*backend, model, tokens, {64, 6}, pages_from(5, 7));
  check_close(whole, expected);
  check_same_bits(evaluate(*backend, model, tokens, {17, 1, 33, 19}, pages_from(20, 3)), whole);

  // The first two pages go to another such device; what is evaluated after them there is the same.
  CHECK(backend->page_format() == other->page_format());
  std::vector<std::byte> bytes(backend->page_bytes());
  for (const engine::PageIndex page : {5, 12}) {
    REQUIRE(backend->read_page(page, bytes));
    REQUIRE(other->write_page(page, bytes));
  }
  CHECK(!backend->read_page(5, std::span(bytes).first(8)));
  const auto behind = [&](Backend& of) {
    const auto pages = pages_from(5, 7);
    const engine::StepSequence sequence{0, 6, 64, pages};
    const int last = 5;
    forward_layers(of, {std::span(tokens).subspan(64), {&sequence, 1}, {&last, 1}}, kLayers);
    const auto logits = of.logits();
    REQUIRE(logits);
    return std::vector<float>(logits->begin(), logits->end());
  };
  check_same_bits(behind(*other), behind(*backend));
}

using MakeBackend = std::function<Result<std::unique_ptr<Backend>>(const engine::ModelShape&,
                                                                   const engine::ModelWeights&)>;

/// The last layer on a backend of its own has the bits that it has in one of all layers.
void check_parts(const MakeBackend& make) {
  Variety variety = varieties()[1];
  variety.shape.layers = kLayers;
  const MemoryModel model(variety.shape, variety.options);
  engine::ModelShape front = model.shape, back = model.shape;
  front.layers = kLayers - 1, back.layers = 1;
  engine::ModelWeights of_front = model.weights, of_back = model.weights;
  of_front.layers.pop_back();
  of_back.layers.erase(of_back.layers.begin(), of_back.layers.end() - 1);
  const auto whole = make(model.shape, model.weights), first = make(front, of_front),
             second = make(back, of_back);
  REQUIRE((whole && first && second));

  const auto tokens = random_tokens(40, model.shape.vocabulary, 1);
  const auto pages = pages_from(5, 7);
  const engine::StepSequence sequence{0, 40, 0, pages};
  const int last = 39;
  const engine::Step step{tokens, {&sequence, 1}, {&last, 1}};
  forward_layers(**whole, step, kLayers);
  const auto logits = (*whole)->logits();
  REQUIRE(logits);
  const std::vector<float> wanted(logits->begin(), logits->end());
  forward_layers(**first, step, kLayers - 1);
  const auto x = (*first)->residual();
  REQUIRE(x);
  REQUIRE((*second)->begin_behind(step, *x));
  REQUIRE((*second)->attention_input(0));
  REQUIRE((*second)->attention(0));
  REQUIRE((*second)->attention_output(0));
  REQUIRE((*second)->feed_forward_input(0));
  REQUIRE((*second)->feed_forward_output(0));
  const auto got = (*second)->logits();
  REQUIRE(got);
  check_same_bits(*got, wanted);
}

}  // namespace

void check_split(const OpenDevice& open) {
  if (open() == nullptr) return;
  check_parts([&](const auto& shape, const auto& weights) {
    return make_gpu_backend(open(), shape, weights, {64, 64});
  });
  check_parts([&](const auto& shape, const auto& weights) {
    engine::CpuOptions options;
    options.page_count = 64;
    return engine::make_cpu_backend(shape, weights, options);
  });
  for (const KvType kv_type : {KvType::kF16, KvType::kQ8})
    check_model(varieties()[1], kv_type, open);
  for (const Variety& variety : varieties())
    if (variety.shape.experts > 0) check_model(variety, KvType::kF16, open);
  if (auto device = open()) {
    const MemoryModel model(varieties()[1].shape, varieties()[1].options);
    const auto refused = engine::make_split_backend(
        std::make_unique<SmallDevice>(std::move(device), std::size_t{1} << 20), model.shape,
        model.weights, {64, 64}, {});
    REQUIRE(!refused);
    CHECK(refused.error().fault == Fault::kNoMemory);
    CHECK(refused.error().what.find("lacks the memory for one layer") != std::string::npos);
  }
}

}  // namespace efimd::test
