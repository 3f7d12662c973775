#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace efimd::service {

/// A file that begins with GGUF's four bytes. Nothing else of it was checked.
struct ModelFile {
  std::filesystem::path path;
  std::uintmax_t bytes = 0;
  bool bundled = false;
  std::string name = {};    ///< by which it can be chosen: the file's, or Ollama's NAME:TAG
  std::string origin = {};  ///< whose folder it lies in: "efimd", "Ollama", ...
  int parts = 1;            ///< files; `path` is the first, `bytes` those of all
};

bool has_gguf_magic(const std::filesystem::path& file);

/// A folder in which another program keeps GGUF files.
struct SharedFolder {
  enum class Layout {
    kFiles,   ///< *.gguf at any depth
    kOllama,  ///< manifests/…/NAME/TAG, which name blobs/sha256-…
  };
  std::string origin;
  std::filesystem::path path;
  Layout layout = Layout::kFiles;
};

/// The folders in which Hugging Face's hub, llama.cpp, LM Studio and Ollama keep models, by their
/// environment variables (` variable` gives absolute paths only) and their defaults. The folders
/// need not exist.
std::vector<SharedFolder> shared_folders(
    const std::function<std::optional<std::filesystem::path>(const char* name)>& variable);

/// The models of a folder, by name: of a split model the first part, if all are there, and of a
/// repository of the hub the snapshot that refs/main names. Limits: at most kEntriesMax entries
/// are read, at most kDepthMax folders deep; manifests of more than kManifestBytesMax are ignored.
std::vector<ModelFile> models_in_shared(const SharedFolder& folder);

}  // namespace efimd::service
