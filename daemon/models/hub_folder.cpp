#include "daemon/models/hub_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kCommitDigits = 40;

std::optional<fs::path> hub_home(const PathVariable& variable) {
  if (auto home = variable("HF_HOME")) return home;
  if (const auto cache = variable("XDG_CACHE_HOME")) return *cache / "huggingface";
  if (const auto home = variable("HOME")) return *home / ".cache" / "huggingface";
  return std::nullopt;
}

std::optional<int> five_digits(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.size() != 5 || error != std::errc() || end != text.data() + 5 || value < 1)
    return std::nullopt;
  return value;
}

}  // namespace

std::optional<fs::path> hub_folder(const PathVariable& variable) {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (auto folder = variable(name)) return folder;
  const auto home = hub_home(variable);
  return home ? std::optional(*home / "hub") : std::nullopt;
}

std::optional<fs::path> hub_folder_to_fill(const PathVariable& variable) {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME"})
    if (variable(name)) return hub_folder(variable);
  if (auto folder = variable("LLAMA_CACHE")) return folder;
  return hub_folder(variable);
}

std::optional<fs::path> hub_token_file(const PathVariable& variable) {
  if (auto file = variable("HF_TOKEN_PATH")) return file;
  const auto home = hub_home(variable);
  return home ? std::optional(*home / "token") : std::nullopt;
}

std::string repository_folder(std::string_view repository) {
  std::string folder = "models--";
  for (const char c : repository) folder += c == '/' ? std::string("--") : std::string(1, c);
  return folder;
}

std::string referred_commit(const fs::path& repository_folder, std::string_view revision) {
  const fs::path file = repository_folder / "refs" / revision;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return "";  // a pipe would wait for its writer
  std::ifstream stream(file, std::ios::binary);
  std::string commit(kCommitDigits, '\0');
  if (!stream.read(commit.data(), kCommitDigits)) return "";
  const bool plain = commit.find_first_not_of("0123456789abcdef") == std::string::npos;
  return plain ? commit : "";
}

bool is_superseded(const fs::path& file) {
  fs::path folder = file.parent_path();
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    const fs::path snapshots = folder.parent_path();
    if (snapshots.filename() != "snapshots") continue;
    const fs::path repository = snapshots.parent_path();
    if (repository.filename().native().rfind("models--", 0) != 0) continue;
    const std::string current = referred_commit(repository, "main");
    std::error_code error;
    return !current.empty() && folder.filename() != current &&
           fs::is_directory(snapshots / current, error);
  }
  return false;
}

std::optional<SplitPart> split_part(std::string_view file) {
  constexpr std::string_view kEnding = ".gguf";
  constexpr std::string_view kOf = "-of-";
  constexpr std::size_t kTail = 15;  // "-00001-of-00003"
  if (!file.ends_with(kEnding)) return std::nullopt;
  file.remove_suffix(kEnding.size());
  if (file.size() <= kTail) return std::nullopt;
  const std::string_view tail = file.substr(file.size() - kTail);
  const auto part = five_digits(tail.substr(1, 5));
  const auto parts = five_digits(tail.substr(10, 5));
  if (tail[0] != '-' || tail.substr(6, 4) != kOf || !part || !parts) return std::nullopt;
  if (*part > *parts || *parts > kSplitPartsMax) return std::nullopt;
  return SplitPart{std::string(file.substr(0, file.size() - kTail)), *part, *parts};
}

std::vector<std::string> parts_of(const SplitPart& part) {
  std::vector<std::string> names;
  for (int i = 1; i <= part.parts; ++i)
    names.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", part.name, i, part.parts));
  return names;
}

}  // namespace efimd::service
