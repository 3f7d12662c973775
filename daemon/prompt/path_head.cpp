#include "daemon/prompt/path_head.h"

#include <algorithm>
#include <string_view>

#include "base/utf8.h"

namespace efimd::prompt {

namespace {

using Place = engine::FimFiles::Place;

bool can_be_said(std::string_view name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  return !name.empty() && name.size() <= kNameBytesMax && utf8::valid_prefix(name) == name.size() &&
         std::ranges::none_of(name, is_control);
}

}  // namespace

PathHead path_head(const FileName& name, const engine::Tokenizer& tokenizer) {
  const engine::FimTokens& fim = tokenizer.fim();
  const engine::FimFiles& files = fim.files;
  PathHead head;
  const auto say = [&](std::vector<engine::TokenId>& tokens, const std::string& text) {
    const auto said = tokenizer.encode(text, engine::Fragment::kInside);
    tokens.insert(tokens.end(), said.begin(), said.end());
  };
  if (files.place == Place::kNowhere || !can_be_said(name.path)) return head;
  if (files.names_repository && fim.repository != engine::kNoToken &&
      can_be_said(name.repository)) {
    head.front.push_back(fim.repository);
    say(head.front, name.repository + files.after_repository);
  }
  if (files.mark != engine::kNoToken) head.front.push_back(files.mark);
  say(files.place == Place::kInsidePrefix ? head.inside : head.front,
      files.before_path + name.path + files.after_path);
  return head;
}

}  // namespace efimd::prompt
