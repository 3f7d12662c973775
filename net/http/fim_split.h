#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace efimd::http {

/// How a model's tokens frame a prompt, as text.
struct FimMarks {
  std::string prefix, suffix, middle;  ///< middle may be empty: then text before the cursor is last
  std::string file_separator = {};     ///< in front of a file's path; empty: none
  bool operator==(const FimMarks&) const = default;
};

/// A prompt without its frame.
struct FimParts {
  std::string before;  ///< the cursor
  std::string after;
  std::string path;       ///< of the file, if the prompt says it; else empty
  bool has_more = false;  ///< text of other files stood in front, which is left out
};

/// Takes the frame off a prompt that a client made for a model:
///
///   [other files] PRE before SUF after MID [more before]
///   [other files] SUF after PRE before MID [more before]     also with PRE in front of SUF
///
/// The model's own marks are tried first, then those of the families in use. nullopt if none frames
/// it: then it is text up to the cursor. Each mark counts once, the first PRE or SUF and the last
/// MID, so that a file that talks of such marks is split at the frame.
std::optional<FimParts> split_fim(std::string_view prompt, const std::optional<FimMarks>& model);

/// The marks of the families in use.
const std::vector<FimMarks>& known_marks();

}  // namespace efimd::http
