#include "daemon/cli/bench/bench_service.h"

#include <fmt/format.h>

#include <utility>

#include "daemon/models/chosen_model.h"
#include "daemon/models/engine_host.h"
#include "daemon/models/model_catalog.h"

namespace efimd::service {

Result<std::unique_ptr<BenchService>> BenchService::open(const Paths& paths, Setup setup) {
  const Config config = config_in_force(paths);
  const auto model = choose_model(config, find_model_places());
  if (!model) return tl::unexpected(model.error());
  const auto opened = std::make_shared<OpenedModel>();
  EngineSetup engine;
  engine.model = model->path;
  engine.device_kind = config.device_kind;
  engine.threads = config.device_threads;
  engine.weights = config.device_weights;
  engine.kv_budget_bytes = kv_budget_bytes(config);
  engine.fim = config.fim;
  completion::CompletionService::Settings settings;
  settings.prompt_tokens_max = setup.prompt_tokens_max;
  settings.cold_prompt_ms = config.cold_prompt_ms;
  settings.treatment = setup.treatment;
  std::unique_ptr<BenchService> bench(new BenchService);
  bench->options_ = config.completion;
  bench->service_ = std::make_unique<completion::CompletionService>(
      make_engine_factory(std::move(engine), opened), settings,
      [told = &bench->loaded_] { told->set_value(); });
  bench->loaded_.get_future().wait();
  const completion::ServiceStatus status = bench->status();
  if (status.state != completion::EngineState::kReady)
    return fail(Fault::kNotFound, status.failure);
  if (const auto info = opened->get()) bench->model_name_ = info->name;
  return bench;
}

completion::Outcome BenchService::ask(completion::Request request) {
  // Shared, for the engine thread may still be in set_value() when the answer is taken.
  const auto answer = std::make_shared<std::promise<completion::Outcome>>();
  request.arrived = std::chrono::steady_clock::now();
  service_->submit(std::move(request), [answer](completion::Outcome outcome) {
    answer->set_value(std::move(outcome));
  });
  return answer->get_future().get();
}

std::string BenchService::description() const {
  const completion::ServiceStatus now = status();
  return fmt::format("{} on {} ({})", model_name_, now.device_kind, now.device_name);
}

}  // namespace efimd::service
