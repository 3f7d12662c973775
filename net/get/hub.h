#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "net/get/asked.h"
#include "net/get/transport.h"

namespace efimd::get {

/// The hub and who asks it.
struct HubAccess {
  std::string endpoint;  ///< without a slash at its end
  std::string token;     ///< empty: none, or none that may be sent there
};
/// $HF_ENDPOINT (else $MODEL_ENDPOINT, else https://huggingface.co); $HF_TOKEN, else the token's
/// file. A token is never sent in clear to another machine: then it is left out, and `note` says so.
Result<HubAccess> hub_access(std::string& note);

/// A file of a repository.
struct HubFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::string hash;  ///< SHA-256 of files in LFS, git's object id of the others; names the blob
};

/// A repository at one commit.
struct HubRepository {
  std::string name;
  std::string commit;   ///< 40 hexadecimal digits
  std::string license;  ///< as its card says it; empty: not said
  bool gated = false;
  std::vector<HubFile> files;
};

/// Asks the hub's interface. A failure names its kind: no such repository or revision, a gated one
/// (a token is missing or has no access), too many requests, or no connection. That one is
/// kNotReady, so that cached files may serve. `note` is told what is waited for.
Result<HubRepository> ask_hub(Transport& transport, const HubAccess& hub, const Asked& asked,
                              const std::function<void(const std::string& text)>& note);
/// What is said where the hub refuses a gated repository: some it describes to all, and refuses the
/// files.
Error gated_error(const HubAccess& hub, const std::string& repository);
/// What the interface answered. kBadInput for what is no such answer; files with names that lead
/// elsewhere are left out. Limits: kHubFilesMax files.
Result<HubRepository> parse_repository(std::string_view json, const std::string& name);
inline constexpr std::size_t kHubFilesMax = 20'000;

/// The files to load: the one that was named, or that with the weights that were (else Q4_K_M, else
/// Q8_0, else the first); of a split model all parts. A file that the catalogue names and that is not
/// there is chosen by its weights. kNotFound lists what there is.
Result<std::vector<HubFile>> choose_files(const HubRepository& repository, const Asked& asked);

/// Where a file is loaded from.
std::string file_address(const HubAccess& hub, const HubRepository& repository,
                         const HubFile& file);

}  // namespace efimd::get
