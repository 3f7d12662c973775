#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/context/project_paths.h"

namespace efimd::service {

/// Of more the rest is left out: aliases of a project, and targets of each.
inline constexpr std::size_t kAliasesMax = 512;
inline constexpr std::size_t kAliasTargetsMax = 8;

/// What the settings of JavaScript and TypeScript say of imports, by those of `files` that hold some:
/// tsconfig*.json, jsconfig*.json and package.json. Asks the file system.
std::vector<context::Alias> script_aliases(const std::vector<std::string>& files);

/// The aliases of one such file, `path` being absolute: `compilerOptions.paths` and `baseUrl`, or a
/// package's `imports` and `exports` and its main file. `extends` is not followed: settings are for all
/// texts below their folder. Comments and commas at the end of a list are allowed; damaged text has none.
/// Sources: https://www.typescriptlang.org/tsconfig/#paths, https://nodejs.org/api/packages.html
std::vector<context::Alias> aliases_in(const std::string& path, std::string_view text);

}  // namespace efimd::service
