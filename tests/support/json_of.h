#pragma once

#include <stdexcept>
#include <string_view>

#include "base/utf8.h"
#include "lsp/json_rpc.h"

namespace efimd::test {

/// As Json::parse, which makes a parser of its own in each program that calls it: seconds of compiling, and the linker may take
/// the unoptimized one for the product's, too. Text that the product would repair is refused.
inline lsp::Json json_of(std::string_view text) {
  if (utf8::valid_prefix(text) != text.size()) throw std::invalid_argument("not UTF-8");
  return lsp::parse_json(text).value();
}

}  // namespace efimd::test
