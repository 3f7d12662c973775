#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/digest.h"

namespace efimd::engine {
class Engine;
}

namespace efimd::completion {

/// The sizes of prompts that a device affords, in tokens.
struct Pace {
  int first = 0;  ///< of the first window
  int near = 0;   ///< of a first prompt that must be answered at once (A-10)
  bool operator==(const Pace&) const = default;
};

/// Keeps the sizes that were chosen for a device and a model, in a small file, so that the next start
/// chooses the same although it measures another speed.
///
/// Fails: a file that cannot be read, written or understood costs what it keeps.
class PaceKeeper {
 public:
  static constexpr std::size_t kKeptMax = 64;
  explicit PaceKeeper(std::filesystem::path file) : file_(std::move(file)) {}

  std::optional<Pace> find(const engine::Engine& engine) const;
  /// Of more than kKeptMax, those that were kept first go.
  void keep(const engine::Engine& engine, const Pace& pace) const;

 private:
  std::filesystem::path file_;
};

}  // namespace efimd::completion
