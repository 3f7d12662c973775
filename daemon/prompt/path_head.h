#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "daemon/context/head.h"
#include "engine/tokenizer/tokenizer.h"

namespace efimd::prompt {

/// The name of a file, for the people who work on it.
struct FileName {
  std::string repository;  ///< its name; empty: in none
  std::string path;        ///< from the repository's root, with "/"; empty: no file
  bool operator==(const FileName&) const = default;
};

/// The tokens that show other files and name the text's own in a prompt, in the form that the model was
/// trained with (engine::FimFiles).
struct PathHead {
  std::vector<engine::TokenId> front;   ///< before the whole prompt
  std::vector<engine::TokenId> inside;  ///< after the prefix token
  int other_files = 0;                  ///< that are shown
  int other_tokens = 0;                 ///< of these; in front or inside
  std::size_t size() const { return front.size() + inside.size(); }
  bool operator==(const PathHead&) const = default;
};

/// Empty for a model without such a form, and for a text that is no file. Also for names that are
/// too long, have control characters or are not UTF-8.
PathHead path_head(const FileName& name, const engine::Tokenizer& tokenizer);
/// The same with other files in front, at most `tokens_max` tokens of them: of a file that does not
/// fit whole the first lines. None for a model that was not trained so.
PathHead path_head(const FileName& name, const context::Head& head, std::size_t tokens_max,
                   const engine::Tokenizer& tokenizer);

/// Bytes of declarations that so many tokens hold, by a sample of code; a tenth is left for paths.
std::size_t declaration_bytes(std::size_t tokens, const engine::Tokenizer& tokenizer);

/// The tokens of texts of other files behind after, the last one nearest to where the model
/// writes: as many of the last as `tokens_max` tokens hold. Empty for a model that reads the suffix
/// first, or was not trained with files that are marked so.
std::vector<engine::TokenId> edited_texts(std::span<const context::Slot> texts,
                                          std::size_t tokens_max,
                                          const engine::Tokenizer& tokenizer);

/// Of a path and of a repository's name, each.
inline constexpr std::size_t kNameBytesMax = 192;

}  // namespace efimd::prompt
