#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace efimd::test {

/// One golden case: a place in a buffer, what the model says there, and what is shown.
///
/// The files in golden/, one for each language (named by LSP's languageId), hold them as fields,
/// `name: value` or `name:` and lines behind a gutter ("| "), in this order:
///
///   case      what it shows, as a sentence; begins a case
///   buffer    the text, "^" for the cursor
///   raw       what the model says
///   unsure    a probability, a blank, and the part of `raw` whose first token has it; others are
///             certain; may come again
///   rejected  what was shown here just before, and typed away
///   selected  the editor's selected completion: what it replaces ("^" for the cursor), " => ", and
///             its text
///   or        what the model would say less likely, best first; may come again: a request by hand
///   shows     the item's text; after `or` may come again, best first
///   replaces  the text that the item's range covers, "^" for the cursor; left out where it is empty
///   silent    the reason, where nothing is shown
///
/// Lines that begin with "#" and empty lines between fields are passed over. "␣" at a line's end is
/// a blank, for editors that strip blanks there.
struct GoldenCase {
  std::string language;
  int line = 0;  ///< of the file, for messages
  std::string name;
  std::string buffer;  ///< with its "^", and a line end after its last line
  std::string raw;
  std::vector<std::string> unsure;
  std::string rejected;
  std::string selected;
  std::vector<std::string> alternatives;
  std::vector<std::string> shows;
  std::string replaces = "^";
  std::string silent;
};

/// All cases of a folder, by file name. Throws std::runtime_error that names file and line where
/// one is malformed.
std::vector<GoldenCase> golden_cases(const std::filesystem::path& folder);

}  // namespace efimd::test
