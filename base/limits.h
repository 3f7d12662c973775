#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace efimd {

/// Bytes of addresses that this process may have (ulimit -v); nullopt: as many as there are.
std::optional<std::size_t> address_limit();

/// What to do when the system gives no memory or no thread: names the limits that are in force, with
/// their values and the commands that raise them.
std::string remedy_for_no_memory();
std::string remedy_for_no_thread();

}  // namespace efimd
