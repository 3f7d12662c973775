#pragma once

#include <future>
#include <memory>
#include <string>

#include "base/error.h"
#include "daemon/completion/completion.h"
#include "daemon/config/paths.h"

namespace efimd::bench {

/// The completions that the daemon would give, in this process: its configuration, model, device
/// and memory for KV; nothing is stored.
///
/// Thread: its owner's; answers come on the engine thread.
class BenchService {
 public:
  /// What is measured: the treatment, and the prompt's window in tokens (0: by measured speed).
  struct Setup {
    completion::Treatment treatment;
    int prompt_tokens_max = 0;
  };
  /// Waits until the model is loaded. Fails where there is none, or it cannot be loaded.
  static Result<std::unique_ptr<BenchService>> open(const service::Paths& paths, Setup setup);

  completion::CompletionService& completions() { return *service_; }
  /// Submits the request as arriving now and waits for its answer.
  completion::Outcome ask(completion::Request request);

  completion::ServiceStatus status() const { return service_->status(); }
  const completion::Options& options() const { return options_; }
  /// "efim-boot 8M on cpu"
  std::string description() const;

 private:
  BenchService() = default;

  std::string model_name_;
  completion::Options options_;  ///< configured
  std::promise<void> loaded_;
  std::unique_ptr<completion::CompletionService> service_;  ///< last: it tells loaded_
};

}  // namespace efimd::bench
