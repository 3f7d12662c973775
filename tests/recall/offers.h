#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "daemon/recall/index.h"

// Asking an index in tests.
namespace efimd::recall {

inline constexpr Where kTyped{"project", "/project/typed.c"};

struct Marked {
  std::string text;
  std::size_t cursor;
};

/// The text without its "^", and where that was.
inline Marked marked(std::string text) {
  const std::size_t cursor = text.find('^');
  text.erase(cursor, 1);
  return {text, cursor};
}

inline std::vector<Candidate> find(const Index& index, const std::string& text,
                                   const Where& where = kTyped) {
  const Marked at = marked(text);
  return index.find({where, at.text, at.cursor});
}

inline bool offers(const Index& index, const std::string& text, const std::string& wanted,
                   const Where& where = kTyped) {
  for (const Candidate& candidate : find(index, text, where))
    if (candidate.text == wanted) return true;
  return false;
}

}  // namespace efimd::recall
