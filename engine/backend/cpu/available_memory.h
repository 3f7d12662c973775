#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace efimd::engine::cpu {

/// Bytes that this process may still fill without harm to others: what the system says is
/// available, or what its control groups leave if that is less. Clean pages of files count, because
/// the kernel takes them back. 0 if the system does not say.
///
/// `root` is where /proc and /sys are, for tests.
std::size_t available_memory(const std::filesystem::path& root = "/");

}  // namespace efimd::engine::cpu
