#pragma once

#include <string>

namespace efimd::service {

// Amounts as people read them.

/// "812 B", "12.0 KiB", "15.3 MiB", ...
std::string bytes_text(double bytes);
/// "7.9 M", "494 M", "1.5 B": parameters as models are named.
std::string count_text(double count);
/// "42 s", "12 min", "3 h 20 min", "2 d 4 h".
std::string duration_text(double seconds);

}  // namespace efimd::service
