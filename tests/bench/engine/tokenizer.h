#pragma once

#include <filesystem>
#include <vector>

#include "base/error.h"

namespace efimd::bench {

/// Prints a line for each vocabulary (a GGUF file): what opening it takes, MB/s of tokenizing the first
/// megabyte of the sources, and what one typed character costs. kBadInput where the sources are shorter.
Result<void> print_tokenizing(const std::vector<std::filesystem::path>& sources,
                              const std::vector<std::filesystem::path>& vocabularies);

}  // namespace efimd::bench
