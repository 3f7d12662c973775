#include "base/control_groups.h"

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace efimd {

namespace {

namespace fs = std::filesystem;

/// A file of one number; nothing if it says "max" or is not there.
std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t number = 0;
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
/// The first version has a number of this size where there is no limit.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60U;

std::uint64_t clean_in(const fs::path& group, const GroupFiles& files) {
  std::uint64_t clean = 0;
  std::ifstream in(group / "memory.stat");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t number = 0;
    if (words >> name >> number && (name == files.clean[0] || name == files.clean[1]))
      clean += number;
  }
  return clean;
}

void add_group(const fs::path& group, const GroupFiles& files, std::vector<MemoryGroup>& found) {
  const auto limit = number_in(group / files.limit);
  if (!limit || *limit == 0 || *limit >= kNoLimit) return;
  found.push_back({*limit, number_in(group / files.used).value_or(0), clean_in(group, files)});
}

/// The group and those around it, each of which has a limit of its own.
void add_groups(const fs::path& mount, fs::path group, const GroupFiles& files,
                std::vector<MemoryGroup>& found) {
  for (group = group.lexically_normal().relative_path();; group = group.parent_path()) {
    add_group(mount / group, files, found);
    if (group.empty()) return;
  }
}

}  // namespace

std::vector<MemoryGroup> memory_groups(const fs::path& root) {
  std::vector<MemoryGroup> found;
  std::ifstream in(root / "proc/self/cgroup");
  // "NUMBER:CONTROLLERS:PATH"
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1);
    const fs::path mount = root / "sys/fs/cgroup";
    if (controllers == ",,")
      add_groups(mount, group, kVersion2, found);
    else if (controllers.find(",memory,") != std::string::npos)
      add_groups(mount / "memory", group, kVersion1, found);
  }
  return found;
}

}  // namespace efimd
