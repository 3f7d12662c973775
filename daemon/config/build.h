#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lsp/json_rpc.h"

namespace efimd::service {

/// The build of efimd that a process runs, so that two processes that meet know which is the
/// upgrade.
///
/// Two builds differ if their ids do. The later one is the one whose file was installed later,
/// whatever its version. So a downgrade counts as well, and if two builds are used side by side,
/// the same one always wins.
struct Build {
  std::string version;            ///< the project's
  std::string id;                 ///< of the linked program, as its linker wrote it; hexadecimal
  std::int64_t installed_ns = 0;  ///< since 1970: when its file was last put where it lies
  std::string program;            ///< that file

  bool replaces(const Build& other) const {
    return id != other.id && installed_ns > other.installed_ns;
  }
};

/// This process's build. Call it early: it reads the file once, and an upgrade removes the file.
const Build& this_build();

lsp::Json to_json(const Build& build);
/// nullopt if `value` is no build: the oldest versions of efimd send none.
std::optional<Build> build_of(const lsp::Json& value);

}  // namespace efimd::service
