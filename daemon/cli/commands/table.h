#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/amounts.h"

namespace efimd::service {

/// Columns of text, aligned for a terminal. The first goes to the left, the others to the right
/// unless kLeft is given. Widths are those of a terminal: two for most of Chinese, none for an accent
/// that combines. Cells are made printable().
enum class Align { kLeft, kRight };
struct Column {
  std::string title;
  Align align = Align::kRight;
};
std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows);

/// "name   value" lines, the values in one column.
std::string listing(const std::vector<std::pair<std::string, std::string>>& lines);

/// At most `columns` columns of `line`, with no control characters.
std::string cropped(std::string_view line, std::size_t columns);

/// The last `columns` columns of a path, which tell more than its first; "~" stands for those.
std::string tail_of(std::string_view path, std::size_t columns);

}  // namespace efimd::service
