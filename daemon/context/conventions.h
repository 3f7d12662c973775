#pragma once

#include <string>
#include <string_view>

// What a language's tools agree on, and no text says.
namespace efimd::context {

/// The folder with the same package of what tests are written for: Maven and Gradle keep
/// "src/main/java" beside "src/test/java". Empty if there is none.
std::string tested_folder(std::string_view folder);

/// Whether a module of that name, without a "." in it, is in Python's standard library.
bool is_standard_in_python(std::string_view module);

}  // namespace efimd::context
