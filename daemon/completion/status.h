#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/completion/documents/taste.h"
#include "daemon/recall/index.h"
#include "engine/engine.h"

namespace efimd::completion {

enum class EngineState { kLoading, kReady, kFailed };

/// The service's part of the status; a copy, taken under the service's own synchronization.
struct ServiceStatus {
  EngineState state = EngineState::kLoading;
  double load_progress = 0;
  std::string failure;  ///< Error::message() when kFailed
  std::string device_kind, device_name;
  int window_tokens = 0;  ///< most tokens of a prompt (A-4); 0 until ready
  /// Measured after loading, and learned since; 0 and empty if Settings fixed the window.
  double prompt_tokens_per_s = 0;
  struct StepCost {
    int tokens = 0;
    double ms = 0;
  };
  std::vector<StepCost> step_costs;  ///< of steps of 1, 4, 16, ... tokens
  engine::KvUsage kv;
  std::uint64_t restored_tokens = 0;  ///< by all answers
  double saved_s = 0;                 ///< the time that evaluating these would have taken
  struct File {
    std::string uri;
    bool open = false;
    int anchors = 0;
    int tokens_device = 0;
    double last_use_s = 0;   ///< seconds ago
    std::uint64_t hits = 0;  ///< requests that reused an anchor
    std::uint64_t misses = 0;
  };
  std::vector<File> files;
  struct EventCounts {
    std::uint64_t count = 0;
    double evaluated_mean = 0, reused_mean = 0;
    double first_token_ms_p50 = 0, first_token_ms_p95 = 0;  ///< of the last 512
  };
  std::map<std::string, EventCounts> events;
  std::map<std::string, std::uint64_t> silence;  ///< reason, without its details -> count
  /// Suggestions by source (Receipt::source).
  struct SourceCounts {
    std::uint64_t shown = 0;
    std::uint64_t accepted = 0;  ///< wholly or in part, as the next request's event shows
  };
  std::map<std::string, SourceCounts> sources;
  recall::Usage recall;
  std::map<std::string, TasteRow, std::less<>> taste;  ///< by language
  std::string taste_trouble;  ///< why its file was passed over or not written; empty: it was
  /// The engine elsewhere.
  struct Remote {
    bool is_set = false;     ///< one is configured
    bool up = false;         ///< it answered the last request that went there
    std::string model;       ///< as the server calls it
    bool token_ids = false;  ///< prompts are token ids, not text
    std::string trouble;     ///< why it does not answer; empty: it does, or was not asked yet
    std::uint64_t answers = 0, failures = 0;
    bool operator==(const Remote&) const = default;
  };
  Remote remote;
  /// How the last requests that asked the model were planned, newest first.
  struct PlanNote {
    std::string uri;
    std::string event;
    std::string taken;                    ///< prompt::describe()
    std::vector<std::string> considered;  ///< the others
    std::vector<std::string> head = {};   ///< other files that it shows, and why
  };
  std::vector<PlanNote> plans;
};

}  // namespace efimd::completion
