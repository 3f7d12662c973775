#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace efimd::prompt {

/// A file, as people who work on it name it.
struct FileName {
  std::string repository;  ///< its name; empty: in none
  std::string path;        ///< from the repository's root, with "/"; empty: no file
  bool operator==(const FileName&) const = default;
};

/// What a prompt says of the file that its text is from, in the form that the model was trained with
/// (engine::FimFiles).
struct PathHead {
  std::vector<engine::TokenId> front;   ///< in front of the whole prompt
  std::vector<engine::TokenId> inside;  ///< behind the prefix token
  std::size_t size() const { return front.size() + inside.size(); }
};

/// Empty for a model without such a form, for a text that is no file, and for names that are too
/// long, have control characters or are not UTF-8.
PathHead path_head(const FileName& name, const engine::Tokenizer& tokenizer);

/// Of a path and of a repository's name, each.
inline constexpr std::size_t kNameBytesMax = 192;

}  // namespace efimd::prompt
