#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "daemon/cli/options.h"

namespace efimd::service {

/// A file's text and a cursor in it, as LSP counts: lines and characters (code points) from 0.
struct SourcePlace {
  std::string uri;
  std::string text;  ///< valid UTF-8
  std::size_t line = 0;
  std::size_t character = 0;
};

/// A file's text. kBadInput if it is too large or not UTF-8 (with the place).
Result<std::string> read_text(const std::filesystem::path& file);

/// Reads `place.file`. kBadInput if it is too large or not UTF-8 (with the place), or if the place
/// is outside of it.
Result<SourcePlace> read_source(const Place& place);

}  // namespace efimd::service
