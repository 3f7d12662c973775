#include "daemon/text/cell_language.h"

#include <algorithm>
#include <array>
#include <utility>

namespace efimd::text {

namespace {

using Magic = std::pair<std::string_view, std::string_view>;

/// IPython's own, and those of widely used packages. Others, such as %%time, have Python below them.
constexpr auto kMagics = std::to_array<Magic>({
    {"bash", "shellscript"},
    {"sh", "shellscript"},
    {"html", "html"},
    {"HTML", "html"},
    {"svg", "xml"},
    {"SVG", "xml"},
    {"javascript", "javascript"},
    {"js", "javascript"},
    {"latex", "latex"},
    {"markdown", "markdown"},
    {"perl", "perl"},
    {"ruby", "ruby"},
    {"sql", "sql"},
    {"R", "r"},
    {"julia", "julia"},
});

}  // namespace

std::string_view cell_language(std::string_view told, std::string_view text) {
  if (told.empty()) return "plaintext";
  if (told != "python" || !text.starts_with("%%")) return told;
  text.remove_prefix(2);
  const std::string_view magic = text.substr(0, text.find_first_of(" \t\n"));
  const auto* const found = std::ranges::find(kMagics, magic, &Magic::first);
  return found == kMagics.end() ? told : found->second;
}

}  // namespace efimd::text
