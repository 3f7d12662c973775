#include "daemon/config/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "daemon/config/config.h"
#include "daemon/config/glob.h"
#include "lsp/protocol.h"

namespace efimd::service {

namespace {

constexpr std::size_t kTokenBytesMax = 128;
constexpr std::size_t kGlobsMax = 1000;

/// `target` takes an integer in [least, most].
template <class Int>
bool integer(const toml::node& node, std::int64_t least, std::int64_t most, Int& target) {
  const auto* value = node.as_integer();
  if (value == nullptr || value->get() < least || value->get() > most) return false;
  target = static_cast<Int>(value->get());
  return true;
}

/// `target` takes a number (integers convert) in [least, most].
bool number(const toml::node& node, double least, double most, float& target) {
  if (!node.is_number()) return false;
  const double value = *node.value<double>();
  if (!(value >= least && value <= most)) return false;  // NaN is refused too
  target = static_cast<float>(value);
  return true;
}

/// `target` takes one of the names.
bool one_of(const toml::node& node, std::initializer_list<std::string_view> names,
            std::string& target) {
  const auto value = node.value<std::string_view>();
  if (!value || std::find(names.begin(), names.end(), *value) == names.end()) return false;
  target = *value;
  return true;
}

bool set_model(Config& config, const toml::node& node) {
  const auto value = node.value<std::string_view>();
  if (!value || value->empty()) return false;
  config.model = std::filesystem::path(*value);
  config.model_source = "config.toml";
  return true;
}

bool set_fim_order(Config& config, const toml::node& node) {
  const auto value = node.value<std::string_view>();
  if (value == "auto") return config.fim.order.reset(), true;
  if (value == "psm") return config.fim.order = engine::FimOrder::kPsm, true;
  if (value == "spm") return config.fim.order = engine::FimOrder::kSpm, true;
  if (value == "none") return config.fim.order = engine::FimOrder::kNone, true;
  return false;
}

/// `target` takes a token as the vocabulary spells it.
bool token(const toml::node& node, std::string& target) {
  const auto value = node.value<std::string_view>();
  if (!value || value->size() > kTokenBytesMax) return false;
  target = *value;
  return true;
}

bool set_kv_type(Config& config, const toml::node& node) {
  std::string value;
  if (!one_of(node, {"f16", "q8"}, value)) return false;
  config.kv_type = value == "q8" ? engine::KvType::kQ8 : engine::KvType::kF16;
  return true;
}

bool set_weights(Config& config, const toml::node& node) {
  std::string value;
  if (!one_of(node, {"auto", "mapped", "panels"}, value)) return false;
  config.device_weights = value == "mapped"   ? engine::WeightsForm::kMapped
                          : value == "panels" ? engine::WeightsForm::kPanels
                                              : engine::WeightsForm::kAuto;
  return true;
}

bool set_memory(Config& config, const toml::node& node) {
  config.cache_memory_mb.reset();
  if (node.value<std::string_view>() == "auto") return true;
  return integer(node, 16, 1 << 20, config.cache_memory_mb.emplace());
}

bool set_host(Config& config, const toml::node& node) {
  config.cache_host_mb.reset();
  if (node.value<std::string_view>() == "auto") return true;
  return integer(node, 0, 1 << 20, config.cache_host_mb.emplace());
}

bool set_device_memory(Config& config, const toml::node& node) {
  config.device_memory_mb.reset();
  if (node.value<std::string_view>() == "auto") return true;
  return integer(node, 16, 1 << 20, config.device_memory_mb.emplace());
}

bool set_disk(Config& config, const toml::node& node) {
  config.cache_disk_mb.reset();
  if (node.value<std::string_view>() == "auto") return true;
  return integer(node, 0, 1 << 24, config.cache_disk_mb.emplace());
}

bool set_exclude(Config& config, const toml::node& node) {
  const toml::array* globs = node.as_array();
  if (globs == nullptr || globs->size() > kGlobsMax) return false;
  config.cache_exclude.clear();
  for (const toml::node& glob : *globs) {
    const auto text = glob.value<std::string>();
    if (!text || text->empty() || text->size() > kGlobBytesMax) return false;
    config.cache_exclude.push_back(*text);
  }
  return true;
}

bool boolean(const toml::node& node, bool& target) {
  const auto* value = node.as_boolean();
  if (value != nullptr) target = value->get();
  return value != nullptr;
}

std::optional<completion::StopRule> stop_rule_from(std::string_view name) {
  if (name == "none") return completion::StopRule::kNone;
  if (name == "line") return completion::StopRule::kLine;
  if (name == "block") return completion::StopRule::kBlock;
  return std::nullopt;
}

bool set_stop(Config& config, const toml::node& node) {
  const auto rule = stop_rule_from(node.value_or(std::string_view()));
  if (rule) config.completion.stop = *rule;
  return rule.has_value();
}

bool set_healing(Config& config, const toml::node& node) {
  std::string value;
  if (!one_of(node, {"auto", "on", "off"}, value)) return false;
  config.completion.healing = value == "auto" ? completion::Healing::kAuto
                              : value == "on" ? completion::Healing::kOn
                                              : completion::Healing::kOff;
  return true;
}

bool set_eagerness(Config& config, const toml::node& node) {
  std::string value;
  if (!one_of(node, {"low", "medium", "high"}, value)) return false;
  config.completion.eagerness = value == "low"    ? completion::Eagerness::kLow
                                : value == "high" ? completion::Eagerness::kHigh
                                                  : completion::Eagerness::kMedium;
  return true;
}

bool set_confidence(Config& config, const toml::node& node) {
  float value = 0;
  if (!number(node, 0, 1, value)) return false;
  config.completion.confidence = value;
  return true;
}

constexpr std::array kKeys = {
    ConfigKey{
        "model.file", "path or file name", "",
        "GGUF file to use, or the name of one that `efimd model list` shows. Unset: the bundled "
        "model",
        set_model},
    ConfigKey{"model.fim.order", "\"auto\" | \"psm\" | \"spm\" | \"none\"", "\"auto\"",
              "how the model fills in the middle: prefix or suffix first, or not at all; auto: as "
              "`efimd model info` recognizes it",
              set_fim_order},
    ConfigKey{"model.fim.prefix", "text of a token", "\"\"",
              "the token in front of the text before the cursor; empty: as recognized",
              [](Config& c, const toml::node& n) { return token(n, c.fim.prefix); }},
    ConfigKey{"model.fim.suffix", "text of a token", "\"\"",
              "the token in front of the text behind it",
              [](Config& c, const toml::node& n) { return token(n, c.fim.suffix); }},
    ConfigKey{"model.fim.middle", "text of a token", "\"\"",
              "the token behind which the model writes",
              [](Config& c, const toml::node& n) { return token(n, c.fim.middle); }},
    ConfigKey{"model.fim.repository", "text of a token", "\"\"",
              "the token in front of a repository's name",
              [](Config& c, const toml::node& n) { return token(n, c.fim.repository); }},
    ConfigKey{"model.fim.file_separator", "text of a token", "\"\"", "the token between files",
              [](Config& c, const toml::node& n) { return token(n, c.fim.file_separator); }},
    ConfigKey{
        "device.kind", "\"auto\" | \"cpu\" | \"cuda\" | \"vulkan\"", "\"auto\"",
        "where the model runs; auto: an NVIDIA card by CUDA, else a GPU by Vulkan, else the CPU. "
        "A kind that cannot be used gives way to the next",
        [](Config& c, const toml::node& n) {
          return one_of(n, {"auto", "cpu", "cuda", "vulkan"}, c.device_kind);
        }},
    ConfigKey{
        "device.memory_mb", "\"auto\" | integer 16-1048576", "\"auto\"",
        "of a GPU's memory, in MiB, at most; auto: what is free there. Layers that do not fit "
        "run on the CPU",
        set_device_memory},
    ConfigKey{
        "device.idle_release_s", "integer 0-2592000", "600",
        "seconds without work after which a GPU's memory is given back; the next request takes "
        "it again. 0: never",
        [](Config& c, const toml::node& n) {
          return integer(n, 0, 30 * 24 * 3600, c.device_idle_release_s);
        }},
    ConfigKey{"device.threads", "integer 0-1024", "0",
              "worker threads of the CPU device; 0: one per physical core",
              [](Config& c, const toml::node& n) { return integer(n, 0, 1024, c.device_threads); }},
    ConfigKey{"device.weights", "\"auto\" | \"mapped\" | \"panels\"", "\"auto\"",
              "how the CPU device keeps the model: mapped from the file, or as panels, a private "
              "copy that is read faster; auto: panels, if they fit within half of the available "
              "memory",
              set_weights},
    ConfigKey{
        "cache.kv_type", "\"f16\" | \"q8\"", "\"f16\"",
        "what is kept of the text, in memory and on disk: 16 bits an element, or 8, which take "
        "half the room; q8 is measured when a model is first loaded with it, and f16 used where "
        "it changes too much",
        set_kv_type},
    ConfigKey{
        "cache.memory_mb", "\"auto\" | integer 16-1048576", "\"auto\"",
        "memory for KV, in MiB; auto: an eighth of the machine's, at most 1024; on a GPU as much "
        "of that as is free there",
        set_memory},
    ConfigKey{
        "cache.host_mb", "\"auto\" | integer 0-1048576", "\"auto\"",
        "of the machine's memory for KV that left a GPU, in MiB; auto: an eighth, at most 1024; "
        "0: none",
        set_host},
    ConfigKey{
        "cache.disk_mb", "\"auto\" | integer 0-16777216", "\"auto\"",
        "disk for KV, in MiB, kept over restarts; auto: a tenth of what is free, at most 10240; "
        "0: nothing is kept",
        set_disk},
    ConfigKey{"cache.exclude", "array of globs", "[]",
              "files whose KV never goes to the disk, as in .gitignore: \"*.sql\", \"private/\", "
              "\"/srv/client/**\", \"~/diary\"",
              set_exclude},
    ConfigKey{"cache.gitignore", "boolean", "false",
              "whether KV of files that git ignores stays off the disk, too",
              [](Config& c, const toml::node& n) { return boolean(n, c.cache_gitignore); }},
    ConfigKey{"completion.max_tokens", "integer 1-4096", "64",
              "most tokens that one suggestion may have",
              [](Config& c, const toml::node& n) {
                return integer(n, 1, lsp::kMaxTokensMax, c.completion.tokens_max);
              }},
    ConfigKey{"completion.stop", "\"none\" | \"line\" | \"block\"", "\"block\"",
              "where a suggestion ends: at the model's own end, after a line, or with the block",
              set_stop},
    ConfigKey{"completion.temperature", "number 0-10", "0.0",
              "0: always the likeliest token; higher: more varied",
              [](Config& c, const toml::node& n) {
                return number(n, 0, lsp::kTemperatureMax, c.completion.temperature);
              }},
    ConfigKey{"completion.top_p", "number 0-1", "1.0",
              "with a temperature: choose among the likeliest tokens that make up this probability",
              [](Config& c, const toml::node& n) { return number(n, 0, 1, c.completion.top_p); }},
    ConfigKey{
        "completion.top_k", "integer 0-1000000", "0",
        "with a temperature: choose among this many tokens; 0: all",
        [](Config& c, const toml::node& n) { return integer(n, 0, 1000000, c.completion.top_k); }},
    ConfigKey{
        "completion.seed", "integer 0-9223372036854775807", "0",
        "with a temperature: the same seed and text give the same suggestion",
        [](Config& c, const toml::node& n) { return integer(n, 0, INT64_MAX, c.completion.seed); }},
    ConfigKey{
        "completion.healing", "\"auto\" | \"on\" | \"off\"", "\"auto\"",
        "whether the model may choose the last typed tokens anew, of those that spell the same; "
        "auto: unless its metadata says that it was trained on broken words and needs none",
        set_healing},
    ConfigKey{"completion.eagerness", "\"low\" | \"medium\" | \"high\"", "\"medium\"",
              "how sure a suggestion must be to be shown; low: few and mostly right, high: many",
              set_eagerness},
    ConfigKey{"completion.recall", "boolean", "true",
              "whether text of your own that continues what you type (this file, open files, the "
              "repository's files) is suggested beside the model's",
              [](Config& c, const toml::node& n) { return boolean(n, c.completion.recall); }},
    ConfigKey{"completion.confidence", "number 0-1", "",
              "for experts: the model's text is cut where the product of its tokens' probabilities "
              "falls below this; 0: never. By eagerness: 0.3, 0.1, 0.03",
              set_confidence},
    ConfigKey{
        "completion.cold_prompt_ms", "integer 50-60000", "2000",
        "how much of a file is shown to the model: as much as a cold evaluation of this many "
        "milliseconds allows",
        [](Config& c, const toml::node& n) { return integer(n, 50, 60000, c.cold_prompt_ms); }},
    ConfigKey{
        "completion.secret_files", "boolean", "false",
        "whether files that may hold secrets by their name (`.env`, `id_rsa`, ...) are completed",
        [](Config& c, const toml::node& n) { return boolean(n, c.secret_files); }},
    ConfigKey{"daemon.idle_exit_s", "integer 0-2592000", "900",
              "seconds without any editor after which the daemon ends; 0: never",
              [](Config& c, const toml::node& n) {
                return integer(n, 0, 30 * 24 * 3600, c.idle_exit_s);
              }},
    ConfigKey{"log.level", "\"error\" | \"warn\" | \"info\" | \"debug\"", "\"info\"",
              "what the log holds; never any text of a document",
              [](Config& c, const toml::node& n) {
                return one_of(n, {"error", "warn", "info", "debug"}, c.log_level);
              }},
};

}  // namespace

std::span<const ConfigKey> config_keys() { return kKeys; }

const ConfigKey* find_config_key(std::string_view name) {
  const auto* const found = std::ranges::find(kKeys, name, &ConfigKey::name);
  return found == kKeys.end() ? nullptr : found;
}

bool is_config_table(std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  return std::ranges::any_of(kKeys,
                             [&](const ConfigKey& key) { return key.name.starts_with(prefix); });
}

std::string config_table() {
  // A bar inside a cell would end it.
  const auto cell = [](std::string_view text) {
    std::string escaped;
    for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
    return escaped;
  };
  std::string table = "| key | type | default | meaning |\n| --- | --- | --- | --- |\n";
  for (const ConfigKey& key : kKeys)
    table += fmt::format("| `{}` | {} | {} | {} |\n", key.name, cell(key.type), key.default_value,
                         cell(key.meaning));
  return table;
}

}  // namespace efimd::service
