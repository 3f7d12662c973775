#include "daemon/files/packages.h"

#include <algorithm>

#include "base/small_file.h"
#include "lsp/json_rpc.h"

namespace efimd::service {

namespace {

/// They are read anew whenever the project changes.
constexpr std::size_t kManifestBytesMax = std::size_t{100} << 10;

/// Calls visit(line) for each line, without blanks at its ends.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  constexpr std::string_view kBlanks = " \t\r";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    visit(line.substr(0, line.find_last_not_of(kBlanks) + 1));
  }
}

/// What stands between the first quotes; else the first word.
std::string first_value(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  if (text.empty()) return {};
  const bool is_quoted = text.front() == '"' || text.front() == '\'' || text.front() == '`';
  if (!is_quoted) return std::string(text.substr(0, text.find_first_of(" \t")));
  const std::size_t end = text.find(text.front(), 1);
  return end == std::string_view::npos ? std::string() : std::string(text.substr(1, end - 1));
}

std::string go_module(std::string_view text) {
  std::string name;
  for_each_line(text, [&](std::string_view line) {
    if (name.empty() && (line.starts_with("module ") || line.starts_with("module\t")))
      name = first_value(line.substr(7));
  });
  return name;
}

/// That of its library, which may differ from the package's own. Code writes "_" for "-".
std::string rust_crate(std::string_view text) {
  std::string package, library;
  std::string* section = nullptr;
  for_each_line(text, [&](std::string_view line) {
    if (line.starts_with('['))
      section = line == "[package]" ? &package : line == "[lib]" ? &library : nullptr;
    const std::size_t equals = line.find('=');
    if (section == nullptr || equals == std::string_view::npos) return;
    if (line.substr(0, line.find_first_of(" \t=")) == "name")
      *section = first_value(line.substr(equals + 1));
  });
  std::string name = library.empty() ? package : library;
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string script_package(std::string_view text) {
  const Result<lsp::Json> package = lsp::parse_json(text);
  if (!package || !package->is_object()) return {};
  const auto name = package->find("name");
  return name != package->end() && name->is_string() ? name->get<std::string>() : std::string();
}

}  // namespace

std::string package_name(std::string_view file_name, std::string_view text) {
  if (file_name == "go.mod") return go_module(text);
  if (file_name == "Cargo.toml") return rust_crate(text);
  if (file_name == "package.json") return script_package(text);
  return {};
}

std::vector<context::Package> packages_of(const std::vector<std::string>& files) {
  std::vector<context::Package> packages;
  for (const std::string& file : files) {
    const std::string_view name = context::name_of(file);
    if (name != "go.mod" && name != "Cargo.toml" && name != "package.json") continue;
    if (packages.size() >= kPackagesMax) break;
    std::string called = package_name(name, read_small_file(file, kManifestBytesMax));
    if (!called.empty()) packages.push_back({std::move(called), file});
  }
  return packages;
}

}  // namespace efimd::service
