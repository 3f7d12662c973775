// The CPU device: how it is made, what it keeps, and pages of KV. Its operations are in
// cpu_operations.cpp.
#include "engine/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "engine/backend/backend.h"
#include "engine/backend/cpu/aligned_array.h"
#include "engine/backend/cpu/available_memory.h"
#include "engine/backend/cpu/cpu_device.h"
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

namespace cpu {

namespace {

/// Memory that is left if KV takes so much; nothing: the system does not say.
std::optional<std::size_t> available_beside(std::size_t kv_bytes) {
  const std::size_t available = available_memory();
  if (available == 0) return {};
  return available - std::min(kv_bytes, available);
}

}  // namespace

std::string device_name(Isa isa, int threads) {
  return processor_name() + ", " + std::string(isa_title(isa)) + ", " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads");
}

bool CpuBackend::reserve() {
  const std::size_t rows = size(step_tokens_max_);
  const std::size_t hidden = hidden_rows_max();
  const bool experts = shape_.experts > 0;
  return x_.reserve(rows * size(shape_.width)) && normed_.reserve(rows * size(shape_.width)) &&
         q_.reserve(rows * size(query_width())) && k_.reserve(rows * size(key_width())) &&
         v_.reserve(rows * size(key_width())) && attended_.reserve(rows * size(query_width())) &&
         hidden_.reserve(hidden * size(shape_.feed_forward)) &&
         up_.reserve(hidden * size(shape_.feed_forward)) &&
         multiplier_.reserve(hidden, size(input_width_max())) &&
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
         multiplier_.bytes(hidden_rows_max(), size(input_width_max()));
}

Result<void> CpuBackend::check_file() const {
  if (model_ == nullptr || model_->file().intact()) return {};
  return fail(Fault::kIo, model_->path().string() + " was changed while it is in use",
              "put the whole file there, then run 'efimd stop'");
}

void CpuBackend::start_panels(const CpuOptions& options) {
  // Pages of KV are taken as they are used: their memory is spoken for.
  const std::size_t spoken_for = size(page_count()) * page_bytes();
  PanelStore::Options wish{.form = options.weights,
                           .available_bytes = available_beside(spoken_for),
                           .told = options.weights_told,
                           .at_once = options.weights_at_once};
  if (model_ != nullptr)
    wish.give_back = [this](std::span<const std::byte> bytes) { model_->file().give_back(bytes); };
  // The scalar table is the specification and reads the file.
  panels_.start(isa_ == Isa::kScalar ? std::vector<Weights*>() : weights_.matrices(),
                std::move(wish));
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

void CpuBackend::overwrite_activations() {
  for (AlignedArray<float>* const array :
       {&x_, &normed_, &q_, &k_, &v_, &attended_, &hidden_, &up_, &router_logits_, &expert_in_,
        &expert_out_, &partials_, &logits_})
    array->overwrite();
  kv_->overwrite_rows();
  multiplier_.overwrite();
}

}  // namespace cpu

namespace {

using namespace cpu;  // the parts of this device

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
                remedy_for_no_memory());
  } catch (const std::system_error& error) {
    return fail(Fault::kNoMemory, std::string("worker threads cannot be started: ") + error.what(),
                remedy_for_no_thread() + "; or set fewer threads (device.threads)");
  }
}

}  // namespace

std::size_t panels_bytes_max(WeightsForm form, std::size_t kv_bytes) {
  return cpu::panels_bytes_max(form, cpu::available_beside(kv_bytes));
}

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
