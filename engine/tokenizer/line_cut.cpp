#include "engine/tokenizer/line_cut.h"

namespace efimd::engine {

std::size_t line_cut(std::string_view text, NewlineGlue glue) {
  const std::size_t terminator = text.find_last_of("\r\n");
  if (terminator == std::string_view::npos) return 0;
  if (glue == NewlineGlue::kNone) return terminator + 1;
  const std::size_t word = text.find_last_not_of(" \t\r\n\v\f", terminator);
  return word == std::string_view::npos ? 0 : word + 1;
}

}  // namespace efimd::engine
