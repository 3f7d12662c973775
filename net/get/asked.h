#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "daemon/models/offered_models.h"

namespace efimd::get {

/// What a user asked for.
struct Asked {
  std::string repository;  ///< "ORG/NAME"; empty: `url` is of no hub
  std::string revision = "main";
  std::string file;     ///< in the repository; empty: chosen by `weights`
  std::string weights;  ///< "Q4_K_M", in any case; empty: the usual ones
  std::string url;      ///< of no hub
  /// The catalogue's entry, if it was named or if repository and file are its.
  std::optional<service::OfferedModel> offered;
};

/// A name of the catalogue, ORG/NAME[:WEIGHTS], ORG/NAME:FILE.gguf, hf.co/ORG/NAME[:WEIGHTS], or an
/// https address, of the hub at `endpoint` or of anything else. kBadInput says what is wrong;
/// kNotFound names near entries of the catalogue.
Result<Asked> parse_asked(std::string_view text,
                          const std::vector<service::OfferedModel>& catalogue,
                          const std::string& endpoint);

/// ORG/NAME as the hub allows it: two words of letters, digits, dots, dashes and underscores.
bool is_repository(std::string_view text);
/// A path inside a repository that leads nowhere else.
bool is_inner_path(std::string_view path);

}  // namespace efimd::get
