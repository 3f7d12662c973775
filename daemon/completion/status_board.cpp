#include "daemon/completion/status_board.h"

#include <algorithm>
#include <cmath>

#include "daemon/completion/pace.h"

namespace efimd::completion {

namespace {

constexpr std::size_t kLatenciesMax = 512;

/// The nearest-rank percentile; 0 without values.
double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

void StatusBoard::set_loading() {
  const std::lock_guard lock(mutex_);
  status_.state = EngineState::kLoading;
  status_.load_progress = 0;
  status_.failure.clear();
}

void StatusBoard::set_load_progress(double progress) {
  const std::lock_guard lock(mutex_);
  status_.load_progress = std::clamp(progress, 0.0, 1.0);
}

void StatusBoard::set_ready(const engine::Engine& engine, const Budgets& budgets) {
  const std::lock_guard lock(mutex_);
  status_.state = EngineState::kReady;
  status_.load_progress = 1;
  status_.device_kind = engine.device_kind();
  status_.device_name = engine.device_name();
  status_.kv = engine.kv_usage();
  take_pace(budgets);
}

void StatusBoard::set_pace(const Budgets& budgets) {
  const std::lock_guard lock(mutex_);
  take_pace(budgets);
}

void StatusBoard::take_pace(const Budgets& budgets) {
  status_.window_tokens = std::max(budgets.prompt_tokens_max, budgets.wide_tokens_max);
  status_.prompt_tokens_per_s = prompt_tokens_per_s(budgets.costs);
  status_.step_costs.clear();
  for (const prompt::StepCosts::Point& point : budgets.costs.points)
    status_.step_costs.push_back({point.tokens, point.ms});
}

void StatusBoard::set_failed(const Error& error) {
  const std::lock_guard lock(mutex_);
  status_.state = EngineState::kFailed;
  status_.failure = error.message();
}

std::optional<Silence> StatusBoard::refusal() const {
  const std::lock_guard lock(mutex_);
  switch (status_.state) {
    case EngineState::kLoading: {
      const int percent = static_cast<int>(status_.load_progress * 100);
      return Silence{silence::kLoading, " (" + std::to_string(percent) + " %)"};
    }
    case EngineState::kFailed:
      return Silence{silence::kNoModel, ": " + status_.failure};
    case EngineState::kReady:
      break;
  }
  return std::nullopt;
}

void StatusBoard::count_silence(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  ++status_.silence[std::string(reason)];
}

void StatusBoard::count_answer(const Receipt& receipt) {
  const std::lock_guard lock(mutex_);
  Counts& counts = events_[std::string(event_name(receipt.event))];
  ++counts.count;
  counts.evaluated += receipt.evaluated_tokens;
  counts.reused += receipt.reused_tokens;
  if (receipt.restored_tokens > 0) {
    status_.restored_tokens += static_cast<std::uint64_t>(receipt.restored_tokens);
    if (status_.prompt_tokens_per_s > 0)
      status_.saved_s += receipt.restored_tokens / status_.prompt_tokens_per_s;
  }
  if (receipt.first_token_ms <= 0) return;
  if (counts.first_token_ms.size() < kLatenciesMax) {
    counts.first_token_ms.push_back(receipt.first_token_ms);
  } else {
    counts.first_token_ms[counts.next++ % kLatenciesMax] = receipt.first_token_ms;
  }
}

void StatusBoard::count_shown(const std::string& source) {
  const std::lock_guard lock(mutex_);
  ++status_.sources[source].shown;
}

void StatusBoard::count_accepted(const std::string& source) {
  const std::lock_guard lock(mutex_);
  ++status_.sources[source].accepted;
}

void StatusBoard::set_remote(const ServiceStatus::Remote& remote) {
  const std::scoped_lock lock(mutex_);
  status_.remote = remote;
}

void StatusBoard::set_taste(const Taste& taste, std::string trouble) {
  const std::lock_guard lock(mutex_);
  status_.taste = taste.rows();
  status_.taste_trouble = std::move(trouble);
}

void StatusBoard::set_recall(const recall::Usage& usage) {
  const std::lock_guard lock(mutex_);
  status_.recall = usage;
}

void StatusBoard::add_plan(ServiceStatus::PlanNote plan) {
  const std::lock_guard lock(mutex_);
  status_.plans.insert(status_.plans.begin(), std::move(plan));
  if (status_.plans.size() > kPlansMax) status_.plans.pop_back();
}

void StatusBoard::set_documents(std::vector<Documents::Row> rows, const engine::Engine& engine) {
  const std::lock_guard lock(mutex_);
  rows_ = std::move(rows);
  status_.kv = engine.kv_usage();
  status_.device_kind = engine.device_kind();
  status_.device_name = engine.device_name();
}

ServiceStatus StatusBoard::status() const {
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  ServiceStatus status = status_;
  for (const Documents::Row& row : rows_) {
    status.files.push_back(row.file);
    status.files.back().last_use_s = std::chrono::duration<double>(now - row.used_at).count();
  }
  for (const auto& [name, counts] : events_) {
    const auto count = static_cast<double>(counts.count);
    status.events[name] = {counts.count, counts.evaluated / count, counts.reused / count,
                           percentile(counts.first_token_ms, 0.50),
                           percentile(counts.first_token_ms, 0.95)};
  }
  return status;
}

}  // namespace efimd::completion
