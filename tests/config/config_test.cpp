#include "daemon/config/config.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>

#include "daemon/config/config_keys.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using service::Config;

namespace {

Config parsed(const std::string& text) { return service::parse_config(text, "config.toml"); }

/// load_config() with only these variables in the environment.
Config loaded(const std::filesystem::path& file,
              const std::map<std::string, std::string>& environment = {}) {
  return service::load_config(file, [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

/// config.toml with every key at what the table says is its default.
std::string defaults_written_out() {
  std::string text;
  for (const service::ConfigKey& key : service::config_keys())
    if (!key.default_value.empty())
      text += std::string(key.name) + " = " + std::string(key.default_value) + "\n";
  return text;
}

void check_that_nothing_is_kept(const char* text) {
  INFO(text);
  const Config config = parsed(std::string("engine.url = \"https://example.com\"\n") + text);
  CHECK_FALSE(config.exclusions_known);
  CHECK(config.remote.url.empty());
  REQUIRE(config.warnings.size() == 1);
  CHECK(config.warnings[0].message.ends_with(", and nothing is kept on disk or sent elsewhere"));
}

}  // namespace

TEST_CASE("the defaults in the table are those of the code") {
  const Config written = parsed(defaults_written_out());
  const Config plain;
  CHECK(written.warnings.empty());
  CHECK(written.device_kind == plain.device_kind);
  CHECK(written.device_threads == plain.device_threads);
  CHECK(written.device_weights == plain.device_weights);
  CHECK(written.gpu_variants == plain.gpu_variants);
  CHECK(written.kv_type == plain.kv_type);
  CHECK(written.cache_memory_mb == plain.cache_memory_mb);
  CHECK(written.completion.tokens_max == plain.completion.tokens_max);
  CHECK(written.completion.stop == plain.completion.stop);
  CHECK(written.completion.temperature == plain.completion.temperature);
  CHECK(written.completion.top_p == plain.completion.top_p);
  CHECK(written.completion.top_k == plain.completion.top_k);
  CHECK(written.completion.seed == plain.completion.seed);
  CHECK(written.window_tokens == plain.window_tokens);
  CHECK(written.idle_exit_s == plain.idle_exit_s);
  CHECK(written.log_level == plain.log_level);
}

TEST_CASE("every key is read") {
  const Config config = parsed(R"(
[model]
file = "~/m.gguf"
fim.order = "spm"
fim.prefix = "<p>"
fim.suffix = "<s>"
fim.middle = "<m>"
fim.repository = "<r>"
fim.file_separator = "<f>"
[device]
kind = "cpu"
memory_mb = 2048
threads = 3
weights = "panels"
kernels = "all"
[cache]
memory_mb = 256
host_mb = 0
[completion]
max_tokens = 12
stop = "line"
temperature = 1
top_p = 0.9
top_k = 40
seed = 99
healing = "on"
[window]
tokens = 3000
[daemon]
idle_exit_s = 0
[log]
level = "debug"
)");
  CHECK(config.warnings.empty());
  CHECK(config.file_read);
  CHECK(config.model == std::filesystem::path("~/m.gguf"));
  CHECK(config.fim.order == engine::FimOrder::kSpm);
  CHECK(config.fim.prefix == "<p>");
  CHECK(config.fim.suffix == "<s>");
  CHECK(config.fim.middle == "<m>");
  CHECK(config.fim.repository == "<r>");
  CHECK(config.fim.file_separator == "<f>");
  CHECK(config.device_kind == "cpu");
  CHECK(config.device_memory_mb == 2048U);
  CHECK(config.device_threads == 3);
  CHECK(config.device_weights == engine::WeightsForm::kPanels);
  CHECK(config.gpu_variants == engine::gpu::kAllVariants);
  CHECK(config.cache_memory_mb == 256U);
  CHECK(config.cache_host_mb == 0U);
  CHECK(service::host_budget_bytes(config) == 0);
  CHECK(service::kv_budget_bytes(config) == std::size_t{256} << 20);
  CHECK(config.completion.tokens_max == 12);
  CHECK(config.completion.stop == completion::StopRule::kLine);
  CHECK(config.completion.temperature == 1.0F);
  CHECK(config.completion.top_p == 0.9F);
  CHECK(config.completion.top_k == 40);
  CHECK(config.completion.seed == 99);
  CHECK(config.completion.healing == completion::Healing::kOn);
  CHECK(config.window_tokens == 3000);
  CHECK(config.idle_exit_s == 0);
  CHECK(config.log_level == "debug");
}

TEST_CASE("an engine elsewhere is an http or https address, and nothing else") {
  const Config config = parsed(R"(
[engine]
url = "https://gpu.example:8000/v1"
model = "m"
key_file = "~/key"
prefix = "<P>"
time_limit_ms = 300
window_tokens = 2048
)");
  CHECK(config.warnings.empty());
  CHECK(config.remote.url == "https://gpu.example:8000/v1");
  CHECK(config.remote.model == "m");
  CHECK(config.remote.key_file == "~/key");
  CHECK(config.remote.prefix == "<P>");
  CHECK(config.remote.time_limit_ms == 300);
  CHECK(config.remote.window_tokens == 2048);
  for (const char* bad : {"gpu.example", "ftp://a", "file:///etc/passwd", "http://", "http:///v1",
                          "https://user:secret@a/v1", "http://a b", "http://a/?x", "http://a\\n"}) {
    CAPTURE(bad);
    const Config refused = parsed("[engine]\nurl = \"" + std::string(bad) + "\"\n");
    CHECK(refused.remote.url.empty());
    CHECK(refused.warnings.size() == 1);
  }
}

TEST_CASE("unknown keys are reported with their line and nothing else suffers") {
  const Config config = parsed("[completion]\nmax_tokns = 5\nmax_tokens = 6\n[colour]\nred = 1\n");
  CHECK(config.completion.tokens_max == 6);
  REQUIRE(config.warnings.size() == 2);
  for (const auto& warning : config.warnings) {
    const bool typo = warning.message.find("completion.max_tokns") != std::string::npos;
    CHECK(warning.line == (typo ? 2 : 4));
    if (!typo) CHECK(warning.message.find("colour") != std::string::npos);
  }
}

TEST_CASE("wrong types and values out of bounds are reported and leave the default") {
  for (const char* line : {"completion.max_tokens = 0",
                           "completion.max_tokens = 100000",
                           "completion.max_tokens = \"5\"",
                           "completion.stop = \"never\"",
                           "completion.stop = 1",
                           "completion.temperature = -1",
                           "completion.temperature = nan",
                           "completion.top_p = 2",
                           "completion.seed = -1",
                           "completion.healing = \"yes\"",
                           "completion.healing = true",
                           "cache.memory_mb = 1",
                           "cache.host_mb = -1",
                           "cache.memory_mb = \"much\"",
                           "device.kind = \"abacus\"",
                           "device = 3",
                           "device.weights = \"panel\"",
                           "device.threads = 1.5",
                           "device.memory_mb = 1",
                           "daemon.idle_exit_s = -5",
                           "log.level = \"loud\"",
                           "model.file = \"\"",
                           "model.file = 7",
                           "model = \"m.gguf\"",
                           "model.fim = \"psm\"",
                           "model.fim.order = \"both\"",
                           "model.fim.prefix = 3",
                           "log.level.deep = 1"}) {
    INFO(line);
    const Config config = parsed(std::string("\n") + line + "\n");
    REQUIRE(config.warnings.size() == 1);
    CHECK(config.warnings[0].line == 2);
    CHECK(config.completion.tokens_max == 64);
    CHECK_FALSE(config.model);
    CHECK_FALSE(config.cache_memory_mb);
  }
}

TEST_CASE("malformed TOML is one warning with its line, and all defaults") {
  const Config config = parsed("completion.max_tokens = 5\n[log\nlevel = 1\n");
  REQUIRE(config.warnings.size() == 1);
  CHECK(config.warnings[0].line == 2);
  CHECK_FALSE(config.file_read);
  CHECK(config.completion.tokens_max == 64);
}

TEST_CASE("what cannot be read of exclusions is never taken for none") {
  CHECK(parsed("cache.exclude = [\"a\"]\ncompletion.stop = 1\nunknown = 1\n").exclusions_known);
  for (const char* text :
       {"cache.exclude = [\"a\"]\n[log\n", "cache.exclude = \"*.sql\"\n",
        "cache.exclude = [\"*.sql\", 1]\n", "cache.gitignore = \"yes\"\n", "cache = [\"*.sql\"]\n"})
    check_that_nothing_is_kept(text);
  const test::TempDir folder;
  CHECK(loaded(folder / "none.toml").exclusions_known);
  CHECK_FALSE(loaded(folder.path()).exclusions_known);
  // As in a folder that may not be entered: whether there is a file is not known.
  constexpr std::size_t kTooLong = 300;
  const Config unknown = loaded(folder / std::string(kTooLong, 'a'));
  CHECK_FALSE(unknown.exclusions_known);
  CHECK(unknown.warnings.size() == 1);
}

TEST_CASE("a misspelled exclusion is never taken for none") {
  for (const char* text : {"cache.exlude = [\"*.sql\"]\n", "[cahce]\nexclude = [\"*.sql\"]\n",
                           "exclude = [\"*.sql\"]\n", "[cache]\nexcludes = []\n",
                           "completion.exclude = [\"*.sql\"]\n", "cache.git_ignore = true\n"})
    check_that_nothing_is_kept(text);
  CHECK(parsed("[colour]\nred = 1\n[cache]\nmemory = 3\n").exclusions_known);
}

TEST_CASE("an unknown key's warning names the key that is likely meant") {
  const auto warning = [](const std::string& text) { return parsed(text).warnings.at(0).message; };
  CHECK(warning("completion.max_tokns = 5\n") ==
        "unknown key completion.max_tokns (is completion.max_tokens meant?); it is ignored");
  CHECK(warning("[devcie]\nkind = \"cpu\"\n") ==
        "unknown key devcie (is device meant?); it is ignored");
  CHECK(warning("colour = 1\n") == "unknown key colour; it is ignored");
  CHECK(warning(std::string(10000, 'a') + " = 1\n").ends_with("a; it is ignored"));
}

TEST_CASE("an absent file is no reason for a warning; a folder in its place is") {
  const test::TempDir folder;
  CHECK(loaded(folder / "none.toml").warnings.empty());
  CHECK(loaded(folder.path()).warnings.size() == 1);
}

TEST_CASE("a link to nothing is reported, as when the folder that it leads to is not mounted") {
  const test::TempDir folder;
  std::filesystem::create_symlink("away/config.toml", folder / "config.toml");
  const Config config = loaded(folder / "config.toml");
  REQUIRE(config.warnings.size() == 1);
  CHECK(config.warnings[0].message.starts_with("a link to nothing"));
  CHECK_FALSE(config.exclusions_known);
}

TEST_CASE("a huge file is refused instead of read") {
  const test::TempDir folder;
  std::ofstream(folder / "config.toml") << std::string((1 << 20) + 1, '#');
  const Config config = loaded(folder / "config.toml");
  CHECK(config.warnings.size() == 1);
  CHECK_FALSE(config.file_read);
}

TEST_CASE("EFIMD_MODEL goes over the file, and says so") {
  const test::TempDir folder;
  std::ofstream(folder / "config.toml") << "model.file = \"a.gguf\"\n";
  const Config config = loaded(folder / "config.toml", {{"EFIMD_MODEL", "/b.gguf"}});
  CHECK(config.model == std::filesystem::path("/b.gguf"));
  CHECK(config.model_source == "EFIMD_MODEL");
}

TEST_CASE("EFIMD_DEVICE names a kind of device; another word is reported") {
  const auto with = [](const char* device) { return loaded("none", {{"EFIMD_DEVICE", device}}); };
  for (const char* kind : {"auto", "cpu", "cuda", "vulkan"}) {
    CHECK(with(kind).device_kind == kind);
    CHECK(with(kind).warnings.empty());
  }
  CHECK(with("abacus").warnings.size() == 1);
}

TEST_CASE("the automatic KV budget is between 64 MiB and 1 GiB") {
  const std::size_t bytes = service::kv_budget_bytes(Config{});
  CHECK(bytes >= std::size_t{64} << 20);
  CHECK(bytes <= std::size_t{1} << 30);
}

TEST_CASE("the table of docs/configuration.md has a row for every key, with its bars escaped") {
  const std::string table = service::config_table();
  for (const service::ConfigKey& key : service::config_keys())
    CHECK(table.find("| `" + std::string(key.name) + "` |") != std::string::npos);
  CHECK(table.find("\"auto\" \\| \"cpu\"") != std::string::npos);
}

TEST_CASE("a key of very many parts is refused before anything calls itself for each") {
  std::string key = "a";
  for (int i = 0; i < 100'000; ++i) key += ".a";
  for (const std::string& text : {key + " = 1\n", "x = {" + key + " = 1}\n", "[" + key + "]\n"}) {
    const Config config = service::parse_config(text, "/c.toml");
    REQUIRE(config.warnings.size() == 1);
    CHECK(config.warnings[0].message.find("parts") != std::string::npos);
    CHECK_FALSE(config.file_read);
  }
}

TEST_CASE("a key of very many parts hides behind no sign that quotes may hold") {
  const auto repeated = [](std::string_view part) {
    std::string key;
    for (int i = 0; i < 100'000; ++i) key.append(part);
    return key + "a = 1";
  };
  for (const std::string_view part :
       {R"("!".)", R"('#' . )", R"("\"".)", "\"\".", "\"a\"\u00a0."}) {
    const std::string key = repeated(part);
    for (const std::string& text :
         {key, "x = {" + key + "}", "x = {a = \"\"\"\n#\"\"\", " + key + "}",
          "x = {a = \"\"\"q\"\"\"\"\", " + key + "}", "x = {a = '''\n\"''', " + key + "}"}) {
      INFO(text.substr(0, 40));
      const Config config = service::parse_config(text, "/c.toml");
      REQUIRE(config.warnings.size() == 1);
      CHECK(config.warnings[0].message.find("parts") != std::string::npos);
    }
  }
}

TEST_CASE("what only has many dots is no key of many parts") {
  const auto listed = [](std::string_view value) {
    std::string list = "# " + std::string(100, '.') + "\nx = [";
    for (int i = 0; i < 1000; ++i) list.append(value).append(", ");
    return list + "]\n";
  };
  for (const std::string_view value : {"1.5", R"("*.key")", "'a.b'", R"("https://a.b.c/d.e")"})
    CHECK(service::parse_config(listed(value), "/c.toml").file_read);
}
