#include "daemon/prompt/path_head.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/utf8.h"

namespace efimd::prompt {

namespace {

using engine::TokenId;
using Place = engine::FimFiles::Place;

/// With fewer tokens left a file is not begun.
constexpr std::size_t kFileTokensMin = 16;

bool can_be_said(std::string_view name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  return !name.empty() && name.size() <= kNameBytesMax && utf8::valid_prefix(name) == name.size() &&
         std::ranges::none_of(name, is_control);
}

/// `text`, or as many of its first lines as have no more than `most` tokens.
std::vector<TokenId> lines_within(std::string_view text, std::size_t most,
                                  const engine::Tokenizer& tokenizer) {
  std::vector<TokenId> tokens = tokenizer.encode(text, engine::Fragment::kInside);
  if (tokens.size() <= most) return tokens;
  std::size_t bytes = 0;
  for (const TokenId token : std::span(tokens).first(most)) bytes += tokenizer.bytes(token).size();
  while (true) {
    const std::size_t line_end = bytes == 0 ? std::string_view::npos : text.rfind('\n', bytes - 1);
    if (line_end == std::string_view::npos) return {};
    tokens = tokenizer.encode(text.substr(0, line_end + 1), engine::Fragment::kInside);
    if (tokens.size() <= most) return tokens;
    bytes = line_end;
  }
}

/// How a file's path is said, behind its mark.
std::string path_line(const std::string& path, const engine::FimFiles& files) {
  if (!files.paths_are_comments) return files.before_path + path + files.after_path;
  const bool is_python = path.ends_with(".py") || path.ends_with(".pyi");
  return (is_python ? "# " : "// ") + path + files.after_path;
}

/// A file's mark, path and lines in at most `most` tokens; empty if they do not suffice.
std::vector<TokenId> other_file(const context::Slot& slot, std::size_t most,
                                const engine::Tokenizer& tokenizer) {
  const engine::FimFiles& files = tokenizer.fim().files;
  if (!files.shows_others || !can_be_said(slot.path)) return {};
  std::vector<TokenId> tokens;
  if (files.mark != engine::kNoToken) tokens.push_back(files.mark);
  const auto path = tokenizer.encode(path_line(slot.path, files), engine::Fragment::kInside);
  tokens.insert(tokens.end(), path.begin(), path.end());
  if (tokens.size() + kFileTokensMin > most) return {};
  const auto text = lines_within(slot.text, most - tokens.size(), tokenizer);
  if (text.empty()) return {};
  tokens.insert(tokens.end(), text.begin(), text.end());
  return tokens;
}

}  // namespace

PathHead path_head(const FileName& name, const engine::Tokenizer& tokenizer) {
  return path_head(name, {}, 0, tokenizer);
}

PathHead path_head(const FileName& name, const context::Head& others, std::size_t tokens_max,
                   const engine::Tokenizer& tokenizer) {
  const engine::FimTokens& fim = tokenizer.fim();
  const engine::FimFiles& files = fim.files;
  PathHead head;
  const auto say = [&](std::vector<TokenId>& tokens, const std::string& text) {
    const auto said = tokenizer.encode(text, engine::Fragment::kInside);
    tokens.insert(tokens.end(), said.begin(), said.end());
  };
  if (files.place == Place::kNowhere || !can_be_said(name.path)) return head;
  if (files.names_repository && fim.repository != engine::kNoToken &&
      can_be_said(name.repository)) {
    head.front.push_back(fim.repository);
    say(head.front, name.repository + files.after_repository);
  }
  // A mark stands before the whole prompt, also of other files; without one their text is the prefix's.
  const bool in_prefix = files.place == Place::kInsidePrefix && files.mark == engine::kNoToken;
  std::vector<TokenId>& shown = in_prefix ? head.inside : head.front;
  const std::size_t begin = shown.size();
  for (const context::Slot& slot : others.slots) {
    const auto file = other_file(slot, tokens_max - (shown.size() - begin), tokenizer);
    if (file.empty()) continue;
    shown.insert(shown.end(), file.begin(), file.end());
    ++head.other_files;
  }
  head.other_tokens = static_cast<int>(shown.size() - begin);
  if (files.paths_are_comments && head.other_files == 0) return head;
  if (files.mark != engine::kNoToken) head.front.push_back(files.mark);
  say(files.place == Place::kInsidePrefix ? head.inside : head.front, path_line(name.path, files));
  return head;
}

std::size_t declaration_bytes(std::size_t tokens, const engine::Tokenizer& tokenizer) {
  constexpr std::string_view kSample =
      "class Reader {\n  Result<std::string> read(const std::string& path, int bytes_max) const;\n"
      "func (s *Server) Close(ctx context.Context) error\n"
      "    def find_all(self, name: str, limit: int = 10) -> list[Item]:\n"
      "export interface Options { timeout?: number; onError(error: Error): void }\n"
      "pub fn parse_header(input: &[u8], offset: usize) -> Option<Header>;\n";
  const std::size_t sampled = tokenizer.encode(kSample, engine::Fragment::kInside).size();
  return tokens * kSample.size() / std::max<std::size_t>(sampled, 1) * 9 / 10;
}

std::vector<TokenId> edited_texts(std::span<const context::Slot> texts, std::size_t tokens_max,
                                  const engine::Tokenizer& tokenizer) {
  if (tokenizer.fim().order != engine::FimOrder::kPsm ||
      tokenizer.fim().files.mark == engine::kNoToken)
    return {};
  std::vector<TokenId> tokens;
  for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
    const auto file = other_file(*text, tokens_max - tokens.size(), tokenizer);
    tokens.insert(tokens.begin(), file.begin(), file.end());
  }
  return tokens;
}

}  // namespace efimd::prompt
