#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace efimd::bench {

/// The effect of healing at random cursors of real code.
struct HealingSetup {
  std::filesystem::path model;
  std::vector<std::filesystem::path> sources;
  bool random = false;  ///< with random weights in place of the model's
  int layers = 0;       ///< only so many of the model's first layers; 0: all
  int cursors = 2000;
  int threads = 0;  ///< 0: one per physical core
  std::uint32_t seed = 1;
};

/// Prints whether the typed bytes stay, how many steps and milliseconds a keystroke takes, and how
/// often the rest of the line comes out exactly. It also does so for a prompt that was tokenized
/// whole (PSM), and for one whose end was not healed (EFIM). Returns how often typed bytes changed,
/// which is a fault.
///
/// Throws std::runtime_error where a file cannot be read or has too little code.
int measure_healing(const HealingSetup& setup);

}  // namespace efimd::bench
