#include "daemon/config/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/config/config_keys.h"
#include "daemon/config/this_system.h"

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

/// A configuration is written by hand; more than this is some other file.
constexpr std::size_t kConfigBytesMax = std::size_t{1} << 20;
constexpr std::size_t kAutoMemoryMax = std::size_t{1} << 30;
constexpr std::size_t kAutoDiskMax = std::size_t{10} << 30;
constexpr std::size_t kAutoDiskShare = 10;
constexpr std::size_t kAutoMemoryMin = std::size_t{64} << 20;
/// More warnings would only hide the first.
constexpr std::size_t kWarningsMax = 50;

/// toml++ 3.3 calls itself for each part of a dotted key, without a limit.
constexpr std::size_t kKeyPartsMax = 64;

constexpr std::string_view kLongQuotes = R"(""")";
constexpr std::string_view kLongPlainQuotes = "'''";

/// Where the string ends whose text begins at `at`, or the line.
std::size_t end_of_string(std::string_view line, std::size_t at, std::string_view quotes) {
  for (; at < line.size(); ++at) {
    if (line[at] == '\\' && quotes[0] == '"') {
      ++at;
    } else if (line.substr(at).starts_with(quotes)) {
      at += quotes.size();
      // A long string may end in two more of its quotes.
      for (int more = 0; quotes.size() == 3 && more < 2; ++more)
        if (at < line.size() && line[at] == quotes[0]) ++at;
      return at;
    }
  }
  return line.size();
}

/// Of a key's part, or of a value, that begins at `at`.
std::size_t end_of_part(std::string_view line, std::size_t at) {
  if (line[at] != '"' && line[at] != '\'')
    return std::min(line.size(), line.find_first_of(" \t.\"'=[]{},#", at));
  const std::string_view three = line.substr(at, 3);
  const bool is_long = three == kLongQuotes || three == kLongPlainQuotes;
  const std::string_view quotes = is_long ? three : line.substr(at, 1);
  return end_of_string(line, at + quotes.size(), quotes);
}

/// Whether the line, read from `at` outside of strings, joins more parts than a key may have. Only
/// parts with dots between them are counted, so that lists of numbers or globs are none.
bool has_endless_key(std::string_view line, std::size_t at) {
  std::size_t dots = 0;
  bool joined = false;
  while (at < line.size() && line[at] != '#') {
    const char c = line[at];
    if (c == '.') {
      joined = true;
      if (++dots >= kKeyPartsMax) return true;
      ++at;
    } else if (c == ' ' || c == '\t' || static_cast<unsigned char>(c) >= 0x80) {
      joined |= c != ' ' && c != '\t';  // a letter or a space of another script
      ++at;
    } else if (std::string_view("=[]{},").find(c) != std::string_view::npos) {
      dots = 0;
      ++at;
    } else {
      if (!std::exchange(joined, false)) dots = 0;
      at = end_of_part(line, at);
    }
  }
  return false;
}

/// A key ends with its line. The line may begin inside a string of several lines: each is tried.
bool has_endless_key(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find_first_of("\n\v\f\r"));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (has_endless_key(line, 0) || has_endless_key(line, end_of_string(line, 0, kLongQuotes)) ||
        has_endless_key(line, end_of_string(line, 0, kLongPlainQuotes)))
      return true;
  }
  return false;
}

void warn(Config& config, int line, std::string message) {
  if (config.warnings.size() < kWarningsMax) config.warnings.push_back({line, std::move(message)});
}

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

/// What is excluded is never guessed: a default would write it to the disk, or send it to engine.url.
constexpr std::string_view kNothingKept = ", and nothing is kept on disk or sent elsewhere";

/// Letters to insert, delete, replace or swap with their neighbour until `a` is `b` (optimal string
/// alignment). Both are short.
std::size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, row);
  }
  return last[b.size()];
}

/// The one of `known` that `name` is likely to mean; "" if there is none.
std::string_view meant_by(std::string_view name, std::span<const std::string_view> known) {
  constexpr std::size_t kLettersApartMax = 2;
  std::string_view meant;
  std::size_t least = std::min(kLettersApartMax, name.size() / 3) + 1;
  for (const std::string_view each : known) {
    // A file may have 100,000 names.
    if (each.size() >= name.size() + least || name.size() >= each.size() + least) continue;
    const std::size_t apart = letters_apart(name, each);
    if (apart < least) std::tie(least, meant) = std::pair(apart, each);
  }
  return meant;
}

std::string_view key_meant_by(std::string_view name) {
  std::vector<std::string_view> known;
  for (const ConfigKey& key : config_keys()) {
    known.push_back(key.name);
    known.push_back(key.name.substr(0, key.name.rfind('.')));
  }
  return meant_by(name, known);
}

/// Whether the name, misspelled or in another table, says what is excluded.
bool may_exclude(std::string_view name) {
  constexpr auto kTable = std::to_array<std::string_view>({"cache"});
  constexpr auto kKeys = std::to_array<std::string_view>({"exclude", "gitignore"});
  return !meant_by(name, kTable).empty() ||
         !meant_by(name.substr(name.rfind('.') + 1), kKeys).empty();
}

void warn_of_whole_file(Config& config, int line, std::string message) {
  config.exclusions_known = false;
  warn(config, line, std::move(message) + std::string(kNothingKept));
}

