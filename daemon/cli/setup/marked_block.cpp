#include "daemon/cli/setup/marked_block.h"

#include <fmt/format.h>

#include <charconv>
#include <span>

#include "base/digest.h"
#include "daemon/cli/setup/json_root.h"

namespace efimd::service {

namespace {

constexpr std::string_view kBegin = ">>> efimd setup, sum ";
constexpr std::string_view kEnd = "<<< efimd setup";
constexpr std::string_view kNewFile = ", new file";
constexpr std::string_view kNewFolders = ", new folders ";
constexpr std::string_view kNewLineEnd = ", new line end";

constexpr std::string_view opener(Syntax syntax) {
  switch (syntax) {
    case Syntax::kJson:
      return "/* ";
    case Syntax::kLisp:
      return ";; ";
    case Syntax::kLua:
      return "-- ";
    case Syntax::kToml:
      return "# ";
    case Syntax::kVim:
      return "\" ";
  }
  return "";
}
constexpr std::string_view closer(Syntax syntax) { return syntax == Syntax::kJson ? " */" : ""; }

std::string sum_of(std::string_view lines) {
  return digest_of(std::as_bytes(std::span(lines))).hex().substr(0, 8);
}

/// With CRLF where `like` has it.
std::string with_ends_of(std::string_view like, std::string_view lines) {
  if (like.find("\r\n") == std::string_view::npos) return std::string(lines);
  std::string text;
  for (const char c : lines) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  return text;
}

std::string with_plain_ends(std::string_view lines) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i] != '\r' || i + 1 == lines.size() || lines[i + 1] != '\n') text += lines[i];
  return text;
}

std::string first_mark(Syntax syntax, std::string_view lines, MadeFor made, bool line_end) {
  std::string mark = fmt::format("{}{}{}", opener(syntax), kBegin, sum_of(lines));
  if (made.file) mark += kNewFile;
  if (made.folders > 0) mark += fmt::format("{}{}", kNewFolders, made.folders);
  if (line_end) mark += kNewLineEnd;
  return mark += closer(syntax);
}

std::string last_mark(Syntax syntax) {
  return fmt::format("{}{}{}", opener(syntax), kEnd, closer(syntax));
}

Result<std::string> with_member(std::string_view text, std::string_view member, MadeFor made) {
  const auto root = read_json_root(text);
  if (!root) return tl::unexpected(root.error());
  const std::string block =
      fmt::format("\n  {}\n  {}{}\n  {}", first_mark(Syntax::kJson, member, made, false), member,
                  root->keys.empty() ? "" : ",", last_mark(Syntax::kJson));
  std::string changed(text);
  changed.insert(root->inside, with_ends_of(text, block));
  return changed;
}

tl::unexpected<Error> damaged(const char* what) {
  return fail(Fault::kBadInput, what, "remove efimd's lines by hand");
}

/// What the first mark says after its sum; the rest of `says` is what is left when it is read.
struct Said {
  MadeFor made;
  bool line_end = false;
};
std::optional<Said> said_by(std::string_view says) {
  Said said;
  const auto take = [&says](std::string_view word) {
    if (!says.starts_with(word)) return false;
    says.remove_prefix(word.size());
    return true;
  };
  said.made.file = take(kNewFile);
  if (take(kNewFolders)) {
    const auto [end, error] =
        std::from_chars(says.data(), says.data() + says.size(), said.made.folders);
    if (error != std::errc()) return std::nullopt;
    says.remove_prefix(static_cast<std::size_t>(end - says.data()));
  }
  said.line_end = take(kNewLineEnd);
  return says.empty() ? std::optional(said) : std::nullopt;
}

}  // namespace

bool lisp_is_whole(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_character =
        c == '?' &&
        (i == 0 || std::string_view(" \t\n(['`,").find(text[i - 1]) != std::string_view::npos);
    if (c == '\\' || is_character) {  // what follows stands for itself; "?\(" is two of them
      i += is_character && i + 1 < text.size() && text[i + 1] == '\\' ? 2 : 1;
    } else if (c == ';') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      if (i >= text.size()) return false;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      if (--depth < 0) return false;
    }
  }
  return depth == 0;
}

Result<std::string> with_block(std::string_view text, Syntax syntax, std::string_view lines,
                               MadeFor made) {
  if (syntax == Syntax::kJson) return with_member(text, lines, made);
  if (syntax == Syntax::kLisp && !lisp_is_whole(text))
    return fail(Fault::kBadInput, "its brackets or quotes do not balance");
  const bool open_line = !text.empty() && text.back() != '\n';
  const std::string block =
      fmt::format("{}{}\n{}{}\n", open_line ? "\n" : "", first_mark(syntax, lines, made, open_line),
                  lines, last_mark(syntax));
  return std::string(text) + with_ends_of(text, block);
}

Result<std::optional<MarkedBlock>> find_block(std::string_view text, Syntax syntax) {
  const std::string first = fmt::format("{}{}", opener(syntax), kBegin), last = last_mark(syntax);
  std::size_t begin = text.find(first);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t mark_end = text.find('\n', begin), end_mark = text.find(last, begin);
  if (text.find(first, begin + 1) != std::string_view::npos || end_mark == std::string_view::npos ||
      mark_end > end_mark)
    return damaged("the marks around efimd's lines are damaged");
  // Each mark has its line to itself, but for blanks before it.
  const auto line_begin = [text](std::size_t at) {
    while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t')) --at;
    return at;
  };
  std::string says =
      with_plain_ends(text.substr(begin + first.size(), mark_end + 1 - begin - first.size()));
  says.resize(says.size() - 1 - std::min(says.size() - 1, closer(syntax).size()));
  MarkedBlock block;
  const std::size_t lines_end = line_begin(end_mark);
  block.lines = with_plain_ends(text.substr(mark_end + 1, lines_end - mark_end - 1));
  std::size_t end = end_mark + last.size();
  begin = line_begin(begin);
  const bool has_crlf = text[mark_end - 1] == '\r';
  const auto drop_line_end = [text, &begin, has_crlf] {
    if (begin > 0 && text[begin - 1] == '\n') --begin;
    if (has_crlf && begin > 0 && text[begin - 1] == '\r') --begin;
  };
  if (syntax == Syntax::kJson) {
    std::string_view member = block.lines;
    member.remove_prefix(std::min(member.find_first_not_of(" \t"), member.size()));
    while (!member.empty() &&
           std::string_view("\n ,").find(member.back()) != std::string_view::npos)
      member.remove_suffix(1);
    block.lines = std::string(member);
    drop_line_end();
  } else {
    if (text.substr(end).starts_with("\r\n")) ++end;
    if (text.substr(end).starts_with("\n")) ++end;
  }
  constexpr std::size_t kSumDigits = 8;
  const auto said =
      said_by(says.size() < kSumDigits ? "?" : std::string_view(says).substr(kSumDigits));
  if (!said || says.substr(0, kSumDigits) != sum_of(block.lines))
    return damaged("efimd's lines in it were changed since");
  if (said->line_end) drop_line_end();
  block.made = said->made;
  block.rest = std::string(text.substr(0, begin)) + std::string(text.substr(end));
  return block;
}

}  // namespace efimd::service
