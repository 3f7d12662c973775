#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/completion/completion.h"
#include "daemon/models/kv_choice.h"
#include "engine/backend/gpu/variants.h"
#include "engine/backend/kv_type.h"
#include "engine/backend/weights_form.h"

namespace efimd::engine {
class Model;
}

namespace efimd::service {

/// A model's part of the status.
struct ModelInfo {
  std::string name;
  std::string path;
  std::string architecture;  ///< "llama", "qwen2"
  std::uint64_t parameters = 0;
  std::string file_type;  ///< "F16", "Q8_0"
  std::string fim_order;  ///< "psm", "spm", "none"
  std::string digest;
  /// The tokens that frame a prompt, as the vocabulary spells them; empty where it has none.
  struct Fim {
    std::string prefix, suffix, middle, file_separator;
  } fim = {};
  std::string kv_type;    ///< "f16", "q8"; empty before the device is opened
  std::string kv_reason;  ///< the measured error of q8; empty if q8 was not asked for
};
ModelInfo model_info(const engine::Model& model);

/// The engine thread opens the model and writes this; io shows it. A lock and not a message,
/// because the value is written a few times and read only if somebody asks for the status.
class OpenedModel {
 public:
  void set_device_reason(std::string reason);
  std::string device_reason() const;  ///< empty until a device was opened
  void set_weights(std::string text);
  std::string weights() const;  ///< of the CPU device, as engine::WeightsTold; empty on another
  void set(ModelInfo info);
  void set_kv(const KvChoice& kv);       ///< of the model that was set
  std::optional<ModelInfo> get() const;  ///< nullopt until a model was opened

 private:
  mutable std::mutex mutex_;
  std::optional<ModelInfo> info_;
  std::string device_reason_;
  std::string weights_;
};

struct EngineSetup {
  Result<std::filesystem::path> model;  ///< an error becomes the factory's, so that users see it
  std::string device_kind = "auto";     ///< see engine::DeviceWish
  std::size_t device_memory_bytes = 0;  ///< see engine::DeviceWish
  int threads = 0;                      ///< 0: one per physical core
  engine::WeightsForm weights = engine::WeightsForm::kMapped;  ///< of the CPU device
  engine::gpu::Variants gpu_variants = engine::gpu::kConfirmedVariants;
  std::size_t kv_budget_bytes = 0;
  bool kv_may_shrink = false;             ///< less KV is better than no model
  std::size_t host_budget_bytes = 0;      ///< of the tier after a device with memory of its own
  std::optional<int> window_tokens = {};  ///< of text in the window; unset: the device's default
  engine::FimOverride fim = {};
  engine::KvType kv_type = engine::KvType::kF16;  ///< wanted
  std::filesystem::path kv_errors_file = {};      ///< of KvErrors
  std::filesystem::path trials_file = {};         ///< of DeviceTrials
  std::filesystem::path weights_file = {};        ///< of read_ahead()
  /// Keeps KV over restarts; may be null.
  std::shared_ptr<completion::PageKeeper> keeper = {};
  std::filesystem::path cache_dir = {};  ///< folder of compiled shaders; empty: none is kept
  /// Keeps the key of the pages' identities; empty: they have one until the process ends.
  std::filesystem::path page_key_file = {};
};

/// Opens the model and reads its weights ahead (with progress; a stop is seen within 16 MiB). Then
/// opens the device with as many pages as the budget holds, and the engine over it. `opened` is set
/// as soon as the file is validated.
completion::EngineFactory make_engine_factory(EngineSetup setup,
                                              std::shared_ptr<OpenedModel> opened);

/// Says on each call whether a file of the model was made, replaced or changed since the call before;
/// at the first, since this one. For CompletionService::Settings::may_load_again.
std::function<bool()> watch_model_files(Result<std::filesystem::path> model);

}  // namespace efimd::service
