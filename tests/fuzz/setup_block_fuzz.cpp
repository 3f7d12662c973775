// efimd's lines in a file of the user's are found again, and taking them out leaves every byte; no file makes the reader fall.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "daemon/cli/setup/json_root.h"
#include "daemon/cli/setup/marked_block.h"

using namespace efimd::service;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto syntax = static_cast<Syntax>(data[0] % 5);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  static_cast<void>(find_block(text, syntax));
  if (text.find("efimd setup") != std::string_view::npos)
    return 0;  // the caller has found them before
  const std::string_view lines = syntax == Syntax::kJson ? "\"a\": 1" : "one\ntwo\n";
  const auto changed = with_block(text, syntax, lines, {true, 2});
  if (!changed) return 0;
  const auto found = find_block(*changed, syntax);
  if (!found || !*found || (*found)->rest != text || (*found)->lines != lines) std::abort();
  if (syntax != Syntax::kJson) return 0;
  const auto before = read_json_root(text), after = read_json_root(*changed);
  if (!before || !after || after->keys.size() != before->keys.size() + 1) std::abort();
  return 0;
}
