#pragma once

#include <cstddef>
#include <string_view>

namespace efimd::engine {

/// Whether a vocabulary puts a newline and the blanks after it into one token.
enum class NewlineGlue {
  kNone,    ///< llama, qwen2, deepseek-coder: both sides of a line start tokenize on their own
  kIndent,  ///< starcoder's rule: a run of blanks and newlines is one piece
};

/// Where `text`, which ends at the cursor, may be cut so that both sides tokenize as they do
/// together: after its last line terminator ("\n", "\r\n" or a lone "\r"), or before the whole run
/// of blanks and newlines around it. 0 if it has one line.
std::size_t line_cut(std::string_view text, NewlineGlue glue);

}  // namespace efimd::engine
