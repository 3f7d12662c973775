#include "engine/backend/cpu/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace efimd::engine::cpu {

namespace {

namespace fs = std::filesystem;

/// The number after `key` in lines of "KEY NUMBER ...".
std::optional<std::size_t> number_of(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    std::size_t number = 0;
    if (words >> name >> number && name == key) return number;
  }
  return std::nullopt;
}

/// A file of one number; nothing if it says "max" or is not there.
std::optional<std::size_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::size_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

/// The names of a group's files, which differ between the versions of control groups.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* clean[2];  ///< of memory.stat
};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", {"inactive_file", "active_file"}};
constexpr GroupFiles kVersion1{
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};

/// The memory that a group leaves; nothing if it has no limit.
std::optional<std::size_t> left_in(const fs::path& group, const GroupFiles& files) {
  const auto limit = number_in(group / files.limit);
  const auto used = number_in(group / files.used);
  if (!limit || !used) return std::nullopt;
  std::size_t clean = 0;
  for (const char* key : files.clean) clean += number_of(group / "memory.stat", key).value_or(0);
  const std::size_t held = *used - std::min(clean, *used);
  return *limit - std::min(held, *limit);
}

/// The least that a group and those around it leave.
std::size_t least_of_groups(const fs::path& mount, fs::path group, const GroupFiles& files) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (group = group.relative_path();; group = group.parent_path()) {
    least = std::min(least, left_in(mount / group, files).value_or(least));
    if (group.empty()) return least;
  }
}

/// Over the groups of this process: lines of "NUMBER:CONTROLLERS:PATH".
std::size_t left_by_groups(const fs::path& root) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1);
    const fs::path mount = root / "sys/fs/cgroup";
    if (controllers == ",,")
      least = std::min(least, least_of_groups(mount, group, kVersion2));
    else if (controllers.find(",memory,") != std::string::npos)
      least = std::min(least, least_of_groups(mount / "memory", group, kVersion1));
  }
  return least;
}

}  // namespace

std::size_t available_memory(const fs::path& root) {
  const auto kibibytes = number_of(root / "proc/meminfo", "MemAvailable:");
  return kibibytes ? std::min(*kibibytes * 1024, left_by_groups(root)) : 0;
}

}  // namespace efimd::engine::cpu
