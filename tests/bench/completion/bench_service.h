#pragma once

#include <future>
#include <memory>
#include <string>

#include "base/error.h"
#include "daemon/completion/completion.h"
#include "daemon/config/paths.h"
#include "daemon/models/engine_host.h"

namespace efimd::bench {

/// The completions that the daemon would give, in this process: its configuration, model, device
/// and memory for KV; nothing is stored.
///
/// Thread: its owner's; answers come on the engine thread.
class BenchService {
 public:
  /// Waits until the model is loaded. `prompt_tokens_max`: the prompt's window; 0: by measured speed.
  /// Fails where there is no model, or it cannot be loaded.
  static Result<std::unique_ptr<BenchService>> open(const service::Paths& paths,
                                                    int prompt_tokens_max);
  /// With a window of text as configured.
  static Result<std::unique_ptr<BenchService>> open(
      const service::Paths& paths, completion::CompletionService::Settings settings);

  completion::CompletionService& completions() { return *service_; }
  /// Submits the request as arriving now and waits for its answer.
  completion::Outcome ask(completion::Request request);

  completion::ServiceStatus status() const { return service_->status(); }
  const completion::Options& options() const { return options_; }
  /// "efim-boot 8M on cpu"
  std::string description() const;

 private:
  BenchService() = default;

  std::shared_ptr<service::OpenedModel> model_ = std::make_shared<service::OpenedModel>();
  completion::Options options_;  ///< configured
  std::promise<void> loaded_;
  std::unique_ptr<completion::CompletionService> service_;  ///< last: it tells loaded_
};

}  // namespace efimd::bench
