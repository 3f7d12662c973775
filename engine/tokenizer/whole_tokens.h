#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types.h"

namespace efimd::engine {

/// User-defined tokens: texts that become one token wherever they stand, the leftmost first, of
/// several there the longest.
///
/// Thread: any, after construction.
class WholeTokens {
 public:
  struct Whole {
    std::string text;  ///< not empty
    TokenId token;
  };

  WholeTokens() = default;
  explicit WholeTokens(std::vector<Whole> wholes);

  /// Calls `plain` for the text between them, which may be empty, and `whole` for each of them.
  template <class OnPlain, class OnWhole>
  void split(std::string_view text, const OnPlain& plain, const OnWhole& whole) const {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size() && !wholes_.empty();) {
      const Whole* const found = find(text.substr(at));
      if (found == nullptr) {
        ++at;
        continue;
      }
      plain(text.substr(begin, at - begin));
      whole(found->token);
      begin = at += found->text.size();
    }
    plain(text.substr(begin));
  }

 private:
  const Whole* find(std::string_view text) const;

  std::vector<Whole> wholes_;       ///< in byte order
  std::array<bool, 256> begins_{};  ///< by byte: whether one begins with it
};

}  // namespace efimd::engine
