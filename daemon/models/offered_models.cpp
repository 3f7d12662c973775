#include "daemon/models/offered_models.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kCatalogBytesMax = std::uintmax_t{1} << 20;

/// Reads one table, and remembers the first key that is missing or wrong.
class Entry {
 public:
  explicit Entry(const toml::table& table) : table_(table) {}

  std::string text(const char* key) {
    auto value = table_[key].value<std::string>();
    if (!value || value->empty()) wrong(key);
    return value.value_or("");
  }
  std::string text_or_nothing(const char* key) {
    if (!table_.contains(key)) return "";
    return text(key);
  }
  std::uint64_t count(const char* key) {
    const auto value = table_[key].value<std::int64_t>();
    if (!value || *value <= 0) wrong(key);
    return static_cast<std::uint64_t>(std::max<std::int64_t>(value.value_or(0), 0));
  }
  std::uint64_t count_or(const char* key, std::uint64_t otherwise) {
    return table_.contains(key) ? count(key) : otherwise;
  }
  const std::string& fault() const { return fault_; }

 private:
  void wrong(const char* key) {
    if (fault_.empty()) fault_ = key;
  }
  const toml::table& table_;
  std::string fault_;
};

/// The entry, with the name of the first wrong key in `fault`.
OfferedModel read_entry(const toml::table& table, std::string& fault) {
  Entry entry(table);
  OfferedModel model;
  model.name = entry.text("name");
  model.repository = entry.text("repository");
  model.file = entry.text("file");
  model.bytes = entry.count("bytes");
  model.parameters = entry.count("parameters");
  model.active = entry.count_or("active", model.parameters);
  model.layers = static_cast<int>(std::min<std::uint64_t>(entry.count("layers"), 100'000));
  model.kv_bytes = entry.count("kv_bytes");
  model.weights = entry.text("weights");
  model.context_tokens =
      static_cast<int>(std::min<std::uint64_t>(entry.count("context"), 1U << 30));
  model.fim = entry.text("fim");
  model.license = entry.text("license");
  model.restricted = entry.text_or_nothing("restricted");
  model.good_for = entry.text("good_for");
  fault = entry.fault();
  return model;
}

}  // namespace

Result<std::vector<OfferedModel>> parse_offered_models(std::string_view toml,
                                                       const std::string& file) {
  toml::table table;
  try {
    table = toml::parse(toml, file);
  } catch (const toml::parse_error& error) {
    return fail(Fault::kBadInput,
                fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()),
                "install efimd again");
  }
  const toml::array* const list = table["model"].as_array();
  const std::size_t count = list == nullptr ? 0 : list->size();
  if (count == 0 || count > kOfferedMax)
    return fail(Fault::kBadInput, fmt::format("{}: has {} entries [[model]]", file, count),
                fmt::format("1 to {} are read", kOfferedMax));
  std::vector<OfferedModel> models;
  for (const toml::node& node : *list) {
    std::string fault = "model";
    const toml::table* const entry = node.as_table();
    if (entry != nullptr) models.push_back(read_entry(*entry, fault));
    if (!fault.empty())
      return fail(Fault::kBadInput,
                  fmt::format("{}: entry {}: {} is missing or wrong", file, models.size(), fault),
                  "correct it, or install efimd again");
  }
  return models;
}

Result<std::vector<OfferedModel>> offered_models(const std::vector<fs::path>& folders) {
  std::string searched;
  for (const fs::path& folder : folders) {
    const fs::path file = folder / "catalog.toml";
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(file, error);
    searched += (searched.empty() ? "" : ", ") + folder.string();
    if (error) continue;
    if (bytes > kCatalogBytesMax)
      return fail(Fault::kBadInput, file.string() + ": is too large for a list of models",
                  "install efimd again");
    std::ifstream stream(file, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    return parse_offered_models(text, file.string());
  }
  return fail(Fault::kNotFound, "there is no catalog.toml in " + searched, "install efimd again");
}

const OfferedModel* find_offered(const std::vector<OfferedModel>& models, std::string_view name) {
  const auto found = std::ranges::find(models, name, &OfferedModel::name);
  return found == models.end() ? nullptr : &*found;
}

}  // namespace efimd::service
