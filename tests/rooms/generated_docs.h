#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace efimd::docs {

/// A part of a file in docs/ that the program's own tables say. It stands between the lines
/// `<!-- made by renew_docs: NAME -->` and `<!-- end -->`.
struct GeneratedPart {
  std::string_view file;  ///< below docs/
  std::string_view name;
  std::string (*text)();
};
std::span<const GeneratedPart> generated_parts();

/// `page` with its part as the program says it now. kBadInput if the part's lines are not there.
Result<std::string> renewed(std::string_view page, const GeneratedPart& part);

}  // namespace efimd::docs
