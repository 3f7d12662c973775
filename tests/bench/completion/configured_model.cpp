#include "tests/bench/completion/configured_model.h"

#include <fmt/format.h>

#include "daemon/models/model_catalog.h"

namespace efimd::bench {

Result<service::EngineSetup> configured_engine(const service::Config& config) {
  const auto model = service::choose_model(config, service::find_model_places());
  if (!model) return tl::unexpected(model.error());
  service::EngineSetup setup;
  setup.model = model->path;
  setup.device_kind = config.device_kind;
  setup.threads = config.device_threads;
  setup.weights = config.device_weights;
  setup.gpu_variants = config.gpu_variants;
  setup.kv_budget_bytes = service::kv_budget_bytes(config);
  setup.window_tokens = config.window_tokens;
  setup.fim = config.fim;
  return setup;
}

std::string model_on_device(const service::OpenedModel& model, const std::string& kind,
                            const std::string& name) {
  return fmt::format("{} on {} ({})", model.get().value_or(service::ModelInfo{}).name, kind, name);
}

}  // namespace efimd::bench
