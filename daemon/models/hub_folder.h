#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace efimd::service {

// Hugging Face's hub cache, which huggingface_hub, llama.cpp and `efimd model get` share:
//
//   models--ORG--NAME/refs/REVISION            the commit's 40 hexadecimal digits
//   models--ORG--NAME/blobs/ETAG               a file's content: SHA-256 (LFS) or git's object id
//   models--ORG--NAME/snapshots/COMMIT/PATH    a link ../../blobs/ETAG
//   .locks/models--ORG--NAME/ETAG.lock         flock()ed by who writes the blob
//
// Source: huggingface_hub, docs "Understand caching"; llama.cpp, common/hf-cache.cpp.

/// An absolute path from the environment; nullopt if unset or relative.
using PathVariable = std::function<std::optional<std::filesystem::path>(const char* name)>;

/// $HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub,
/// ~/.cache/huggingface/hub: the first that is set. nullopt without a home.
std::optional<std::filesystem::path> hub_folder(const PathVariable& variable);
/// Where a model is put: the same, but $LLAMA_CACHE before the defaults, because llama.cpp keeps the
/// same layout there and looks nowhere else then.
std::optional<std::filesystem::path> hub_folder_to_fill(const PathVariable& variable);
/// Where the hub's token lies if no variable holds it: $HF_TOKEN_PATH, else token in $HF_HOME or its
/// default.
std::optional<std::filesystem::path> hub_token_file(const PathVariable& variable);

/// "ORG/NAME" -> "models--ORG--NAME".
std::string repository_folder(std::string_view repository);
/// Whether the file lies in a snapshot of a repository whose refs/main names another one: an older
/// state of the same files.
bool is_superseded(const std::filesystem::path& file);
/// The commit that a repository's refs/REVISION names; empty if there is none.
std::string referred_commit(const std::filesystem::path& repository_folder,
                            std::string_view revision);

/// A part of a model that is split over files, NAME-00002-of-00003.gguf.
struct SplitPart {
  std::string name;  ///< "NAME", with its folder if it had one
  int part = 0;      ///< from 1
  int parts = 0;
};
std::optional<SplitPart> split_part(std::string_view file);
/// The names of all parts; `file` is one of them.
std::vector<std::string> parts_of(const SplitPart& part);
/// Most parts of a model that are looked for.
inline constexpr int kSplitPartsMax = 200;

}  // namespace efimd::service
