#include "daemon/config/config_keys.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "daemon/config/config.h"
#include "daemon/config/config_values.h"
#include "daemon/config/glob.h"
#include "lsp/protocol.h"

namespace efimd::service {

namespace {

constexpr std::size_t kGlobsMax = 1000;

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

bool set_kv_type(Config& config, const toml::node& node) {
  std::string value;
  if (!one_of(node, {"f16", "q8"}, value)) return false;
  config.kv_type = value == "q8" ? engine::KvType::kQ8 : engine::KvType::kF16;
  return true;
}

bool set_context_files(Config& config, const toml::node& node) {
  std::string value;
  if (!one_of(node, {"auto", "off"}, value)) return false;
  config.context_files = value == "auto";
  return true;
}

bool set_context_edits(Config& config, const toml::node& node) {
  std::string value;
  if (!one_of(node, {"on", "off"}, value)) return false;
  config.context_edits = value == "on";
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

/// The member takes an integer in [least, most], or nothing for "auto".
template <auto Member, std::int64_t least, std::int64_t most>
bool integer_or_auto(Config& config, const toml::node& node) {
  (config.*Member).reset();
  if (node.value<std::string_view>() == "auto") return true;
  return integer(node, least, most, (config.*Member).emplace());
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

bool set_log_level(Config& config, const toml::node& node) {
  return one_of(node, {"error", "warn", "info", "debug"}, config.log_level);
}

bool set_stop(Config& config, const toml::node& node) {
  std::string value;
  if (!one_of(node, {"none", "line", "block"}, value)) return false;
  config.completion.stop = value == "none"   ? completion::StopRule::kNone
                           : value == "line" ? completion::StopRule::kLine
                                             : completion::StopRule::kBlock;
  return true;
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
  if (!one_of(node, {"low", "medium", "high", "auto"}, value)) return false;
  config.completion.eagerness = value == "auto"   ? completion::Eagerness::kAuto
                                : value == "low"  ? completion::Eagerness::kLow
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
    ConfigKey{"model.file", "path or file name", "",
              "the GGUF file to use, or a name from `efimd model list`; unset: the bundled model",
              set_model},
    ConfigKey{
        "model.fim.order", "\"auto\" | \"psm\" | \"spm\" | \"none\"", "\"auto\"",
        "how the model fills in the middle: prefix first (psm), suffix first (spm), or not at all; "
        "auto: as `efimd model info` recognizes it",
        set_fim_order},
    ConfigKey{"model.fim.prefix", "text of a token", "\"\"",
              "the token before the text before the cursor; empty: as recognized",
              [](Config& c, const toml::node& n) { return token(n, c.fim.prefix); }},
    ConfigKey{"model.fim.suffix", "text of a token", "\"\"",
              "the token before the text after the cursor",
              [](Config& c, const toml::node& n) { return token(n, c.fim.suffix); }},
    ConfigKey{"model.fim.middle", "text of a token", "\"\"",
              "the token after which the model writes",
              [](Config& c, const toml::node& n) { return token(n, c.fim.middle); }},
    ConfigKey{"model.fim.repository", "text of a token", "\"\"",
              "the token before a repository's name",
              [](Config& c, const toml::node& n) { return token(n, c.fim.repository); }},
    ConfigKey{"model.fim.file_separator", "text of a token", "\"\"", "the token between files",
              [](Config& c, const toml::node& n) { return token(n, c.fim.file_separator); }},
    ConfigKey{"device.kind", "\"auto\" | \"cpu\" | \"cuda\" | \"vulkan\"", "\"auto\"",
              "the device that runs the model; auto: an NVIDIA card by CUDA, else a GPU by Vulkan "
              "that is fast enough, else the CPU. If a kind cannot be used, the next one is",
              [](Config& c, const toml::node& n) {
                return one_of(n, {"auto", "cpu", "cuda", "vulkan"}, c.device_kind);
              }},
    ConfigKey{
        "device.memory_mb", "\"auto\" | integer 16-1048576", "\"auto\"",
        "most of a GPU's memory to use, in MiB; auto: its free memory. Layers that do not fit run "
        "on the CPU",
        integer_or_auto<&Config::device_memory_mb, 16, 1 << 20>},
    ConfigKey{"device.idle_release_s", "integer 0-2592000", "600",
              "seconds without work before a GPU's memory is given back; the next request takes it "
              "again. 0: never",
              [](Config& c, const toml::node& n) {
                return integer(n, 0, 30 * 24 * 3600, c.device_idle_release_s);
              }},
    ConfigKey{"device.threads", "integer 0-1024", "0",
              "worker threads of the CPU device; 0: one per physical core",
              [](Config& c, const toml::node& n) { return integer(n, 0, 1024, c.device_threads); }},
    ConfigKey{"device.weights", "\"auto\" | \"mapped\" | \"panels\"", "\"auto\"",
              "how the CPU device keeps the model: mapped from the file, or as panels (a private "
              "copy that is read faster). auto: panels, if they fit within half of the available "
              "memory",
              set_weights},
    ConfigKey{
        "device.kernels", "\"confirmed\" | \"all\"", "\"confirmed\"",
        "what a GPU runs: the plain kernels and those that a card has confirmed as faster, or "
        "all, to measure them",
        [](Config& c, const toml::node& n) {
          std::string value;
          const bool known = one_of(n, {"confirmed", "all"}, value);
          if (value == "all") c.gpu_variants = engine::gpu::kAllVariants;
          return known;
        }},
    ConfigKey{
        "cache.kv_type", "\"f16\" | \"q8\"", "\"f16\"",
        "the form of KV, in memory and on disk: 16 bits an element, or 8, which take half the "
        "room. "
        "q8 is measured when a model is first loaded with it; if it changes too much, f16 is used",
        set_kv_type},
    ConfigKey{
        "cache.memory_mb", "\"auto\" | integer 16-1048576", "\"auto\"",
        "memory for KV, in MiB. auto: an eighth of the machine's, at most 1024; on a GPU at most "
        "its free memory",
        integer_or_auto<&Config::cache_memory_mb, 16, 1 << 20>},
    ConfigKey{"cache.host_mb", "\"auto\" | integer 0-1048576", "\"auto\"",
              "memory of the machine for KV that left a GPU, in MiB; auto: an eighth of it, at "
              "most 1024; "
              "0: none",
              integer_or_auto<&Config::cache_host_mb, 0, 1 << 20>},
    ConfigKey{"cache.disk_mb", "\"auto\" | integer 0-16777216", "\"auto\"",
              "disk for KV, in MiB, kept over restarts; auto: a tenth of the free space, at most "
              "10240; 0: nothing is kept",
              integer_or_auto<&Config::cache_disk_mb, 0, 1 << 24>},
    ConfigKey{"cache.exclude", "array of globs", "[]",
              "files whose KV never goes to the disk, by globs: \"*.sql\", \"private/\" and "
              "\"docs/*.md\" in "
              "every folder, \"/srv/client/**\" and \"~/diary\" by the whole path",
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
    ConfigKey{"completion.healing", "\"auto\" | \"on\" | \"off\"", "\"auto\"",
              "whether the model may spell the last typed tokens otherwise; auto: yes, unless the "
              "model's "
              "metadata says that it was trained on broken words",
              set_healing},
    ConfigKey{
        "completion.eagerness", "\"low\" | \"medium\" | \"high\" | \"auto\"", "\"medium\"",
        "the chance that a suggestion needs to be shown; low: few suggestions, mostly right; high: "
        "many; auto: by what you take and reject in each language",
        set_eagerness},
    ConfigKey{
        "completion.recall", "boolean", "true",
        "whether your own text is suggested beside the model's, if it continues what you type; it "
        "comes from this file, open files and the repository's files",
        [](Config& c, const toml::node& n) { return boolean(n, c.completion.recall); }},
    ConfigKey{
        "completion.confidence", "number 0-1", "",
        "for experts: the model's text ends before the product of its tokens' probabilities falls "
        "below this; 0: never. By eagerness: 0.3, 0.1, 0.03, and a first token behind a line's "
        "text "
        "needs 0.7, 0.6, 0.3",
        set_confidence},
    ConfigKey{
        "window.tokens", "\"auto\" | integer 256-131072", "\"auto\"",
        "tokens of a file that the model sees; a line has about ten. auto: 8192, on a GPU 32768, "
        "but "
        "no more than the model's context, a third of `cache.memory_mb` and the growing cost of a "
        "step allow. A wide window takes idle time (at most 240 CPU seconds a file and one for "
        "each "
        "request, none on battery), memory and disk (12 KB a token of a 0.5B model)",
        integer_or_auto<&Config::window_tokens, 256, 131072>},
    ConfigKey{"context.files", "\"auto\" | \"off\"", "\"auto\"",
              "whether prompts show what files that yours imports declare. auto: to models trained "
              "so, with `completion.recall`; at most 15 % of the window, evaluated in idle time",
              set_context_files},
    ConfigKey{"context.edits", "\"on\" | \"off\"", "\"off\"",
              "whether prompts of the full window show what you edited last in other files of the "
              "project, to models trained with other files: at most 256 tokens, evaluated in idle "
              "time",
              set_context_edits},
    ConfigKey{
        "completion.secret_files", "boolean", "false",
        "whether files that may hold secrets by their name (`.env`, `id_rsa`, ...) are completed",
        [](Config& c, const toml::node& n) { return boolean(n, c.secret_files); }},
    ConfigKey{"daemon.idle_exit_s", "integer 0-2592000", "900",
              "seconds without any editor before the daemon ends; 0: never",
              [](Config& c, const toml::node& n) {
                return integer(n, 0, 30 * 24 * 3600, c.idle_exit_s);
              }},
    ConfigKey{
        "daemon.sandbox", "boolean", "true",
        "whether the daemon gives up running programs, using a network and opening files that it "
        "has no need of; false if a GPU's driver needs more",
        [](Config& c, const toml::node& n) { return boolean(n, c.sandbox); }},
    ConfigKey{"engine.url", "address", "\"\"",
              "a server elsewhere whose model answers before this machine's, by OpenAI's "
              "/v1/completions; your text is sent there. Empty: none",
              [](Config& c, const toml::node& n) { return address(n, c.remote.url); }},
    ConfigKey{"engine.model", "text", "\"\"",
              "the model's name there; empty: the first that the server names",
              [](Config& c, const toml::node& n) { return line(n, c.remote.model); }},
    ConfigKey{"engine.key_file", "path", "\"\"",
              "a file for you alone (0600) that holds the server's key; empty: the environment "
              "variable EFIMD_ENGINE_KEY, if it is set",
              [](Config& c, const toml::node& n) { return line(n, c.remote.key_file); }},
    ConfigKey{
        "engine.prefix", "text", "\"\"",
        "what stands before the text before the cursor in a prompt; empty: by the model's name",
        [](Config& c, const toml::node& n) { return line(n, c.remote.prefix); }},
    ConfigKey{"engine.suffix", "text", "\"\"", "what stands before the text after the cursor",
              [](Config& c, const toml::node& n) { return line(n, c.remote.suffix); }},
    ConfigKey{"engine.middle", "text", "\"\"", "what stands before the text that is written",
              [](Config& c, const toml::node& n) { return line(n, c.remote.middle); }},
    ConfigKey{
        "engine.time_limit_ms", "integer 50-60000", "1500",
        "milliseconds to wait for the server's first text; then this machine's engine answers",
        [](Config& c, const toml::node& n) {
          return integer(n, 50, 60000, c.remote.time_limit_ms);
        }},
    ConfigKey{"engine.window_tokens", "integer 256-131072", "4096",
              "tokens of a file that the server is shown, by this machine's tokenizer",
              [](Config& c, const toml::node& n) {
                return integer(n, 256, 131072, c.remote.window_tokens);
              }},
    ConfigKey{"engine.slot", "integer -1-1023", "-1",
              "the slot of a llama-server that is yours, so that it always has your file's prompt; "
              "-1: it chooses",
              [](Config& c, const toml::node& n) { return integer(n, -1, 1023, c.remote.slot); }},
    ConfigKey{"http.enable", "boolean", "false",
              "whether the daemon's start also starts efimd-http, for clients without LSP",
              [](Config& c, const toml::node& n) { return boolean(n, c.http.enable); }},
    ConfigKey{"http.port", "integer 1-65535", "8012", "where efimd-http listens, on 127.0.0.1",
              [](Config& c, const toml::node& n) { return integer(n, 1, 65535, c.http.port); }},
    ConfigKey{"http.require_token", "boolean", "true",
              "whether HTTP clients must send a token; else every user of this machine may ask",
              [](Config& c, const toml::node& n) { return boolean(n, c.http.require_token); }},
    ConfigKey{"log.level", "\"error\" | \"warn\" | \"info\" | \"debug\"", "\"info\"",
              "how much the log says; it never holds text of a document", set_log_level},
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

}  // namespace efimd::service
