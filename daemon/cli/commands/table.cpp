#include "daemon/cli/commands/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cwchar>

#include "base/utf8.h"
#include "daemon/config/printable.h"

namespace efimd::service {

namespace {

constexpr std::string_view kGap = "  ";

/// The columns that a terminal gives a code point. The user's locale may know ASCII only, but cells are UTF-8.
std::size_t columns_of(char32_t point) {
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (point < 0x80 || utf8 == nullptr) return 1;
  const locale_t before = ::uselocale(utf8);
  const int columns = ::wcwidth(static_cast<wchar_t>(point));
  ::uselocale(before);
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
}

std::size_t width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::CodePoint point = utf8::decode(text, at);
    columns += columns_of(point.value);
    at += static_cast<std::size_t>(point.length);
  }
  return columns;
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

std::string cropped(std::string_view line, std::size_t columns) {
  std::string kept;
  for (std::size_t at = 0; at < line.size();) {
    const utf8::CodePoint point = utf8::decode(line, at);
    const std::size_t wide = columns_of(point.value);
    if (wide > columns) break;
    columns -= wide;
    const auto length = static_cast<std::size_t>(point.length);
    kept += point.value < 0x20 ? "?" : line.substr(at, length);
    at += length;
  }
  return kept;
}

std::string tail_of(std::string_view path, std::size_t columns) {
  std::size_t left = width(path), at = 0;
  while (left > columns) {
    const utf8::CodePoint point = utf8::decode(path, at);
    left -= columns_of(point.value);
    at += static_cast<std::size_t>(point.length);
  }
  return at == 0 ? std::string(path) : fmt::format("~{}", path.substr(at));
}

}  // namespace efimd::service
