// The input is a list of edits: three bytes (begin, end, length), then the text. After each the
// snapshot is valid UTF-8 and its line index is that of its bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"
#include "daemon/text/document.h"
#include "daemon/text/indentation.h"

using namespace efimd::text;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kInputBytesMax = 4096;
  std::string_view input(reinterpret_cast<const char*>(data), std::min(size, kInputBytesMax));
  Document document("");
  while (input.size() >= 3) {
    const auto begin = static_cast<std::uint8_t>(input[0]);
    const auto end = static_cast<std::uint8_t>(input[1]);
    const std::size_t length = static_cast<std::uint8_t>(input[2]) % 16;
    input.remove_prefix(3);
    if (!document.replace(begin, end, input.substr(0, length))) std::abort();
    input.remove_prefix(std::min(length, input.size()));
    const std::string_view bytes = document.snapshot()->bytes();
    if (efimd::utf8::valid_prefix(bytes) != bytes.size()) std::abort();
    if (!(document.snapshot()->lines() == LineIndex(bytes))) std::abort();
    indentation_of(bytes, begin);
  }
  return 0;
}
