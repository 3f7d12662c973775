#include "engine/backend/cpu/available_memory.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/control_groups.h"

namespace efimd::engine::cpu {

namespace {

/// A line of /proc/meminfo, "MemAvailable: NUMBER kB".
std::optional<std::uint64_t> available_kibibytes(const std::filesystem::path& meminfo) {
  std::ifstream in(meminfo);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t number = 0;
    if (words >> name >> number && name == "MemAvailable:") return number;
  }
  return std::nullopt;
}

}  // namespace

std::size_t available_memory(const std::filesystem::path& root) {
  const auto kibibytes = available_kibibytes(root / "proc/meminfo");
  if (!kibibytes) return 0;
  std::uint64_t least = *kibibytes * 1024;
  for (const MemoryGroup& group : memory_groups(root)) {
    const std::uint64_t held = group.used_bytes - std::min(group.clean_bytes, group.used_bytes);
    least = std::min(least, group.limit_bytes - std::min(held, group.limit_bytes));
  }
  return static_cast<std::size_t>(least);
}

}  // namespace efimd::engine::cpu
