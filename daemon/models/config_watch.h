#pragma once

#include <functional>
#include <optional>

#include "daemon/config/config.h"
#include "daemon/config/paths.h"

namespace efimd::service {

/// What a start would find in config.toml now.
struct ConfigLook {
  enum class Found {
    kSame,
    kBeingWritten,  ///< perhaps: the file is not as it was at the look before
    kOther,
    kMalformed,  ///< a start would ignore the file, so nobody should start for it
  };
  Found found = Found::kSame;
  std::optional<ConfigWarning> trouble = {};  ///< of a file that is malformed
};

/// Looks whether config.toml is still that of `config`, which is in use. Each call is one look. Until
/// the file changes it costs one stat. A file that cannot be read, as outside a sandbox, tells
/// nothing. EFIMD_MODEL and EFIMD_DEVICE are as this process has them.
///
/// Thread: any. A call during another finds kBeingWritten.
std::function<ConfigLook()> watch_config(const Paths& paths, Config config);

}  // namespace efimd::service
