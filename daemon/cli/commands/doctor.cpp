#include "daemon/cli/commands/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/commands/table.h"
#include "daemon/client/client.h"
#include "daemon/config/build.h"
#include "daemon/config/config.h"
#include "daemon/config/engine_key.h"
#include "daemon/config/http_state.h"
#include "daemon/config/printable.h"
#include "daemon/config/sandbox.h"
#include "daemon/config/this_system.h"
#include "daemon/config/version.h"
#include "daemon/files/exclusions.h"
#include "daemon/models/chosen_model.h"
#include "daemon/models/kv_choice.h"
#include "daemon/models/model_catalog.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/open_backend.h"
#include "engine/model/model.h"

namespace efimd::service {

namespace fs = std::filesystem;
using Level = Finding::Level;
using lsp::Json;

namespace {

Finding wrong(std::string subject, const Error& error) {
  return {Level::kWrong, std::move(subject), error.what, error.remedy};
}

void examine_machine(std::vector<Finding>& findings) {
  findings.push_back({Level::kGood, "processor",
                      fmt::format("{} hardware threads, {} in use",
                                  std::max(1U, std::thread::hardware_concurrency()),
                                  engine::isa_name(engine::best_isa())),
                      ""});
  const std::string offered = offered_sandbox();
  findings.push_back({offered.empty() ? Level::kNote : Level::kGood, "sandbox",
                      offered.empty() ? "this kernel offers none" : "offered: " + offered, ""});
  findings.push_back({Level::kGood, "memory", bytes_text(static_cast<double>(memory_bytes())), ""});
}

void examine_devices(const Config& config, std::vector<Finding>& findings) {
  for (const engine::FoundDevice& device : engine::find_devices(config.device_kind))
    findings.push_back(finding_of(device, config.device_kind));
  findings.push_back({Level::kGood, "device", config.device_kind + " (device.kind)", ""});
}

void examine_config(const Config& config, std::vector<Finding>& findings) {
  std::error_code error;
  if (std::getenv("EFIMD_CONFIG") != nullptr && !std::filesystem::exists(config.file, error))
    findings.push_back({Level::kNote, "configuration",
                        config.file.string() + " (EFIMD_CONFIG) is not there: defaults apply",
                        "make it, or unset EFIMD_CONFIG"});
  else
    findings.push_back(
        {Level::kGood, "configuration",
         config.file.string() + (config.file_read ? "" : " is not in use: defaults apply"), ""});
  for (const ConfigWarning& warning : config.warnings)
    findings.push_back({Level::kWrong, "configuration",
                        warning.line > 0 ? fmt::format("{}:{}: {}", config.file.string(),
                                                       warning.line, warning.message)
                                         : warning.message,
                        "correct it, or remove it"});
}

void examine_store(const Config& config, const Paths& paths, std::vector<Finding>& findings) {
  const std::size_t budget = disk_budget_bytes(config, paths.cache_dir);
  findings.push_back({Level::kGood, "KV on disk",
                      budget == 0 || !config.exclusions_known
                          ? "none is kept"
                          : fmt::format("at most {} in {}", bytes_text(static_cast<double>(budget)),
                                        paths.store_dir().string()),
                      ""});
  const auto secrets = Exclusions::secret_patterns();
  findings.push_back(
      {Level::kGood, "never on disk",
       fmt::format("{}{}{}{}; untitled documents", fmt::join(secrets, " "),
                   config.cache_exclude.empty() ? "" : " ", fmt::join(config.cache_exclude, " "),
                   config.cache_gitignore ? "; what git ignores" : ""),
       ""});
  if (!config.secret_files)
    findings.push_back({Level::kGood, "no completion",
                        "in files that may hold secrets (the built-in patterns above)", ""});
}

void examine_model(const Config& config, std::vector<Finding>& findings) {
  const auto choice = choose_model(config, find_model_places());
  if (!choice) return findings.push_back(wrong("model", choice.error()));
  const auto model = engine::Model::open(choice->path, config.fim);
  if (!model) return findings.push_back(wrong("model", model.error()));
  findings.push_back(
      {Level::kGood, "model",
       fmt::format("{} ({}): {}, {} parameters, {}", choice->path.string(), choice->reason,
                   (*model)->name(), count_text(static_cast<double>((*model)->parameters())),
                   (*model)->file_type()),
       ""});
  const engine::FimTokens& fim = (*model)->tokenizer().fim();
  if (fim.order == engine::FimOrder::kNone)
    findings.push_back({Level::kWrong, "model", "not trained to fill in the middle: " + fim.reason,
                        "choose a model with FIM tokens, see 'efimd model info'"});
}

void examine_kv_type(const Config& config, const Paths& paths, std::vector<Finding>& findings) {
  const auto good = [&](std::string what) {
    findings.push_back({Level::kGood, "KV", std::move(what), ""});
  };
  if (config.kv_type == engine::KvType::kF16) return good("f16");
  const auto choice = choose_model(config, find_model_places());
  const auto model =
      choice ? engine::Model::open(choice->path, config.fim)
             : Result<std::shared_ptr<const engine::Model>>(tl::unexpected(choice.error()));
  if (!model) return;  // examine_model() says why
  const auto error = KvErrors(paths.kv_errors_file()).find((*model)->digest(), kv_kernels());
  if (!error)
    return good("q8, if its error is small; the daemon measures that when it loads the model");
  if (error->is_small()) return good("q8: " + kv_error_text(*error));
  findings.push_back(
      {Level::kNote, "KV",
       "f16, because q8 changes this model's output too much: " + kv_error_text(*error),
       "set cache.kv_type to \"f16\", or use another model"});
}

/// "1: 29 ms, 4: 31 ms": what steps of so many tokens cost on the daemon's device.
std::string step_costs_text(const Json& status) {
  std::string out;
  for (const Json& cost : status.value("device", Json::object()).value("stepCosts", Json::array()))
    out += fmt::format("{}{}: {:.3g} ms", out.empty() ? "; steps of " : ", ",
                       cost.value("tokens", 0), cost.value("ms", 0.0));
  return out;
}

/// "; sandbox: calls and files": what is in force in the daemon.
std::string sandbox_of(const Json& status) {
  const Json sandbox = status.value("sandbox", Json::object());
  return "; sandbox: " + sandbox_text({sandbox.value("calls", false), sandbox.value("files", false),
                                       sandbox.value("why", "")});
}

/// "; runs on cpu, NAME (why), weights: panels of 525 MB"
std::string device_text(const Json& status) {
  const Json device = status.value("device", Json::object());
  if (!device.contains("kind")) return {};
  const std::string weights = device.value("weights", "");
  return fmt::format("; runs on {}, {} ({}){}{}", device.value("kind", ""),
                     device.value("name", ""), device.value("reason", ""),
                     weights.empty() ? "" : ", weights: ", weights);
}

Finding examine_daemon(const Paths& paths) {
  auto socket = connect_to_daemon(paths);
  if (!socket && socket.error().fault == Fault::kNotFound) {
    const Error why = none_listens(paths);
    if (why.fault != Fault::kNotFound) return wrong("daemon", why);
    return {Level::kGood, "daemon", "none is running; the first editor starts it", ""};
  }
  if (!socket) return wrong("daemon", socket.error());
  RpcClient client(std::move(*socket));
  const auto status =
      client.request("efim/status", nullptr, std::chrono::steady_clock::now() + kStatusAnswerMax);
  if (!status) return wrong("daemon", status.error());
  const auto version =
      client.request("efim/version", nullptr, std::chrono::steady_clock::now() + kStatusAnswerMax);
  const Json running = version ? *version : Json::object();
  const auto build = build_of(running.value("build", Json()));
  if (!build || build->id != this_build().id)
    return {Level::kNote, "daemon",
            fmt::format("process {} is another build ({}, {})", running.value("pid", 0),
                        running.value("version", "?"), build ? build->program : "an older one"),
            "'efimd stop' ends it, and the next editor starts its own"};
  const Json state = status->value("state", Json::object());
  if (state.value("name", "") == "failed")
    return {Level::kWrong, "daemon", state.value("message", "its model failed"),
            "correct it; the next request tries again"};
  const Json store = status->value("store", Json::object());
  if (const std::string trouble = store.is_object() ? store.value("trouble", "") : "";
      !trouble.empty())
    return {store.value("usable", false) ? Level::kNote : Level::kWrong, "daemon",
            fmt::format("process {}: {}", status->value("pid", 0), trouble), ""};
  return {Level::kGood, "daemon",
          fmt::format("process {}, up {}, {}{}{}{}", status->value("pid", 0),
                      duration_text(status->value("uptimeS", 0.0)), state.value("name", "?"),
                      device_text(*status), step_costs_text(*status), sandbox_of(*status)),
          ""};
}

/// What leaves this machine, and whether who sends it runs.
Finding examine_remote(const Config& config, const Paths& paths) {
  const std::string& url = config.remote.url;
  if (url.empty()) return {Level::kGood, "elsewhere", "no engine; nothing leaves this machine", ""};
  if (!config.remote.key_file.empty())  // EFIMD_ENGINE_KEY may be another shell's
    if (const auto key = find_engine_key(config.remote.key_file, nullptr); !key)
      return {Level::kWrong, "elsewhere", "engine.key_file: " + key.error().what,
              key.error().remedy + ", then run 'efimd stop'"};
  if (LockFile::is_held(paths.daemon_lock()) && !LockFile::is_held(paths.remote_lock()))
    return {Level::kWrong, "elsewhere", "efimd-http does not run, so " + url + " is not asked",
            "'efimd stop'; the next editor starts both"};
  return {Level::kNote, "elsewhere", "the text around the cursor is sent to " + url,
          "'efimd status' says whether it answers"};
}

/// Whether clients by HTTP are served, and why not.
Finding examine_http(const Config& config, const Paths& paths) {
  const HttpState state = http_state(paths);
  const std::string text = http_text(state, config.http);
  if (state.runs || !config.http.enable) return {Level::kGood, "http", text, ""};
  // It may have been ended by 'efimd http --stop'.
  if (state.trouble.empty()) return {Level::kNote, "http", text, ""};
  return {Level::kWrong, "http", text, "then run 'efimd http --background'"};
}

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kGood:
      return "good";
    case Level::kNote:
      return "note";
    case Level::kWrong:
      return "wrong";
  }
  return "wrong";
}

}  // namespace

