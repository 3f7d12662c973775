#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace efimd::service {

/// Columns of text, aligned for a terminal: the first to the left, the others to the right unless
/// kLeft is given. Widths count code points. Cells are made printable().
enum class Align { kLeft, kRight };
struct Column {
  std::string title;
  Align align = Align::kRight;
};
std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows);

/// "name   value" lines, the values in one column.
std::string listing(const std::vector<std::pair<std::string, std::string>>& lines);

/// "812 B", "12.0 KiB", "15.3 MiB", ...
std::string bytes_text(double bytes);
/// "7.9 M", "494 M", "1.5 B": parameters as models are named.
std::string count_text(double count);
/// "42 s", "12 min", "3 h 20 min", "2 d 4 h".
std::string duration_text(double seconds);

}  // namespace efimd::service
