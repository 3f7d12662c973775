#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lsp/field.h"
#include "lsp/protocol.h"

namespace efimd::lsp {

// What messages about documents and those about notebooks have in common.

inline constexpr std::size_t kNameBytesMax = 4096;
inline constexpr std::int64_t kUintegerMax = 0x7FFF'FFFF;  ///< LSP's uinteger

/// What `read` makes of each element; nothing of a list that is not there.
template <class Read>
auto all_of(const Field& list, Read read) {
  const std::size_t count = list.array_size();
  std::vector<decltype(read(list))> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) all.push_back(read(list.element(i)));
  return all;
}

/// The params. Absent ones are refused.
Field root_of(Reading& reading, const Json& params);
Position position_in(const Field& field);
Range range_in(const Field& field);
/// The list must be there.
std::vector<TextDocumentContentChangeEvent> changes_in(const Field& list);
/// Of a text document with or without its text. A version is only told again. So a document is not lost
/// to one that is no integer of LSP, such as a time in milliseconds.
std::optional<std::int32_t> version_in(const Field& document);
/// A TextDocumentItem.
DidOpenTextDocumentParams document_in(const Field& item);

}  // namespace efimd::lsp
