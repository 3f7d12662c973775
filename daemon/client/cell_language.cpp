#include "daemon/client/cell_language.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lsp/uri.h"

namespace efimd::service {

namespace {

using Row = std::pair<std::string_view, std::string_view>;

constexpr auto kEndings = std::to_array<Row>({
    {"python", "py"},
    {"julia", "jl"},
    {"javascript", "js"},
    {"typescript", "ts"},
    {"shellscript", "sh"},
    {"csharp", "cs"},
    {"fsharp", "fs"},
    {"powershell", "ps1"},
    {"rust", "rs"},
    {"kotlin", "kt"},
    {"ruby", "rb"},
    {"perl", "pl"},
    {"haskell", "hs"},
    {"latex", "tex"},
    {"markdown", "md"},
    {"plaintext", "txt"},
});

/// IPython's own, and those of widely used packages. Others, such as %%time, have Python below them.
constexpr auto kMagics = std::to_array<Row>({
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
  const auto* const found = std::ranges::find(kMagics, magic, &Row::first);
  return found == kMagics.end() ? told : found->second;
}

std::string file_ending(std::string_view language) {
  const auto* const found = std::ranges::find(kEndings, language, &Row::first);
  if (found != kEndings.end()) return std::string(found->second);
  std::string ending;
  for (const char c : language.substr(0, lsp::kPartEndingBytesMax))
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) ending += c;
  return ending.empty() ? "txt" : ending;
}

}  // namespace efimd::service
