#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/model/asked_model.h"
#include "daemon/client/client.h"
#include "daemon/config/config.h"
#include "daemon/config/printable.h"
#include "daemon/models/chosen_model.h"
#include "daemon/models/model_catalog.h"
#include "engine/model/model.h"
#include "lsp/json_rpc.h"

// The daemon that runs is asked to finish. Each editor's `efimd lsp` keeps the open documents,
// starts the next daemon with the new model and hands them over. Until it is loaded, requests are
// answered with that reason. The model is opened here first, so that one that cannot run changes
// nothing.

namespace efimd::service {

namespace {

void print(const CommandLine& line, const std::filesystem::path& path, std::string_view daemon) {
  if (line.json)
    fmt::print("{}\n", lsp::json_text({{"path", path.string()}, {"daemon", daemon}}));
  else
    fmt::print("in use: {} ({})\n", printable(path.string()), daemon);
}

}  // namespace

int run_model_use(const Paths& paths, const CommandLine& line) {
  Config config = load_config(paths.config_file);
  if (config.model_source == "EFIMD_MODEL")
    return failed({Fault::kUnsupported, "EFIMD_MODEL is set and decides", "unset it"});
  if (line.model_configured) {
    if (auto done = forget_chosen_model(paths); !done) return failed(done.error());
  } else {
    const auto path = find_asked_model(config, line.model_file.string());
    if (!path) return failed(path.error());
    const auto model = engine::Model::open(*path, config.fim);
    if (!model) return failed(model.error());
    if (auto done = choose_model_for_good(paths, *path); !done) return failed(done.error());
  }
  take_chosen_model(config, paths);
  const auto choice = choose_model(config, find_model_places());
  if (!choice) return failed(choice.error());
  const auto stopped = stop_daemon(paths);
  if (!stopped) return failed(stopped.error());
  print(line, choice->path,
        *stopped == Stopped::kFinished ? "editors start the daemon anew, with their documents"
                                       : "no daemon was running");
  return 0;
}

}  // namespace efimd::service
