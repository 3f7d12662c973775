#pragma once

#include <filesystem>
#include <string>

namespace efimd::bench {

/// Writes a model file at the shape of Qwen2.5-Coder-0.5B (494 M weights, tied output) with random weights; `type` as
/// in "Q4_K". As in published files, matrices whose rows a K type does not fit take the older type of the next size.
void write_bench_model(const std::string& type, const std::filesystem::path& path);

}  // namespace efimd::bench
