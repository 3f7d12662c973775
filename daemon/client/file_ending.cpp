#include "daemon/client/file_ending.h"

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

}  // namespace

std::string file_ending(std::string_view language) {
  const auto* const found = std::ranges::find(kEndings, language, &Row::first);
  if (found != kEndings.end()) return std::string(found->second);
  std::string ending;
  for (const char c : language.substr(0, lsp::kPartEndingBytesMax))
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) ending += c;
  return ending.empty() ? "txt" : ending;
}

}  // namespace efimd::service
