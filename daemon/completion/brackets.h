#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace efimd::completion {

struct Bracket {
  std::size_t at = 0;
  char c = 0;
};

enum class Angles { kIgnored, kCounted };

/// The brackets of one line outside its strings, in order.
///
/// No grammar is known here: a quote opens a string only when the same line closes it, `'` behind
/// `&` or `<` is a lifetime, and comments are text. Angles count only where the caller knows that
/// one is open; those of "->", "=>", "<=" and ">=" never do.
std::vector<Bracket> brackets_of(std::string_view line, Angles angles = Angles::kIgnored);

bool is_opener(char c);
bool is_closer(char c);  ///< a bracket, not a quote

/// Brackets left open behind `line`, given those open in front of it. Below 0 when it closes more.
/// Closers in its first `forgiving` bytes that have no opener there are left out.
int depth_after(int depth, std::string_view line, std::size_t forgiving = 0);

}  // namespace efimd::completion
