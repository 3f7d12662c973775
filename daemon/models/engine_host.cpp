#include "daemon/models/engine_host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <random>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/small_file.h"
#include "cache_store/private_file.h"
#include "daemon/completion/documents/page_keeper.h"
#include "daemon/completion/pace.h"
#include "daemon/models/hub_folder.h"
#include "daemon/models/read_ahead.h"
#include "daemon/models/speed/device_trials.h"
#include "engine/backend/backend.h"
#include "engine/backend/open_backend.h"
#include "engine/engine.h"
#include "engine/kv/host_store.h"
#include "engine/lasting_engine.h"
#include "engine/local_engine.h"
#include "engine/model/model.h"

namespace efimd::service {

namespace {

/// A file that was corrected is seen at the next request (watch_model_files), and so is another
/// configuration (config_watch.h). A file made where the sandbox reaches no new ones is not.
constexpr std::string_view kIfCorrected = "if it is corrected and this remains, run 'efimd stop'";
/// Fewer tokens of KV than this leave no room for a prompt worth asking.
constexpr std::size_t kWindowTokensMin = 256;

/// The key in `file`, which is made, private, if it holds none. One that cannot be kept serves until
/// the process ends.
engine::PageKey page_key(const std::filesystem::path& file) {
  engine::PageKey key{};
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  const auto handle = file.empty() ? fail(Fault::kNotFound, "") : store::open_private_file(file);
  const auto whole = static_cast<ssize_t>(key.size());
  if (handle && ::pread(handle->get(), key.data(), key.size(), 0) == whole) return key;
  std::random_device device;
  std::ranges::generate(key, [&] { return static_cast<std::byte>(device() & 0xFFU); });
  if (handle) static_cast<void>(::pwrite(handle->get(), key.data(), key.size(), 0) == whole);
  return key;
}

std::string_view fim_order_name(engine::FimOrder order) {
  switch (order) {
    case engine::FimOrder::kPsm:
      return "psm";
    case engine::FimOrder::kSpm:
      return "spm";
    case engine::FimOrder::kNone:
      return "none";
  }
  return "none";
}

/// How many pages of KV the budget holds; kNoMemory when that is too little to work with.
Result<int> pages_within(std::size_t budget_bytes, const engine::ModelShape& shape,
                         engine::KvType kv_type) {
  const std::size_t page_bytes = engine::cpu_page_bytes(shape, kv_type);
  const std::size_t pages = page_bytes == 0 ? 0 : budget_bytes / page_bytes;
  const auto context = static_cast<std::size_t>(std::max(0, shape.context_tokens));
  if (pages * engine::kPageTokens < std::min(kWindowTokensMin, context))
    return fail(Fault::kNoMemory,
                fmt::format("{} MiB for KV hold only {} tokens of this model", budget_bytes >> 20,
                            pages * engine::kPageTokens),
                fmt::format("set cache.memory_mb to {} or more",
                            ((kWindowTokensMin * page_bytes / engine::kPageTokens) >> 20) + 1));
  return static_cast<int>(std::min<std::size_t>(pages, std::numeric_limits<int>::max()));
}

/// What the pages of a model are found by.
struct PagesOf {
  Digest model;
  engine::PageKey key;
};

/// Opens the engine over the best device that has not failed yet, and says in `opened` why it is that one.
class DeviceOpener {
 public:
  DeviceOpener(EngineSetup setup, std::shared_ptr<const engine::Model> model, const PagesOf& pages,
               std::shared_ptr<OpenedModel> opened, std::stop_token loading)
      : setup_(std::move(setup)),
        model_(std::move(model)),
        pages_(pages),
        opened_(std::move(opened)),
        loading_(std::move(loading)),
        host_(std::make_shared<engine::HostStore>(setup_.host_budget_bytes, setup_.keeper)),
        wish_{.kind = setup_.device_kind,
              .memory_bytes = setup_.device_memory_bytes,
              .variants = setup_.gpu_variants,
              .threads = setup_.threads,
              .weights = setup_.weights,
              .weights_told =
                  [opened = opened_](std::string text) { opened->set_weights(std::move(text)); },
              .cache_dir = setup_.cache_dir} {
    // A device that somebody names is used, whatever it takes.
    if (setup_.device_kind == "auto")
      wish_.objection = [this](const engine::FoundGpu& gpu) { return objection(gpu); };
  }

