// The input's first byte chooses the language, the rest is the text. Nothing of it is left out of bounds.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/syntax/continuation.h"
#include "daemon/syntax/imports.h"
#include "daemon/syntax/outline.h"

using namespace efimd::syntax;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto grammar = static_cast<Grammar>(data[0] % (static_cast<int>(Grammar::kJava) + 1));
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (imports_of(grammar, text).size() > kImportsMax) std::abort();
  for (const Declaration& declaration : outline_of(grammar, text))
    if (declaration.names.empty() || declaration.text.size() > kDeclarationBytesMax) std::abort();
  // Its second half goes on from the first.
  const std::string_view window = window_before(text.substr(0, text.size() / 2));
  const std::string_view more = text.substr(text.size() / 2);
  if (window.size() > kWindowBytesMax) std::abort();
  if (const auto bytes = accepted_bytes(grammar, window, more); bytes && *bytes > more.size())
    std::abort();
  if (const auto begin = block_begin(grammar, window, more); begin && *begin >= window.size())
    std::abort();
  return 0;
}
