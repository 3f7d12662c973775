#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/context/project_paths.h"

namespace efimd::service {

/// Of more packages the rest is left out.
inline constexpr std::size_t kPackagesMax = 128;

/// The packages of a project, by those of its files that are manifests: go.mod, Cargo.toml and
/// package.json. Asks the file system.
std::vector<context::Package> packages_of(const std::vector<std::string>& files);

/// What the text of a manifest calls its package, as imports write it; empty if it gives no name, and
/// for a file that is no manifest. Damaged text has no name.
std::string package_name(std::string_view file_name, std::string_view text);

}  // namespace efimd::service
