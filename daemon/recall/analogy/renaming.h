#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace efimd::recall {

/// Names in place of others, also as parts of longer names: if "width" becomes "max_height", then
/// "setWidth" becomes "setMaxHeight", and "WIDTH" becomes "MAX_HEIGHT".
class Renaming {
 public:
  /// False if a part of `theirs` was to become something else.
  bool add(std::string_view theirs, std::string_view ours);
  bool empty() const { return rules_.empty(); }

  /// nullopt if nothing of the word is renamed.
  std::optional<std::string> word(std::string_view theirs) const;
  /// The words of `text`. nullopt if nothing is renamed.
  std::optional<std::string> text(std::string_view theirs) const;

 private:
  /// Parts of words in lower case, and what becomes of them.
  struct Rule {
    std::vector<std::string> from, to;
    bool camel = false;  ///< the user joins parts as "maxHeight", not as "max_height"
  };
  const Rule* rule_at(const std::vector<std::string>& parts, std::size_t at) const;

  std::vector<Rule> rules_;
};

}  // namespace efimd::recall
