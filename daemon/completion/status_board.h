#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "daemon/completion/budgets.h"
#include "daemon/completion/documents/documents.h"
#include "daemon/completion/request.h"
#include "daemon/completion/silence.h"
#include "daemon/completion/status.h"

namespace efimd::completion {

/// The service's state for others. The engine thread writes it (and submit(), if it refuses); any
/// thread reads it.
///
/// A lock and not a message, because the status must be answered, and a request refused, while the
/// engine thread is busy for seconds. Nothing is done under the lock but copying.
class StatusBoard {
 public:
  static constexpr std::size_t kPlansMax = 16;

  void set_loading();
  void set_load_progress(double progress);
  void set_ready(const engine::Engine& engine, const Budgets& budgets);
  void set_failed(const Error& error);
  void set_pace(const Budgets& budgets);

  /// The reason why a request cannot even be queued; nullopt if the engine is ready.
  std::optional<Silence> refusal() const;

  void count_silence(std::string_view reason);
  void count_answer(const Receipt& receipt);
  void count_shown(const std::string& source);
  void count_accepted(const std::string& source);
  void set_recall(const recall::Usage& usage);
  void set_remote(const ServiceStatus::Remote& remote);
  void set_taste(const Taste& taste, std::string trouble);
  /// The last kPlansMax are kept.
  void add_plan(ServiceStatus::PlanNote plan);
  /// Also notes the engine's KV and its device, which may be another than before.
  void set_documents(std::vector<Documents::Row> rows, const engine::Engine& engine);

  ServiceStatus status() const;

 private:
  void take_pace(const Budgets& budgets);

  struct Counts {
    std::uint64_t count = 0;
    double evaluated = 0, reused = 0;    ///< sums
    std::vector<double> first_token_ms;  ///< the last kLatenciesMax, as a ring
    std::size_t next = 0;
  };

  mutable std::mutex mutex_;
  ServiceStatus status_;  ///< without files and events, which status() makes
  std::vector<Documents::Row> rows_;
  std::map<std::string, Counts, std::less<>> events_;
};

}  // namespace efimd::completion
