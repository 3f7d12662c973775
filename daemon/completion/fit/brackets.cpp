#include "daemon/completion/fit/brackets.h"

#include <algorithm>
#include <array>
#include <utility>

namespace efimd::completion {

namespace {

constexpr auto kNone = std::string_view::npos;
/// Bytes between the quotes of '\U0010FFFF' and '\u{10FFFF}'.
constexpr std::size_t kCharLiteralBytesMax = 12;

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_angle(std::string_view text, std::size_t at) {
  const char before = at > 0 ? text[at - 1] : '\0';
  const char behind = at + 1 < text.size() ? text[at + 1] : '\0';
  if (text[at] == '<') return behind != '=';
  return text[at] == '>' && behind != '=' && before != '-' && before != '=';
}

/// The quote that closes, on its line, the string opened at `open`; kNone when there is none.
std::size_t closing_quote(std::string_view text, std::size_t open) {
  for (std::size_t at = open + 1; at < text.size() && text[at] != '\n'; ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == text[open]) {
      return at;
    }
  }
  return kNone;
}

/// The same where the string has code in it, with strings of its own: "#{f("a)")}", "$(dirname "$0")".
/// kNone if it has none, or not all of it lies on the line in the first kInterpolatedBytesMax.
std::size_t interpolated_end(std::string_view text, std::size_t open) {
  constexpr std::size_t kInterpolatedBytesMax = 512;
  if (text[open] == '\'') return kNone;
  text = text.substr(0, open + kInterpolatedBytesMax);
  std::string inside(1, text[open]);  // what ends each string, or the code in it, outermost first
  bool has_code = false;
  for (std::size_t at = open + 1; at < text.size() && text[at] != '\n'; ++at) {
    const char end = inside.back();
    const bool in_code = end == '}' || end == ')';
    const std::string_view rest = text.substr(at);
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == end) {
      inside.pop_back();
      if (inside.empty()) return has_code ? at : kNone;
    } else if (in_code && (text[at] == '"' || text[at] == '\'' || text[at] == '`')) {
      inside += text[at];
    } else if (in_code && is_opener(text[at]) && closer_of(text[at]) == end) {
      inside += end;
    } else if (end != '\'' &&
               (rest.starts_with("#{") || rest.starts_with("${") || rest.starts_with("$("))) {
      inside += closer_of(text[++at]);
      has_code = true;
    }
  }
  return kNone;
}

/// Where the character literal opened at `open` ends; kNone when this is none.
std::size_t char_literal_end(std::string_view text, std::size_t open) {
  const std::string_view rest = text.substr(open + 1, kCharLiteralBytesMax);
  if (rest.starts_with('\\')) {
    const std::size_t end = rest.find('\'', 2);
    return end == kNone ? kNone : open + 1 + end;
  }
  std::size_t end = 1;  // after one code point
  while (end < rest.size() && (static_cast<unsigned char>(rest[end]) & 0xC0U) == 0x80) ++end;
  return end < rest.size() && rest[0] != '\'' && rest[end] == '\'' ? open + 1 + end : kNone;
}

/// Words of JavaScript that a value may follow.
bool is_keyword(std::string_view word) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"return", "case", "typeof", "in", "of", "from", "import", "else", "do", "void", "delete",
       "default", "instanceof", "new", "throw", "await", "yield"});
  return std::ranges::find(kWords, word) != kWords.end();
}

/// Where the regular expression opened at `open` ends; kNone when this is none. "/" followed by ">"
/// ends a tag of JSX.
std::size_t regex_end(std::string_view text, std::size_t open) {
  constexpr std::size_t kRegexBytesMax = 512;
  text = text.substr(0, open + kRegexBytesMax);
  if (text.substr(open + 1).starts_with('>')) return kNone;
  bool in_class = false;
  for (std::size_t at = open + 1; at < text.size() && text[at] != '\n'; ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '/' && !in_class) {
      return at;
    } else if (text[at] == '[' || text[at] == ']') {
      in_class = text[at] == '[';
    }
  }
  return kNone;
}

