#pragma once

#include <filesystem>

namespace efimd::bench {

/// Prints what it costs to make small files ready one after the other and packed (packed.h), and files
/// with one head each with a head of its own and with a shared one; in turn, on the CPU.
void print_warming(const std::filesystem::path& model, int threads);

}  // namespace efimd::bench
