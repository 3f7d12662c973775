#include <algorithm>
#include <string>
#include <system_error>

#include "daemon/cli/commands/doctor.h"
#include "daemon/cli/commands/source_place.h"
#include "daemon/files/exclusions.h"
#include "daemon/files/secrets.h"
#include "lsp/uri.h"

// `efimd doctor FILE`.

namespace efimd::service {

namespace fs = std::filesystem;
using Level = Finding::Level;

namespace {

/// What no text can be read from, with the reason that `efimd complete` gives, too.
Finding unreadable(const Error& error) {
  return {Level::kWrong, "completion", "none: " + error.what, error.remedy};
}

}  // namespace

std::vector<Finding> examine_file(const Config& config, const fs::path& file) {
  std::error_code error;
  const fs::path path = fs::absolute(file, error).lexically_normal();
  std::vector<Finding> findings;
  std::string text;
  if (!fs::exists(path, error)) {
    findings.push_back({Level::kNote, "file", path.string() + " is not there", ""});
  } else {
    auto read = read_text(path);
    if (!read) return {unreadable(read.error())};
    text = std::move(*read);
    text.resize(std::min(text.size(), kScannedBytesMax));
  }
  const auto verdict = Exclusions(config.cache_exclude, config.cache_gitignore)
                           .judge(lsp::file_uri(path.generic_string()), text);
  const bool secret = verdict.reason == Exclusions::Reason::kSecret;
  const std::string why = verdict.why_not_stored();
  findings.push_back(secret && !config.secret_files
                         ? Finding{Level::kNote, "completion", "none, because " + why,
                                   "completion.secret_files = true completes it anyway"}
                         : Finding{Level::kGood, "completion", "as in every file", ""});
  findings.push_back(why.empty() ? Finding{Level::kGood, "KV on disk", "may be kept", ""}
                                 : Finding{Level::kNote, "KV on disk", "none, because " + why, ""});
  return findings;
}

}  // namespace efimd::service
