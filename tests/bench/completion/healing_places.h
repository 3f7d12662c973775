#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace efimd::bench {

/// A cursor in real code: somebody typed a line up to here, and its rest is what should come.
struct HealingPlace {
  std::string before;  ///< the window up to the increment
  std::string
      increment;      ///< typed since the anchor: up to 3 lines, and the cursor's up to the cursor
  std::string after;  ///< from the next line on
  std::string rest;   ///< of the cursor's line, without blanks at its end
};

/// `count` random places of the files, the same for the same seed: anywhere in a line that is not
/// blank from there on. Windows are about 1,200 bytes in front and 400 behind. Throws
/// std::runtime_error when the files have no such place.
std::vector<HealingPlace> random_places(const std::vector<std::filesystem::path>& files,
                                        const engine::Tokenizer& tokenizer, int count,
                                        std::uint32_t seed);

}  // namespace efimd::bench
