#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace efimd::lsp {

/// The unit of a Position's `character`: UTF-8 bytes, UTF-16 code units or code points.
enum class PositionEncoding { kUtf8, kUtf16, kUtf32 };

/// "utf-8", "utf-16", "utf-32".
std::string_view encoding_name(PositionEncoding encoding);
std::optional<PositionEncoding> encoding_of(std::string_view name);

/// The encoding to answer with: the first of the client's list that we know. The list is in the
/// client's order of preference (Neovim puts utf-8 first, Emacs utf-32, VS Code offers utf-16
/// only). UTF-16 without a list.
PositionEncoding negotiate(std::span<const std::string> offered);

/// Byte of `character` in a line (valid UTF-8, without its terminator). Past the line's end, it is
/// the line's end. Inside a code point, also between two surrogates, it is that code point's start.
std::size_t byte_of(std::string_view line, std::uint32_t character, PositionEncoding encoding);

/// The inverse: units before `byte`. A byte inside a code point counts as its start; past the end,
/// as the end.
std::uint32_t character_of(std::string_view line, std::size_t byte, PositionEncoding encoding);

}  // namespace efimd::lsp