class Scanner {
 public:
  Scanner(std::string_view text, const Language& language, Lexical state, Also also)
      : text_(text),
        language_(language),
        state_(std::move(state)),
        also_(also),
        previous_(state_.previous),
        parens_(state_.parens) {}

  Scan run() {
    while (at_ < text_.size()) state_.in == Lexical::In::kCode ? step_code() : step_inside();
    result_.end = std::move(state_);
    result_.end.previous = text_.empty() ? previous_ : text_.back();
    result_.end.parens = parens_;
    return std::move(result_);
  }

 private:
  bool here(std::string_view what) const {
    return !what.empty() && text_.substr(at_).starts_with(what);
  }

  void enter(Lexical::In in, std::size_t opening, std::string until, bool escapes, bool spans) {
    state_ = {in, std::move(until), escapes, spans, at_};
    at_ += opening;
  }
  void leave() { state_ = {}; }

  void step_inside() {
    if (here(state_.until)) {
      // A line comment leaves its line's end to the code.
      if (state_.until != "\n") at_ += state_.until.size();
      if (state_.in == Lexical::In::kString) result_.closed.push_back(at_);
      leave();
    } else if (text_[at_] == '\n' && !state_.spans_lines) {
      result_.unclosed.push_back(state_.begin);
      leave();
    } else {
      at_ += text_[at_] == '\\' && state_.escapes && at_ + 1 < text_.size() ? 2 : 1;
    }
  }

  void step_code() {
    const char c = text_[at_];
    if (comment() || raw_string() || regex(c) || is_apostrophe(c) || string(c)) return;
    if (c == '\\') {
      at_ += at_ + 1 < text_.size() && text_[at_ + 1] != '\n' ? 2 : 1;
      return;
    }
    if (is_wanted(c) && !ends_pattern(c)) result_.brackets.push_back({at_, c});
    ++at_;
  }

  /// The byte before the current one.
  char previous() const { return at_ > 0 ? text_[at_ - 1] : previous_; }

  /// Whether `c` ends a pattern of a shell's case: "start)".
  bool ends_pattern(char c) {
    if (!language_.shell || (c != '(' && c != ')')) return false;
    if (c == ')' && parens_ == 0) return true;
    parens_ += c == '(' ? 1 : -1;
    return false;
  }

  bool is_wanted(char c) const {
    if (c == '<' || c == '>') return also_ == Also::kAngles && is_angle(text_, at_);
    if (c == ',' || c == ';' || c == '\n') return also_ == Also::kSeparators;
    return is_opener(c) || is_closer(c);
  }

  bool comment() {
    if (language_.shell && std::string_view(" \t\n;&|()").find(previous()) == kNone) return false;
    for (const std::string_view mark : language_.line_comments) {
      if (!here(mark)) continue;
      enter(Lexical::In::kComment, mark.size(), "\n", false, true);
      return true;
    }
    if (!here(language_.comment_open)) return false;
    enter(Lexical::In::kComment, language_.comment_open.size(),
          std::string(language_.comment_close), false, true);
    return true;
  }

  /// R"x(...)x" and r#"..."#: from the R or r on.
  bool raw_string() {
    if (language_.raw == Language::Raw::kNone) return false;
    const bool cpp = language_.raw == Language::Raw::kCpp;
    if (text_[at_] != (cpp ? 'R' : 'r')) return false;
    if (!cpp && at_ > 0 && is_name_byte(text_[at_ - 1]) && text_[at_ - 1] != 'b') return false;
    std::string_view rest = text_.substr(at_ + 1);
    if (cpp) {
      const std::size_t open = rest.find_first_of("( )\\\n");
      if (!rest.starts_with('"') || open == kNone || rest[open] != '(') return false;
      enter(Lexical::In::kString, open + 2, ")" + std::string(rest.substr(1, open - 1)) + "\"",
            false, true);
      return true;
    }
    const std::size_t hashes = std::min(rest.find_first_not_of('#'), rest.size());
    if (hashes == rest.size() || rest[hashes] != '"') return false;
    enter(Lexical::In::kString, hashes + 2, "\"" + std::string(hashes, '#'), false, true);
    return true;
  }

