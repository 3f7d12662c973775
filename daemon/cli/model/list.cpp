#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/commands/table.h"
#include "daemon/config/printable.h"
#include "daemon/models/chosen_model.h"
#include "daemon/models/model_catalog.h"
#include "lsp/json_rpc.h"

namespace efimd::service {

using lsp::Json;

namespace {

Json list_json(const std::vector<ModelFile>& files, const std::filesystem::path& used) {
  Json list = Json::array();
  for (const ModelFile& file : files)
    list.push_back({{"path", file.path.string()},
                    {"name", file.name},
                    {"origin", file.origin},
                    {"bytes", file.bytes},
                    {"parts", file.parts},
                    {"bundled", file.bundled},
                    {"used", file.path == used}});
  return list;
}

std::string list_table(const std::vector<ModelFile>& files, const std::filesystem::path& used) {
  std::vector<std::vector<std::string>> rows;
  for (const ModelFile& file : files)
    rows.push_back({file.path == used ? "*" : "", file.name,
                    bytes_text(static_cast<double>(file.bytes)), file.origin, file.path.string()});
  return table({{"", Align::kLeft},
                {"model", Align::kLeft},
                {"size"},
                {"from", Align::kLeft},
                {"file", Align::kLeft}},
               rows);
}

}  // namespace

int run_model_list(const Paths& paths, const CommandLine& line) {
  const ModelPlaces places = find_model_places();
  const std::vector<ModelFile> files = list_models(places);
  const auto choice = choose_model(config_in_force(paths), places);
  const std::filesystem::path used = choice ? choice->path : std::filesystem::path();
  if (line.json) {
    fmt::print("{}\n", lsp::json_text(list_json(files, used)));
    return 0;
  }
  fmt::print("{}", list_table(files, used));
  if (!choice) return failed(choice.error());
  std::error_code error;
  fmt::print("\nin use: {} ({}){}\n", printable(used.string()), choice->reason,
             std::filesystem::exists(used, error) ? "" : " (missing)");
  return 0;
}

}  // namespace efimd::service
