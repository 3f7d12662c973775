#include "daemon/prompt/path_head.h"

#include <algorithm>
#include <string_view>

#include "base/utf8.h"

namespace efimd::prompt {

namespace {

bool can_be_said(std::string_view name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  return !name.empty() && name.size() <= kNameBytesMax && utf8::valid_prefix(name) == name.size() &&
         std::ranges::none_of(name, is_control);
}

}  // namespace

std::vector<engine::TokenId> path_head(const FileName& name, const engine::Tokenizer& tokenizer) {
  const engine::FimTokens& fim = tokenizer.fim();
  const engine::FimFiles& files = fim.files;
  std::vector<engine::TokenId> tokens;
  const auto say = [&](engine::TokenId mark, const std::string& text) {
    if (mark != engine::kNoToken) tokens.push_back(mark);
    const auto said = tokenizer.encode(text, engine::Fragment::kInside);
    tokens.insert(tokens.end(), said.begin(), said.end());
  };
  if (files.place == engine::FimFiles::Place::kNowhere || !can_be_said(name.path)) return tokens;
  if (files.names_repository && fim.repository != engine::kNoToken && can_be_said(name.repository))
    say(fim.repository, name.repository + "\n");
  say(files.mark, files.before_path + name.path + files.after_path);
  return tokens;
}

}  // namespace efimd::prompt
