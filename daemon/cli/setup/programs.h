#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace efimd::service {

/// The program of that name on the PATH; nullopt if there is none.
std::optional<std::filesystem::path> find_program(std::string_view name);

struct Ran {
  int status = 0;      ///< 128 and the signal if one ended it
  std::string output;  ///< stdout and stderr, at most kOutputBytesMax
};
inline constexpr std::size_t kOutputBytesMax = std::size_t{1} << 20;
inline constexpr std::chrono::seconds kProgramMax{120};  ///< editors start slowly on a busy machine

/// Runs a program with nothing on its stdin, and waits. kNotReady past kProgramMax, and then it is
/// killed; kNotFound if it cannot be started.
Result<Ran> run_quietly(const std::vector<std::string>& words);

/// Runs a program with this process's streams, and waits; its exit status.
Result<int> run_shown(const std::vector<std::string>& words);

}  // namespace efimd::service
