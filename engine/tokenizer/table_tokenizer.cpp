#include "engine/tokenizer/table_tokenizer.h"

#include <utility>

namespace efimd::engine {

TableTokenizer::TableTokenizer(SpecialTokens special, TokenId bos)
    : special_(std::move(special)), bos_(bos) {
  ends_.reserve(special_.control.size() + 1);
}

void TableTokenizer::add_bytes(std::string_view bytes) {
  const std::size_t token = ends_.size() - 1;
  if (!special_.control[token]) pool_ += bytes;
  ends_.push_back(static_cast<std::uint32_t>(pool_.size()));
}

std::string_view TableTokenizer::bytes(TokenId token) const {
  if (!contains(token)) return {};
  const auto index = static_cast<std::size_t>(token);
  return std::string_view(pool_).substr(ends_[index], ends_[index + 1] - ends_[index]);
}

bool TableTokenizer::is_control(TokenId token) const {
  return contains(token) && special_.control[static_cast<std::size_t>(token)];
}

bool TableTokenizer::ends_generation(TokenId token) const {
  return contains(token) && special_.ends_generation[static_cast<std::size_t>(token)];
}

std::size_t TableTokenizer::line_cut(std::string_view text) const {
  return engine::line_cut(text, glue_);
}

void TableTokenizer::find_newline_glue() {
  for (const std::string_view probe :
       {"a\n    b", "a\n  b", "a\n\tb", "a\n        b", "a\n\n    b", "a\r\n    b", "a;\n\t\tb"}) {
    for (const TokenId token : encode(probe, Fragment::kInside)) {
      const std::string_view text = bytes(token);
      const std::size_t newline = text.find_first_of("\r\n");
      if (newline == std::string_view::npos) continue;
      if (text.find_first_of(" \t", newline) != std::string_view::npos)
        glue_ = NewlineGlue::kIndent;
    }
  }
}

}  // namespace efimd::engine
