#include "daemon/cli/commands/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "daemon/config/printable.h"

namespace efimd::service {

namespace {

constexpr std::string_view kGap = "  ";

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return !utf8::is_continuation(byte); }));
}

std::string padded(std::string_view text, std::size_t wanted, Align align) {
  const std::string blanks(wanted - std::min(wanted, width(text)), ' ');
  return align == Align::kLeft ? fmt::format("{}{}", text, blanks)
                               : fmt::format("{}{}", blanks, text);
}

}  // namespace

std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t widest = width(columns[i].title);
    for (const auto& row : rows) widest = std::max(widest, width(printable(row[i])));
    widths.push_back(widest);
  }
  std::string text;
  const auto add = [&](const auto& cell) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i)
      line += fmt::format("{}{}", i > 0 ? kGap : "", padded(cell(i), widths[i], columns[i].align));
    line.erase(line.find_last_not_of(' ') + 1);
    text += fmt::format("{}\n", line);
  };
  add([&](std::size_t i) { return columns[i].title; });
  for (const auto& row : rows) add([&](std::size_t i) { return printable(row[i]); });
  return text;
}

std::string listing(const std::vector<std::pair<std::string, std::string>>& lines) {
  std::size_t widest = 0;
  for (const auto& [name, value] : lines) widest = std::max(widest, width(name));
  std::string text;
  for (const auto& [name, value] : lines)
    text += fmt::format("{}{}{}\n", padded(name, widest, Align::kLeft), kGap, printable(value));
  return text;
}

}  // namespace efimd::service
