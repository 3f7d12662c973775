#include "daemon/models/shared_models.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <tuple>

#include "daemon/models/hub_folder.h"

namespace efimd::service {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr std::size_t kEntriesMax = 20'000;
/// Hugging Face: models--ORG--NAME/snapshots/REVISION/FOLDER/FILE; Ollama:
/// manifests/HOST/NAMESPACE/NAME/TAG.
constexpr int kDepthMax = 6;
constexpr std::size_t kManifestBytesMax = std::size_t{1} << 20;

/// Calls `take` for the files below `folder`, links to files included, links to folders not.
void each_file(const fs::path& folder, const std::function<void(const fs::path&)>& take) {
  std::error_code error;
  std::size_t looked_at = 0;
  for (fs::recursive_directory_iterator
           entry(folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end && looked_at < kEntriesMax; entry.increment(error), ++looked_at) {
    if (entry.depth() >= kDepthMax) entry.disable_recursion_pending();
    std::error_code unreadable;
    if (entry->is_regular_file(unreadable)) take(entry->path());
  }
}

/// Of all parts together; nullopt if one is missing.
std::optional<std::uintmax_t> bytes_of_parts(const SplitPart& part) {
  std::uintmax_t sum = 0;
  for (const std::string& name : parts_of(part)) {
    std::error_code error;
    sum += fs::file_size(name, error);
    if (error) return std::nullopt;
  }
  return sum;
}

ModelFile model_file(const fs::path& path, std::string name, const std::string& origin) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  return {path, error ? 0 : bytes, false, std::move(name), origin};
}

/// The blob that a manifest names as its model; nullopt where it names none.
std::optional<fs::path> model_blob(const fs::path& manifest, const fs::path& blobs) {
  std::error_code error;
  if (fs::file_size(manifest, error) > kManifestBytesMax || error) return std::nullopt;
  std::ifstream stream(manifest, std::ios::binary);
  const Json json = Json::parse(std::string(std::istreambuf_iterator<char>(stream), {}), nullptr,
                                /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("layers") || !json["layers"].is_array())
    return std::nullopt;
  for (const Json& layer : json["layers"]) {
    if (!layer.is_object()) continue;
    const auto text = [&](const char* key) {
      const auto found = layer.find(key);
      return found != layer.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    if (text("mediaType") != "application/vnd.ollama.image.model") continue;
    const std::string digest = text("digest");
    const bool plain = digest.rfind("sha256:", 0) == 0 &&
                       digest.find_first_not_of("0123456789abcdef", 7) == std::string::npos;
    if (plain) return blobs / ("sha256-" + digest.substr(7));
  }
  return std::nullopt;
}

/// HOST/NAMESPACE/NAME/TAG -> "NAMESPACE/NAME:TAG", without Ollama's own namespace.
std::string ollama_name(const fs::path& manifest, const fs::path& manifests) {
  const fs::path relative = manifest.lexically_relative(manifests);
  std::vector<std::string> parts;
  for (const fs::path& part : relative) parts.push_back(part.string());
  if (parts.size() < 3) return relative.string();
  std::string name = parts[parts.size() - 2] + ":" + parts.back();
  const std::string& space = parts[parts.size() - 3];
  return space == "library" ? name : space + "/" + name;
}

std::vector<ModelFile> models_of_ollama(const SharedFolder& folder) {
  const fs::path manifests = folder.path / "manifests";
  std::vector<ModelFile> found;
  each_file(manifests, [&](const fs::path& manifest) {
    const auto blob = model_blob(manifest, folder.path / "blobs");
    if (blob && has_gguf_magic(*blob))
      found.push_back(model_file(*blob, ollama_name(manifest, manifests), folder.origin));
  });
  return found;
}

}  // namespace

bool has_gguf_magic(const fs::path& file) {
  std::array<char, 4> magic{};
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return false;  // a pipe would wait for its writer
  std::ifstream stream(file, std::ios::binary);
  return stream.read(magic.data(), magic.size()) &&
         std::string_view(magic.data(), magic.size()) == "GGUF";
}

std::vector<SharedFolder> shared_folders(
    const std::function<std::optional<fs::path>(const char* name)>& variable) {
  std::vector<SharedFolder> folders;
  const auto home = variable("HOME");
  auto cache = variable("XDG_CACHE_HOME");
  if (!cache && home) cache = *home / ".cache";
  const auto add = [&](const char* origin, const std::optional<fs::path>& named,
                       const std::optional<fs::path>& otherwise,
                       SharedFolder::Layout layout = SharedFolder::Layout::kFiles) {
    if (named || otherwise) folders.push_back({origin, named ? *named : *otherwise, layout});
  };
  const auto below = [](const std::optional<fs::path>& folder, const char* rest) {
    return folder ? std::optional(*folder / rest) : std::nullopt;
  };
  add("Hugging Face", std::nullopt, hub_folder(variable));
  add("llama.cpp", variable("LLAMA_CACHE"), below(cache, "llama.cpp"));
  add("LM Studio", std::nullopt, below(home, ".lmstudio/models"));
  add("LM Studio", std::nullopt, below(cache, "lm-studio/models"));
  add("Ollama", variable("OLLAMA_MODELS"), below(home, ".ollama/models"),
      SharedFolder::Layout::kOllama);
  add("Ollama", std::nullopt, fs::path("/usr/share/ollama/.ollama/models"),
      SharedFolder::Layout::kOllama);
  return folders;
}

std::vector<ModelFile> models_in_shared(const SharedFolder& folder) {
  std::vector<ModelFile> found;
  if (folder.layout == SharedFolder::Layout::kOllama) {
    found = models_of_ollama(folder);
  } else {
    each_file(folder.path, [&](const fs::path& file) {
      if (file.extension() != ".gguf" || is_superseded(file) || !has_gguf_magic(file)) return;
      ModelFile model = model_file(file, file.filename().string(), folder.origin);
      if (const auto part = split_part(file.native())) {
        if (part->part != 1) return;
        const auto bytes = bytes_of_parts(*part);
        if (!bytes) return;
        model.bytes = *bytes;
        model.parts = part->parts;
      }
      found.push_back(std::move(model));
    });
  }
  std::sort(found.begin(), found.end(), [](const ModelFile& a, const ModelFile& b) {
    return std::tie(a.name, a.path) < std::tie(b.name, b.path);
  });
  return found;
}

}  // namespace efimd::service
