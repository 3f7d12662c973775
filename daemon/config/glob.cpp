#include "daemon/config/glob.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace efimd::service {

namespace {

/// One piece of a pattern.
struct Piece {
  enum class Kind { kLiteral, kAnyChar, kClass, kStar, kEverything, kFolders };
  Kind kind = Kind::kLiteral;
  char literal = 0;
  std::string_view members;  ///< of a class, without brackets and "!"
  bool negated = false;
};

/// Where the name in "[:name:]" ends that begins at `at`; npos if none begins there.
std::size_t name_end(std::string_view text, std::size_t at) {
  return text.substr(at, 2) == "[:" ? text.find(":]", at + 2) : std::string_view::npos;
}

/// In a class of POSIX. The locale is that of C, as git's is.
bool in_named(std::string_view name, char c) {
  using Test = int (*)(int);
  constexpr auto kTests =
      std::to_array<std::pair<std::string_view, Test>>({{"alnum", std::isalnum},
                                                        {"alpha", std::isalpha},
                                                        {"blank", std::isblank},
                                                        {"cntrl", std::iscntrl},
                                                        {"digit", std::isdigit},
                                                        {"graph", std::isgraph},
                                                        {"lower", std::islower},
                                                        {"print", std::isprint},
                                                        {"punct", std::ispunct},
                                                        {"space", std::isspace},
                                                        {"upper", std::isupper},
                                                        {"xdigit", std::isxdigit}});
  return std::ranges::any_of(kTests, [&](const auto& test) {
    return test.first == name && test.second(static_cast<unsigned char>(c)) != 0;
  });
}

bool in_class(std::string_view members, char c) {
  for (std::size_t at = 0; at < members.size(); ++at) {
    if (const std::size_t end = name_end(members, at); end != std::string_view::npos) {
      if (in_named(members.substr(at + 2, end - at - 2), c)) return true;
      at = end + 1;
      continue;
    }
    char low = members[at];
    if (low == '\\' && at + 1 < members.size()) low = members[++at];
    if (at + 2 < members.size() && members[at + 1] == '-') {
      if (low <= c && c <= members[at + 2]) return true;
      at += 2;
    } else if (low == c) {
      return true;
    }
  }
  return false;
}

/// The class that begins after the "[" at `at`, which moves after its "]"; false when it has none.
bool take_class(std::string_view pattern, std::size_t& at, Piece& piece) {
  std::size_t begin = at + 1;
  piece.negated = begin < pattern.size() && (pattern[begin] == '!' || pattern[begin] == '^');
  if (piece.negated) ++begin;
  std::size_t end = begin;
  for (; end < pattern.size() && (pattern[end] != ']' || end == begin); ++end) {
    // A "]" that comes first is a member, as is one behind "\\"; names have brackets of their own.
    if (pattern[end] == '\\') ++end;
    if (const std::size_t name = name_end(pattern, end); name != std::string_view::npos)
      end = name + 1;
  }
  if (end >= pattern.size()) return false;
  piece.kind = Piece::Kind::kClass;
  piece.members = pattern.substr(begin, end - begin);
  at = end + 1;
  return true;
}

/// "**": over parts when it is a part of its own.
void take_stars(std::string_view pattern, std::size_t& at, Piece& piece) {
  const bool starts_part = at == 0 || pattern[at - 1] == '/';
  std::size_t end = pattern.find_first_not_of('*', at);
  if (end == std::string_view::npos) end = pattern.size();
  piece.kind = Piece::Kind::kStar;
  if (end - at == 2 && starts_part) {
    if (end == pattern.size()) piece.kind = Piece::Kind::kEverything;
    if (end < pattern.size() && pattern[end] == '/') {
      piece.kind = Piece::Kind::kFolders;
      ++end;
    }
  }
  at = end;
}

std::vector<Piece> pieces_of(std::string_view pattern) {
  std::vector<Piece> pieces;
  for (std::size_t at = 0; at < pattern.size();) {
    Piece piece;
    if (pattern[at] == '*') {
      take_stars(pattern, at, piece);
    } else if (pattern[at] == '?') {
      piece.kind = Piece::Kind::kAnyChar;
      ++at;
    } else if (pattern[at] != '[' || !take_class(pattern, at, piece)) {
      if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
      piece.literal = pattern[at++];
    }
    pieces.push_back(piece);
  }
  return pieces;
}

bool takes(const Piece& piece, char c) {
  switch (piece.kind) {
    case Piece::Kind::kLiteral:
      return c == piece.literal;
    case Piece::Kind::kClass:
      return c != '/' && in_class(piece.members, c) != piece.negated;
    case Piece::Kind::kEverything:
      return true;
    case Piece::Kind::kAnyChar:
    case Piece::Kind::kStar:
    case Piece::Kind::kFolders:
      return c != '/';
  }
  return false;
}

/// What can be told of a match by the plain characters at both ends of a pattern, as of most.
std::optional<bool> told_by_ends(std::string_view pattern, std::string_view text) {
  constexpr std::string_view kSpecial = "*?[]\\";
  const std::size_t front = pattern.find_first_of(kSpecial);
  if (front == std::string_view::npos) return pattern == text;
  const std::size_t last = pattern.find_last_of(kSpecial);
  // "**/" is one piece, which may match nothing.
  const std::size_t back = pattern.substr(last).starts_with("*/") ? last + 2 : last + 1;
  if (!text.starts_with(pattern.substr(0, front)) || !text.ends_with(pattern.substr(back)))
    return false;
  const std::size_t plain = front + pattern.size() - back;
  if (front + 1 == back && pattern[front] == '*' && plain <= text.size())
    return text.substr(front, text.size() - plain).find('/') == std::string_view::npos;
  return std::nullopt;
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  if (pattern.size() > kGlobBytesMax || text.size() > kGlobBytesMax) return false;
  if (const auto told = told_by_ends(pattern, text)) return *told;
  const std::vector<Piece> pieces = pieces_of(pattern);
  // rest[j]: whether the pieces from the current one on match text[j, ...).
  std::vector<char> rest(text.size() + 1, 0);
  rest[text.size()] = 1;
  for (std::size_t i = pieces.size(); i-- > 0;) {
    const Piece& piece = pieces[i];
    std::vector<char> here(text.size() + 1, 0);
    char behind_slash = 0;  // for kFolders: whether it matches after the next "/"
    for (std::size_t j = text.size() + 1; j-- > 0;) {
      const bool more = j < text.size();
      switch (piece.kind) {
        case Piece::Kind::kStar:
        case Piece::Kind::kEverything:
          here[j] = rest[j] || (more && takes(piece, text[j]) && here[j + 1]);
          break;
        case Piece::Kind::kFolders:
          if (more && text[j] == '/') behind_slash = here[j + 1];
          here[j] = rest[j] || behind_slash;
          break;
        default:
          here[j] = more && takes(piece, text[j]) && rest[j + 1];
      }
    }
    rest = std::move(here);
  }
  return rest[0] != 0;
}

}  // namespace efimd::service
