#include "daemon/config/build.h"

#include <sys/stat.h>

#include "daemon/config/this_system.h"
#include "daemon/config/version.h"
#include "lsp/field.h"

namespace efimd::service {

using lsp::Json;

namespace {

constexpr std::size_t kTextBytesMax = 4096;  ///< a path's; longer ones are refused

/// The inode's time of change. Copying, unpacking, moving and linking set it, even if the file's
/// own date is old.
std::int64_t placed_ns(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return 0;
#if defined(__APPLE__)
  const timespec& changed = info.st_ctimespec;
#else
  const timespec& changed = info.st_ctim;
#endif
  return std::int64_t{changed.tv_sec} * 1'000'000'000 + changed.tv_nsec;
}

Build find_this_build() {
  Build build;
  build.version = version();
  build.program = own_executable().map([](const auto& path) { return path.string(); }).value_or("");
  build.installed_ns = placed_ns(build.program);
  build.id = linked_id();
  if (build.id.empty()) build.id = build.version + "@" + std::to_string(build.installed_ns);
  return build;
}

}  // namespace

const Build& this_build() {
  static const Build build = find_this_build();
  return build;
}

Json to_json(const Build& build) {
  return {{"version", build.version},
          {"id", build.id},
          {"installedNs", build.installed_ns},
          {"program", build.program}};
}

std::optional<Build> build_of(const Json& value) {
  if (!value.is_object()) return std::nullopt;
  lsp::Reading reading;
  const lsp::Field field(reading, value, "build");
  Build build;
  build.version = field.member("version").string(kTextBytesMax);
  build.id = field.member("id").string(kTextBytesMax);
  build.installed_ns = field.member("installedNs").integer(0, INT64_MAX);
  build.program = field.member("program").string(kTextBytesMax);
  auto read = reading.finish(std::move(build));
  return read ? std::optional(std::move(*read)) : std::nullopt;
}

}  // namespace efimd::service
