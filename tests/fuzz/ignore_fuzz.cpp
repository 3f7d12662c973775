// The first line is a path, the rest a .gitignore: matching ends soon, and a pattern matches itself where it has no signs.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "daemon/config/glob.h"
#include "daemon/files/exclusions.h"

namespace fs = std::filesystem;
using namespace efimd::service;

namespace {

/// A repository of this process.
const fs::path& root() {
  static const fs::path made = [] {
    std::string name = (fs::temp_directory_path() / "efimd-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    fs::create_directory(fs::path(name) / ".git");
    return fs::path(name);
  }();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string path(text.substr(0, end));
  const std::string_view rules = text.substr(std::min(end + 1, text.size()));
  std::ofstream(root() / ".gitignore", std::ios::binary) << rules;
  static_cast<void>(gitignored_by(root() / "sub" / path, {}));
  static_cast<void>(glob_match(rules, path));
  if (path.find_first_of("*?[]\\!/") == std::string::npos && path.size() < kGlobBytesMax &&
      !glob_match(path, path))
    std::abort();
  return 0;
}
