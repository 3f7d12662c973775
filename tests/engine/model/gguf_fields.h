#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace efimd::test {

/// A number of a GGUF file that its reader must not believe.
struct GgufField {
  std::size_t at = 0;    ///< byte
  std::size_t size = 0;  ///< 4 or 8
  std::string name;      ///< the key or tensor that it belongs to; "" in the header
};

/// Every count, length, type, axis and offset in a sound file's header, metadata and tensor
/// directory, and the numbers among its values. Own code, so that the reader under test is not
/// asked where its own fields are. Throws std::logic_error for a file that is not sound.
std::vector<GgufField> gguf_fields(std::string_view bytes);

}  // namespace efimd::test
