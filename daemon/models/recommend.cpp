#include "daemon/models/recommend.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/config/amounts.h"

namespace efimd::service {

namespace {

std::string reason_of(const JudgedModel& judged) {
  if (!judged.fits)
    return fmt::format("needs {} of memory", bytes_text(static_cast<double>(judged.memory_bytes)));
  if (!judged.fast)
    return fmt::format("too slow: {:.0f} ms for an answer", judged.speed.first_answer_ms);
  if (!judged.model.restricted.empty())
    return fmt::format("licence {}: {}", judged.model.license, judged.model.restricted);
  return "";
}

std::uint64_t memory_of(const OfferedModel& model) {
  return model.bytes + kBesideBytes +
         model.kv_bytes * static_cast<std::uint64_t>(std::min(kWindowTokens, model.context_tokens));
}

bool fits(std::uint64_t bytes, std::uint64_t memory_bytes) {
  return memory_bytes == 0 ||
         static_cast<double>(bytes) <= kMemoryShare * static_cast<double>(memory_bytes);
}

/// On the device where an answer comes first; nullopt without one for the model.
std::optional<GuessedSpeed> fastest(const std::vector<DeviceRates>& devices,
                                    const OfferedModel& model) {
  std::optional<GuessedSpeed> best;
  for (const DeviceRates& device : devices) {
    if (!device.takes(model.bytes)) continue;
    GuessedSpeed speed = guessed_speed(device, token_cost(model));
    if (!best || speed.first_answer_ms < best->first_answer_ms) best = std::move(speed);
  }
  return best;
}

}  // namespace

TokenCost token_cost(const OfferedModel& model) {
  const double share = static_cast<double>(model.active) / static_cast<double>(model.parameters);
  return {static_cast<std::uint64_t>(static_cast<double>(model.bytes) * std::min(share, 1.0)),
          model.active, model.weights};
}

std::vector<std::uint64_t> bytes_of_fitting(const std::vector<OfferedModel>& models,
                                            std::uint64_t memory_bytes) {
  std::vector<std::uint64_t> bytes;
  for (const OfferedModel& model : models)
    if (fits(memory_of(model), memory_bytes)) bytes.push_back(model.bytes);
  return bytes;
}

Recommendation recommend(const std::vector<OfferedModel>& models,
                         const std::vector<DeviceRates>& devices, std::uint64_t memory_bytes) {
  Recommendation result;
  std::optional<std::size_t> least_slow;
  for (const OfferedModel& model : models) {
    JudgedModel judged;
    judged.model = model;
    const auto speed = fastest(devices, model);
    if (speed) judged.speed = *speed;
    judged.memory_bytes = memory_of(model);
    judged.fits = fits(judged.memory_bytes, memory_bytes);
    judged.fast = speed && judged.speed.first_answer_ms <= kFirstAnswerMsMax;
    judged.reason = reason_of(judged);
    const std::size_t index = result.models.size();
    result.models.push_back(judged);
    if (!judged.fits || !model.restricted.empty()) continue;
    if (judged.fast && !result.chosen) result.chosen = index;
    const bool less_slow =
        !least_slow ||
        (speed && judged.speed.first_answer_ms < result.models[*least_slow].speed.first_answer_ms);
    if (less_slow) least_slow = index;
  }
  if (!result.chosen) result.chosen = least_slow;
  for (std::size_t i = 0; i < result.models.size(); ++i) {
    JudgedModel& judged = result.models[i];
    if (result.chosen == i)
      judged.reason =
          judged.fast ? fmt::format("the best of the list that answers within {:.0f} ms here",
                                    kFirstAnswerMsMax)
                      : fmt::format("the fastest of the list; none answers within {:.0f} ms here",
                                    kFirstAnswerMsMax);
    else if (judged.reason.empty())
      judged.reason = "good, but a better one is fast enough";
  }
  return result;
}

}  // namespace efimd::service
