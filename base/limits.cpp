#include "base/limits.h"

#include <sys/resource.h>

namespace efimd {

namespace {

std::optional<std::size_t> limit(__rlimit_resource resource) {
  rlimit found{};
  if (::getrlimit(resource, &found) != 0 || found.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<std::size_t>(found.rlim_cur);
}

}  // namespace

std::optional<std::size_t> address_limit() { return limit(RLIMIT_AS); }

std::string remedy_for_no_memory() {
  const auto addresses = address_limit();
  if (!addresses) return "close other programs, or choose a smaller model";
  return "raise the limit of memory: 'ulimit -v' says " + std::to_string(*addresses >> 10U) +
         " KiB, and 1048576 is enough for the bundled model";
}

std::string remedy_for_no_thread() {
  // A thread needs memory for its stack, and the system has one error for both.
  std::string remedy = address_limit() ? remedy_for_no_memory() : "";
  if (const auto processes = limit(RLIMIT_NPROC)) {
    if (!remedy.empty()) remedy += "; or ";
    remedy += "raise the limit of processes: 'ulimit -u' says " + std::to_string(*processes) +
              ", for all programs of this user";
  }
  return remedy.empty() ? "end other programs" : remedy;
}

}  // namespace efimd
