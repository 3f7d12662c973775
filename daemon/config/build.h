#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lsp/json_rpc.h"

namespace efimd::service {

/// Which efimd a process runs, so that two that meet can tell which of them is the upgrade.
///
/// Two builds differ when their ids do. The later one is the one whose file came to its place later,
/// whatever its version says: so a downgrade counts as well, and of two that are in use side by side
/// one wins for good.
struct Build {
  std::string version;            ///< the project's
  std::string id;                 ///< of the linked program, as its linker noted it; hexadecimal
  std::int64_t installed_ns = 0;  ///< since 1970: when its file was last put where it lies
  std::string program;            ///< that file

  bool replaces(const Build& other) const {
    return id != other.id && installed_ns > other.installed_ns;
  }
};

/// This process's. To be called early: the file is looked at once, and an upgrade takes it away.
const Build& this_build();

lsp::Json to_json(const Build& build);
/// nullopt where `value` is no build: an efimd of before there were any says nothing of it.
std::optional<Build> build_of(const lsp::Json& value);

}  // namespace efimd::service
