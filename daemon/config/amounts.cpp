#include "daemon/config/amounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace efimd::service {

std::string bytes_text(double bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string count_text(double count) {
  if (count < 1e6) return fmt::format("{:.0f}", count);
  const bool billions = count >= 999.5e6;
  const double value = count / (billions ? 1e9 : 1e6);
  return fmt::format("{:.{}f} {}", value, value < 99.5 ? 1 : 0, billions ? 'B' : 'M');
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(seconds, 0.0));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min", whole / 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {} h", whole / 86400, whole % 86400 / 3600);
}

}  // namespace efimd::service
