#pragma once

#include <span>
#include <string_view>

namespace efimd::service {

/// Some files of this tree in C++, Python, TypeScript and Lua, as they were at build time. They are
/// real code for measurements on machines that have only the program.
std::span<const std::string_view> sample_code();

}  // namespace efimd::service