  /// The host's tier, which outlives the devices.
  const std::shared_ptr<engine::HostStore>& host() const { return host_; }

  Result<std::unique_ptr<engine::Engine>> open(const Error* lost) {
    if (lost == nullptr) {
      wish_.failed.clear();
    } else {
      if (in_use_ == "cpu") return tl::unexpected(*lost);
      wish_.failed.emplace_back(in_use_, lost->what);
      wish_.checked.erase(in_use_);
    }
    if (auto chosen = choose_kv(); !chosen) return tl::unexpected(std::move(chosen).error());
    opened_->set_weights({});
    auto device = open_device();
    if (!device) return tl::unexpected(std::move(device).error());
    if (trial_stopped_) return stopped();
    engine::Backend& backend = *device->backend;
    in_use_ = backend.kind();
    wish_.checked.insert(in_use_);
    opened_->set_device_reason(device->reason + shrunk());
    if (setup_.keeper)
      setup_.keeper->begin(
          {pages_.model, model_->name(),
           fmt::format("{}, pages of {}", backend.page_format(), engine::kPageTokens),
           backend.page_bytes()});
    engine::EngineOptions options;
    options.model_identity = pages_.model;
    options.kv_budget_bytes = kv_bytes_;
    options.step_tokens_max = backend.step_tokens_max();
    options.window_tokens_max = completion::engine_window_for(
        setup_.window_tokens.value_or(completion::window_tokens_by_default(in_use_)));
    if (in_use_ == "cpu") {  // its pages are in the host's memory already
      host_->clear();
      options.store = setup_.keeper;
    } else {
      options.store = host_;
    }
    return engine::make_engine(model_, std::move(device->backend), options, pages_.key);
  }

 private:
  static tl::unexpected<Error> stopped() {
    return fail(Fault::kStopped, "loading the model was stopped");
  }

  std::string objection(const engine::FoundGpu& gpu) {
    if (gpu.kind == "cuda") return {};
    std::string why =
        DeviceTrials(setup_.trials_file)
            .cpu_instead(gpu, trial_setting(*model_, wish_), measure_of(*model_, wish_, loading_));
    trial_stopped_ = !why.empty() && loading_.stop_requested();
    return why;
  }

  /// Decides what KV is kept in, on whichever device: 8 bits hold the same on all.
  Result<void> choose_kv() {
    const KvChoice kv =
        choose_kv_type(model_, {setup_.kv_type, setup_.threads, setup_.kv_errors_file}, loading_);
    if (kv.type != setup_.kv_type && loading_.stop_requested()) return stopped();
    opened_->set_kv(kv);
    // Room for what is wanted was looked for when the model was opened; 16 bits need more than 8.
    kv_bytes_ = setup_.kv_budget_bytes;
    const auto pages = pages_within(kv_bytes_, model_->shape(), kv.type);
    if (!pages) return tl::unexpected(pages.error());
    wish_.kv_type = kv.type;
    wish_.page_count = *pages;
    return {};
  }

  /// With half of the KV again and again where the system has no room for all and nobody asked for it.
  Result<engine::OpenedBackend> open_device() {
    for (;;) {
      auto device = engine::open_backend(model_, wish_);
      if (device || device.error().fault != Fault::kNoMemory || !setup_.kv_may_shrink)
        return device;
      const auto pages = pages_within(kv_bytes_ / 2, model_->shape(), wish_.kv_type);
      if (!pages) return device;
      kv_bytes_ /= 2;
      wish_.page_count = *pages;
    }
  }

  std::string shrunk() const {
    if (kv_bytes_ == setup_.kv_budget_bytes) return {};
    return fmt::format("; {} MiB for KV, because there is no memory for {}", kv_bytes_ >> 20,
                       setup_.kv_budget_bytes >> 20);
  }

