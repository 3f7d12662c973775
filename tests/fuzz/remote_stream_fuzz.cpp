// An answer of a server elsewhere is read alike in any pieces, and whatever it is, reading it ends.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/remote/stream.h"

using namespace efimd::remote;

namespace {

/// The text, and whether the answer was one.
std::pair<std::string, bool> read(std::string_view bytes, std::size_t size) {
  StreamReader reader;
  std::string text;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    const auto pieces = reader.feed(bytes.substr(0, size));
    if (!pieces) return {"", false};
    for (const Piece& piece : *pieces) text += piece.text;
  }
  const auto rest = reader.finish();
  if (!rest) return {"", false};
  for (const Piece& piece : *rest) text += piece.text;
  return {text, true};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (read(bytes, 3) != read(bytes, bytes.size() + 1)) std::abort();
  static_cast<void>(first_model(bytes));
  static_cast<void>(token_ids(bytes));
  if (failure_text(bytes).size() > 1000) std::abort();
  return 0;
}
