#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace efimd {

/// The memory of a control group that has a limit.
struct MemoryGroup {
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t clean_bytes = 0;  ///< of these: pages of files, which the kernel takes back
};

/// The control groups of this process that limit memory, and those around them; of both versions
/// (Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst). Empty if none does.
///
/// `root` is where /proc and /sys are, for tests.
std::vector<MemoryGroup> memory_groups(const std::filesystem::path& root = "/");

}  // namespace efimd
