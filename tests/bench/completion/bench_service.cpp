#include "tests/bench/completion/bench_service.h"

#include <utility>

#include "daemon/models/chosen_model.h"
#include "tests/bench/completion/configured_model.h"

namespace efimd::bench {

Result<std::unique_ptr<BenchService>> BenchService::open(const service::Paths& paths,
                                                         int prompt_tokens_max) {
  completion::CompletionService::Settings settings;
  settings.prompt_tokens_max = prompt_tokens_max;
  return open(paths, std::move(settings));
}

Result<std::unique_ptr<BenchService>> BenchService::open(
    const service::Paths& paths, completion::CompletionService::Settings settings) {
  const service::Config config = service::config_in_force(paths);
  auto engine = configured_engine(config);
  if (!engine) return tl::unexpected(engine.error());
  settings.window_tokens = config.window_tokens;
  settings.shows_edits = config.context_edits;
  std::unique_ptr<BenchService> bench(new BenchService);
  bench->options_ = config.completion;
  bench->service_ = std::make_unique<completion::CompletionService>(
      service::make_engine_factory(std::move(*engine), bench->model_), settings,
      [told = &bench->loaded_] { told->set_value(); });
  bench->loaded_.get_future().wait();
  const completion::ServiceStatus status = bench->status();
  if (status.state != completion::EngineState::kReady)
    return fail(Fault::kNotFound, status.failure);
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
  return model_on_device(*model_, now.device_kind, now.device_name);
}

}  // namespace efimd::bench