/// One value of the file, by its full name; tables that no key lies in are reported as a whole.
void take(Config& config, const std::string& name, const toml::node& node) {
  const ConfigKey* const key = find_config_key(name);
  Config changed = config;
  if (key != nullptr && key->set(changed, node)) {
    config = std::move(changed);
    return;
  }
  const std::string_view end = may_exclude(name) ? kNothingKept : "";
  config.exclusions_known &= end.empty();
  if (config.warnings.size() == kWarningsMax) return;
  if (is_config_table(name))
    return warn(config, line_of(node),
                fmt::format("{} is a table, as in [{}]; it is ignored{}", name, name, end));
  if (key == nullptr) {
    const std::string_view meant = key_meant_by(name);
    return warn(config, line_of(node),
                fmt::format("unknown key {}{}; it is ignored{}", name,
                            meant.empty() ? "" : fmt::format(" (is {} meant?)", meant), end));
  }
  warn(config, line_of(node),
       fmt::format("{} must be {}; {} is used{}", name, key->type,
                   key->default_value.empty() ? "the default" : key->default_value, end));
}

void take_table(Config& config, const std::string& prefix, const toml::table& table) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (is_config_table(name) && node.is_table())
      take_table(config, name + ".", *node.as_table());
    else
      take(config, name, node);
  }
}

void take_environment(Config& config, const std::function<const char*(const char*)>& environment) {
  if (const char* model = environment("EFIMD_MODEL"); model != nullptr && *model != '\0') {
    config.model = fs::path(model);
    config.model_source = "EFIMD_MODEL";
  }
  const char* device = environment("EFIMD_DEVICE");
  const std::string_view kind = device == nullptr ? "" : device;
  if (kind.empty()) return;
  if (kind == "cpu" || kind == "cuda" || kind == "vulkan" || kind == "auto")
    config.device_kind = kind;
  else
    warn(config, 0, "EFIMD_DEVICE must be cpu, cuda, vulkan or auto; it is ignored");
}

/// The file's text; nullopt when there is none or it cannot be used (then with a warning).
std::optional<std::string> read_text(const fs::path& file, Config& config) {
  std::error_code error;
  if (!fs::exists(file, error)) {
    // Whether it is there may be unknown, too: then something in it may be excluded.
    if (error)
      warn_of_whole_file(config, 0, error.message() + "; defaults are used");
    else if (fs::is_symlink(file, error))
      warn_of_whole_file(config, 0, "a link to nothing; defaults are used");
    return std::nullopt;
  }
  if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > kConfigBytesMax) {
    warn_of_whole_file(config, 0, "not a file of at most 1 MiB; defaults are used");
    return std::nullopt;
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (!stream.is_open() || stream.bad()) {
    warn_of_whole_file(config, 0, "cannot be read; defaults are used");
    return std::nullopt;
  }
  return text;
}

}  // namespace

Config parse_config(std::string_view text, const fs::path& file) {
  Config config;
  config.file = file;
  if (has_endless_key(text)) {
    warn_of_whole_file(
        config, 0,
        fmt::format("a key of more than {} parts; the whole file is ignored", kKeyPartsMax));
    return config;
  }
  try {
    const toml::table table = toml::parse(text, file.string());
    take_table(config, "", table);
    if (!config.exclusions_known) config.remote.url.clear();
    config.file_read = true;
  } catch (const toml::parse_error& error) {
    warn_of_whole_file(
        config, static_cast<int>(error.source().begin.line),
        fmt::format("not valid TOML: {}; the whole file is ignored", error.description()));
  }
  return config;
}

Config load_config(const fs::path& file,
                   const std::function<const char*(const char*)>& environment) {
  Config config;
  config.file = file;
  if (const auto text = read_text(file, config)) config = parse_config(*text, file);
  take_environment(config, environment);
  return config;
}

Config load_config(const fs::path& file) {
  return load_config(file, [](const char* name) -> const char* { return std::getenv(name); });
}

namespace {

/// An eighth of the machine's memory, within limits; never more than a quarter.
std::size_t auto_memory_bytes() {
  const auto memory = static_cast<std::size_t>(memory_bytes());
  if (memory == 0) return kAutoMemoryMin;  // the system does not say
  return std::clamp(memory / 8, std::min(kAutoMemoryMin, memory / 4), kAutoMemoryMax);
}

}  // namespace

std::size_t kv_budget_bytes(const Config& config) {
  return config.cache_memory_mb ? *config.cache_memory_mb << 20 : auto_memory_bytes();
}

std::size_t host_budget_bytes(const Config& config) {
  return config.cache_host_mb ? *config.cache_host_mb << 20 : auto_memory_bytes();
}

std::size_t disk_budget_bytes(const Config& config, const fs::path& cache_dir) {
  if (config.cache_disk_mb) return *config.cache_disk_mb << 20;
  std::error_code error;
  std::size_t kept = 0;
  for (const auto& entry : fs::directory_iterator(cache_dir / "kv", error)) {
    std::error_code gone;
    const auto bytes = entry.file_size(gone);
    if (!gone) kept += static_cast<std::size_t>(bytes);
  }
  fs::path there = cache_dir;
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  const fs::space_info space = fs::space(there, error);
  if (error) return 0;
  return std::min((static_cast<std::size_t>(space.available) + kept) / kAutoDiskShare,
                  kAutoDiskMax);
}

std::string config_table() {
  // A bar inside a cell would end it.
  const auto cell = [](std::string_view text) {
    std::string escaped;
    for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
    return escaped;
  };
  std::string table = "| key | type | default | meaning |\n| --- | --- | --- | --- |\n";
  for (const ConfigKey& key : config_keys())
    table += fmt::format("| `{}` | {} | {} | {} |\n", key.name, cell(key.type), key.default_value,
                         cell(key.meaning));
  return table;
}

}  // namespace efimd::service