  const EngineSetup setup_;
  const std::shared_ptr<const engine::Model> model_;
  const PagesOf pages_;
  const std::shared_ptr<OpenedModel> opened_;
  const std::stop_token loading_;  ///< fires when nobody waits for the model any more
  const std::shared_ptr<engine::HostStore> host_;
  engine::DeviceWish wish_;
  std::size_t kv_bytes_ = 0;  ///< what wish_ has pages for
  std::string in_use_;
  bool trial_stopped_ = false;
};

Result<std::unique_ptr<engine::Engine>> open_engine(const EngineSetup& setup,
                                                    const std::shared_ptr<OpenedModel>& opened,
                                                    const std::function<void(double)>& progress,
                                                    const std::stop_token& stop) {
  if (!setup.model) return tl::unexpected(setup.model.error());
  auto model = engine::Model::open(*setup.model, setup.fim);
  if (!model) return tl::unexpected(model.error());
  opened->set(model_info(**model));
  const auto pages = pages_within(setup.kv_budget_bytes, (*model)->shape(), setup.kv_type);
  if (!pages) return tl::unexpected(pages.error());
  const engine::PageKey key = page_key(setup.page_key_file);
  const auto weights = read_ahead((*model)->file(), {key, setup.weights_file}, progress, stop);
  if (!weights) return tl::unexpected(weights.error());
  const PagesOf pages_of{digest_of(std::as_bytes(std::span(&*weights, 1)), (*model)->digest()),
                         key};
  const auto opener = std::make_shared<DeviceOpener>(setup, *model, pages_of, opened, stop);
  return engine::LastingEngine::make(
             {*model, &(*model)->tokenizer()},
             [opener](const Error* lost) { return opener->open(lost); }, opener->host())
      .map([](std::unique_ptr<engine::LastingEngine> made) -> std::unique_ptr<engine::Engine> {
        return made;
      });
}

/// Of all parts of the model: which files they are, and in what state.
std::string state_of_files(const std::filesystem::path& model) {
  std::vector<std::string> names = {model.native()};
  if (const auto part = split_part(model.native())) names = parts_of(*part);
  std::string state;
  for (const std::string& name : names) state += state_of_file(name) + ";";
  return state;
}

std::string spelled(const engine::Model& model, engine::TokenId token) {
  const auto* const texts = model.file().strings("tokenizer.ggml.tokens");
  if (texts == nullptr || token < 0 || static_cast<std::size_t>(token) >= texts->size()) return {};
  return std::string((*texts)[static_cast<std::size_t>(token)]);
}

}  // namespace

ModelInfo model_info(const engine::Model& model) {
  ModelInfo info;
  info.name = model.name();
  info.path = model.path().string();
  info.architecture = model.shape().architecture;
  info.parameters = model.parameters();
  info.file_type = model.file_type();
  info.fim_order = fim_order_name(model.tokenizer().fim().order);
  info.digest = model.digest().hex();
  const engine::FimTokens& fim = model.tokenizer().fim();
  info.fim = {spelled(model, fim.prefix), spelled(model, fim.suffix), spelled(model, fim.middle),
              spelled(model, fim.file_separator)};
  return info;
}

void OpenedModel::set(ModelInfo info) {
  const std::lock_guard lock(mutex_);
  info_ = std::move(info);
}

void OpenedModel::set_kv(const KvChoice& kv) {
  const std::lock_guard lock(mutex_);
  if (!info_) return;
  info_->kv_type = engine::kv_type_name(kv.type);
  info_->kv_reason = kv.reason;
}

void OpenedModel::set_device_reason(std::string reason) {
  const std::lock_guard lock(mutex_);
  device_reason_ = std::move(reason);
}

std::string OpenedModel::device_reason() const {
  const std::lock_guard lock(mutex_);
  return device_reason_;
}

void OpenedModel::set_weights(std::string text) {
  const std::lock_guard lock(mutex_);
  weights_ = std::move(text);
}

std::string OpenedModel::weights() const {
  const std::lock_guard lock(mutex_);
  return weights_;
}

std::optional<ModelInfo> OpenedModel::get() const {
  const std::lock_guard lock(mutex_);
  return info_;
}

completion::EngineFactory make_engine_factory(EngineSetup setup,
                                              std::shared_ptr<OpenedModel> opened) {
  return [setup = std::move(setup), opened = std::move(opened)](
             const std::function<void(double)>& progress, std::stop_token stop) {
    auto engine = open_engine(setup, opened, progress, stop);
    if (!engine && engine.error().fault != Fault::kStopped) {
      std::string& remedy = engine.error().remedy;
      remedy += (remedy.empty() ? "" : "; ") + std::string(kIfCorrected);
    }
    return engine;
  };
}

std::function<bool()> watch_model_files(Result<std::filesystem::path> model) {
  if (!model) return [] { return false; };
  return [path = *model, known = state_of_files(*model)]() mutable {
    const std::string before = std::exchange(known, state_of_files(path));
    return before != known;
  };
}

}  // namespace efimd::service