  /// JavaScript's /x/: behind a sign or a word that a value may follow.
  bool regex(char c) {
    if (!language_.javascript || c != '/') return false;
    const std::size_t end = may_begin_value() ? regex_end(text_, at_) : kNone;
    at_ = end == kNone ? at_ + 1 : end + 1;
    return true;
  }

  bool may_begin_value() const {
    const std::size_t last = at_ == 0 ? kNone : text_.find_last_not_of(" \t\n", at_ - 1);
    const char before = last == kNone ? previous_ : text_[last];
    if (before == '>') return last != kNone && last > 0 && text_[last - 1] == '=';
    if (is_name_byte(before)) return last != kNone && is_keyword(name_before(last + 1));
    return std::string_view("(,=:[!&|?{;+-*%~^\n").find(before) != kNone;
  }

  /// The name that ends at `end`.
  std::string_view name_before(std::size_t end) const {
    std::size_t begin = end;
    while (begin > 0 && is_name_byte(text_[begin - 1])) --begin;
    return text_.substr(begin, end - begin);
  }

  /// "'" behind a name of JavaScript: code has none there, but the text of JSX.
  bool is_apostrophe(char c) {
    const char before = previous();
    const bool is_name = is_name_byte(before) || static_cast<unsigned char>(before) >= 0x80;
    if (!language_.javascript || c != '\'' || !is_name) return false;
    if (is_keyword(name_before(at_))) return false;
    ++at_;
    return true;
  }

  bool string(char c) {
    for (const std::string_view quote : language_.long_quotes) {
      if (!here(quote)) continue;
      const bool escapes = quote != "`" || language_.name != "go";
      enter(Lexical::In::kString, quote.size(), std::string(quote), escapes, true);
      return true;
    }
    if (c == '\'' && language_.char_literals) {
      const std::size_t end = char_literal_end(text_, at_);
      at_ = end == kNone ? at_ + 1 : end + 1;
      return true;
    }
    if (language_.quotes.find(c) == kNone) return false;
    if (language_.quotes_are_guessed) {
      const bool lifetime =
          c == '\'' && at_ > 0 && (text_[at_ - 1] == '&' || text_[at_ - 1] == '<');
      std::size_t end = lifetime ? kNone : interpolated_end(text_, at_);
      if (end == kNone && !lifetime) end = closing_quote(text_, at_);
      at_ = end == kNone ? at_ + 1 : end + 1;
      return true;
    }
    enter(Lexical::In::kString, 1, std::string(1, c), true, false);
    return true;
  }

  std::string_view text_;
  const Language& language_;
  Lexical state_;
  Also also_;
  char previous_;  ///< the byte before the text
  int parens_;     ///< Lexical::parens
  std::size_t at_ = 0;
  Scan result_;
};

}  // namespace

bool is_opener(char c) { return c == '(' || c == '[' || c == '{' || c == '<'; }
bool is_closer(char c) { return c == ')' || c == ']' || c == '}' || c == '>'; }

char closer_of(char opener) {
  switch (opener) {
    case '(':
      return ')';
    case '[':
      return ']';
    case '{':
      return '}';
    default:
      return '>';
  }
}

Scan scan(std::string_view text, const Language& language, Lexical begin, Also also) {
  return Scanner(text, language, std::move(begin), also).run();
}

int depth_after(int depth, std::string_view line, const Language& language, Lexical& state,
                std::size_t forgiving) {
  const int floor = depth;
  Scan read = scan(std::string(line) + "\n", language, std::move(state));
  for (const Bracket& bracket : read.brackets) {
    if (language.prose) break;
    depth += is_opener(bracket.c) ? 1 : -1;
    if (bracket.at < forgiving) depth = std::max(depth, floor);
  }
  state = std::move(read.end);
  return depth;
}

}  // namespace efimd::completion
