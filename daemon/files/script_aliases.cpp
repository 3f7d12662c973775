#include "daemon/files/script_aliases.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/small_file.h"
#include "daemon/files/packages.h"
#include "lsp/json_rpc.h"
#include "lsp/member.h"

namespace efimd::service {

namespace {

using context::Alias;
using lsp::Json;
using lsp::member;

constexpr std::size_t kFileBytesMax = std::size_t{100} << 10;

/// Where the comment at `at` ends; `at` itself if there is none.
std::size_t after_comment(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) == "//") return std::min(text.find('\n', at), text.size());
  if (text.substr(at, 2) != "/*") return at;
  const std::size_t end = text.find("*/", at + 2);
  return end == std::string_view::npos ? text.size() : end + 2;
}

std::size_t after_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

/// JSON without the comments and last commas that these programs allow.
std::string plain_json(std::string_view text) {
  std::string plain;
  std::size_t comma = std::string::npos;  // the last sign, if it is one
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text[at] == '"' ? after_string(text, at) : at + 1;
    if (const std::size_t next = after_comment(text, at); next > at) {
      at = next;
      continue;
    }
    if ((text[at] == '}' || text[at] == ']') && comma != std::string::npos) plain[comma] = ' ';
    if (std::isspace(static_cast<unsigned char>(text[at])) == 0)
      comma = text[at] == ',' ? plain.size() : std::string::npos;
    plain += text.substr(at, end - at);
    at = end;
  }
  return plain;
}

/// All strings in it: a path, a list of them, or one for each condition. parse_json bounds its depth.
void collect(const Json& value, std::string_view folder, std::vector<std::string>& paths) {
  if (paths.size() >= kAliasTargetsMax) return;
  if (value.is_string()) return paths.push_back(context::joined(folder, value.get<std::string>()));
  if (value.is_structured())
    for (const Json& inner : value) collect(inner, folder, paths);
}

class AliasReader {
 public:
  explicit AliasReader(const std::string& path) : folder_(context::folder_of(path)) {}

  std::vector<Alias> settings(const Json& file) {
    const Json& options = member(file, "compilerOptions");
    const Json& base_url = member(options, "baseUrl");
    std::string base = folder_;
    if (base_url.is_string()) base = context::joined(folder_, base_url.get<std::string>());
    add_each(member(options, "paths"), folder_, "", base);
    if (base_url.is_string()) add(folder_, "*", "*", base);
    return std::move(aliases_);
  }

  std::vector<Alias> package(const Json& file) {
    add_each(member(file, "imports"), folder_, "", folder_);
    const Json& name = member(file, "name");
    if (!name.is_string() || name.get<std::string>().empty()) return std::move(aliases_);
    const auto called = name.get<std::string>();
    const Json& exported = member(file, "exports");
    const bool has_paths =
        exported.is_object() && !exported.empty() && exported.begin().key().starts_with('.');
    if (has_paths)
      add_each(exported, "", called, folder_);
    else
      add("", called, exported, folder_);
    for (const char* main : {"source", "types", "typings", "module", "main"})
      add("", called, member(file, main), folder_);
    return std::move(aliases_);
  }

 private:
  /// `patterns`: each one's targets by its text, which stands behind `front`; there "." is `front` itself.
  void add_each(const Json& patterns, const std::string& scope, const std::string& front,
                const std::string& base) {
    if (!patterns.is_object()) return;
    for (const auto& [pattern, targets] : patterns.items())
      add(scope,
          front +
              (front.empty() ? pattern : pattern.substr(std::min<std::size_t>(1, pattern.size()))),
          targets, base);
  }

  void add(const std::string& scope, const std::string& pattern, const Json& targets,
           const std::string& base) {
    Alias alias = {scope, pattern, {}};
    collect(targets, base, alias.targets);
    std::erase(alias.targets, std::string());
    if (!pattern.empty() && !alias.targets.empty() && aliases_.size() < kAliasesMax)
      aliases_.push_back(std::move(alias));
  }

  const std::string folder_;
  std::vector<Alias> aliases_;
};

bool is_package(std::string_view name) { return name == "package.json"; }

bool has_aliases(std::string_view name) {
  return is_package(name) || (name.ends_with(".json") &&
                              (name.starts_with("tsconfig") || name.starts_with("jsconfig")));
}

}  // namespace

std::vector<Alias> aliases_in(const std::string& path, std::string_view text) {
  const std::string_view name = context::name_of(path);
  if (!has_aliases(name)) return {};
  const Result<Json> file = lsp::parse_json(plain_json(text));
  if (!file) return {};
  return is_package(name) ? AliasReader(path).package(*file) : AliasReader(path).settings(*file);
}

std::vector<Alias> script_aliases(const std::vector<std::string>& files) {
  std::vector<Alias> aliases;
  std::size_t count = 0;
  for (const std::string& file : files) {
    if (!has_aliases(context::name_of(file))) continue;
    if (++count > kPackagesMax || aliases.size() >= kAliasesMax) break;
    for (Alias& alias : aliases_in(file, read_small_file(file, kFileBytesMax)))
      if (aliases.size() < kAliasesMax) aliases.push_back(std::move(alias));
  }
  return aliases;
}

}  // namespace efimd::service
