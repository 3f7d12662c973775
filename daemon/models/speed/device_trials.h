#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "daemon/models/speed/expected_speed.h"
#include "engine/backend/open_backend.h"
#include "engine/model/model.h"

namespace efimd::service {

/// How long a GPU and the CPU take for an answer.
struct AnswerTimes {
  double gpu_ms = 0, cpu_ms = 0;

  /// A GPU that takes a little longer leaves the processor to other programs.
  static constexpr double kGpuMayTake = 1.2;
  bool gpu_is_worth_it() const { return gpu_ms <= kGpuMayTake * cpu_ms; }
};

/// An answer at another place in a file: what a jump evaluates (docs/performance.md), and a short line
/// after it.
inline constexpr int kTrialPromptTokens = 128, kTrialWrittenTokens = 8;
/// A device that would take longer to be measured is not used; it would not answer soon either.
inline constexpr double kTrialSecondsMax = 15;
double answer_ms(const ExpectedSpeed& speed);

/// Whether a GPU by Vulkan is used, or the CPU instead. A laptop's GPU reads the processor's memory, and
/// a small card's own may be slower, so no name tells which is the faster one. Both are measured with a
/// part of the model once, and the times are kept in the state folder.
///
/// Thread: any one.  Limits: kKeptMax times; a damaged file counts as none.
class DeviceTrials {
 public:
  static constexpr std::size_t kKeptMax = 100;
  using Measure = std::function<Result<ExpectedSpeed>(std::string_view kind)>;

  explicit DeviceTrials(std::filesystem::path file) : file_(std::move(file)) {}

  /// Why the CPU is used instead of the GPU of that kind and name; empty if the GPU is. `setting` is
  /// what the times depend on besides. A GPU that fails while it is measured is not used. It is
  /// measured again the next time, unless it is too slow or cannot run the model. If the CPU fails,
  /// the GPU is used.
  std::string cpu_instead(const engine::FoundGpu& gpu, const std::string& setting,
                          const Measure& measure) const;

 private:
  std::filesystem::path file_;
};

/// What the times of a model depend on besides the GPU: the model, this program and the CPU's side.
std::string trial_setting(const engine::Model& model, const engine::DeviceWish& wish);
/// Measures a kind of device as `wish` says. Both are borrowed.
DeviceTrials::Measure measure_of(const engine::Model& model, const engine::DeviceWish& wish,
                                 std::stop_token stop = {});

}  // namespace efimd::service