Finding finding_of(const engine::FoundDevice& device, std::string_view kind) {
  if (device.usable) return {Level::kGood, device.kind, device.what, ""};
  const bool wanted = kind == device.kind;
  const bool told = wanted || (device.refused && kind == "auto");
  return {wanted ? Level::kWrong
          : told ? Level::kNote
                 : Level::kGood,
          device.kind, "none: " + device.what, told ? device.remedy : ""};
}

std::vector<Finding> examine(const Paths& paths) {
  std::vector<Finding> findings;
  examine_machine(findings);
  examine_paths(paths, findings);
  const Config config = config_in_force(paths);
  examine_devices(config, findings);
  examine_config(config, findings);
  examine_store(config, paths, findings);
  examine_model(config, findings);
  examine_kv_type(config, paths, findings);
  findings.push_back(examine_remote(config, paths));
  findings.push_back(examine_http(config, paths));
  findings.push_back(examine_daemon(paths));
  return findings;
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<5}  {:<13}  {}\n", level_name(finding.level), finding.subject,
                        finding.what);
    if (!finding.remedy.empty())
      text += fmt::format("{:<5}  {:<13}  -> {}\n", "", "", finding.remedy);
  }
  return text;
}

Json findings_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings)
    list.push_back({{"level", level_name(finding.level)},
                    {"subject", finding.subject},
                    {"what", finding.what},
                    {"remedy", finding.remedy}});
  return {{"version", version()}, {"wrong", anything_wrong(findings)}, {"findings", list}};
}

bool anything_wrong(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings,
                             [](const Finding& each) { return each.level == Level::kWrong; });
}

int run_doctor(const Paths& paths, const CommandLine& line) {
  const std::vector<Finding> findings =
      line.doctor_file.empty() ? examine(paths)
                               : examine_file(config_in_force(paths), line.doctor_file);
  if (line.json)
    fmt::print("{}\n", lsp::json_text(findings_json(findings)));
  else
    fmt::print("{}", printable(findings_text(findings)));
  if (!anything_wrong(findings)) return 0;
  return failed({Fault::kBadInput, "something is wrong, see above", ""});
}

}  // namespace efimd::service
