#include "engine/model/model.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "daemon/service/chosen_model.h"
#include "daemon/service/commands/commands.h"
#include "daemon/service/commands/table.h"
#include "daemon/service/config.h"
#include "daemon/service/engine_host.h"
#include "daemon/service/model_catalog.h"
#include "engine/model/architecture.h"
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

std::string_view tokenizer_name(const engine::Model& model) {
  return model.file().string("tokenizer.ggml.model").value_or("?");
}

std::string token_text(engine::TokenId token) {
  return token == engine::kNoToken ? "-" : std::to_string(token);
}

Json token_json(engine::TokenId token) { return token == engine::kNoToken ? Json() : Json(token); }

std::string parameters_text(const engine::Model& model) {
  const auto count = [](std::uint64_t parameters) {
    return fmt::format("{} ({})", count_text(static_cast<double>(parameters)), parameters);
  };
  if (model.active_parameters() == model.parameters()) return count(model.parameters());
  return count(model.parameters()) + ", for one token " + count(model.active_parameters());
}

Json info_json(const engine::Model& model) {
  const engine::ModelShape& shape = model.shape();
  const engine::FimTokens& fim = model.tokenizer().fim();
  const ModelInfo info = model_info(model);
  return {{"name", info.name},
          {"path", info.path},
          {"architecture", info.architecture},
          {"recognized", engine::describe(shape, model.weights())},
          {"parameters", info.parameters},
          {"activeParameters", model.active_parameters()},
          {"fileType", info.file_type},
          {"weightBytes", model.weight_bytes()},
          {"digest", info.digest},
          {"layers", shape.layers},
          {"width", shape.width},
          {"heads", shape.heads},
          {"kvHeads", shape.kv_heads},
          {"headWidth", shape.head_width},
          {"feedForward", shape.feed_forward},
          {"vocabulary", shape.vocabulary},
          {"contextTokens", shape.context_tokens},
          {"kvBytesPerToken", shape.kv_bytes_per_token()},
          {"tokenizer", tokenizer_name(model)},
          {"bos", token_json(model.tokenizer().bos())},
          {"fragmentTrained", model.fragment_trained()},
          {"fim",
           {{"order", info.fim_order},
            {"reason", fim.reason},
            {"prefix", token_json(fim.prefix)},
            {"suffix", token_json(fim.suffix)},
            {"middle", token_json(fim.middle)},
            {"repository", token_json(fim.repository)},
            {"fileSeparator", token_json(fim.file_separator)}}}};
}

std::string info_text(const engine::Model& model) {
  const engine::ModelShape& shape = model.shape();
  const engine::FimTokens& fim = model.tokenizer().fim();
  const ModelInfo info = model_info(model);
  return listing({{"name", info.name},
                  {"file", info.path},
                  {"architecture", engine::describe(shape, model.weights())},
                  {"parameters", parameters_text(model)},
                  {"weights", fmt::format("{}, {}", info.file_type,
                                          bytes_text(static_cast<double>(model.weight_bytes())))},
                  {"layers", std::to_string(shape.layers)},
                  {"width", fmt::format("{}, feed-forward {}", shape.width, shape.feed_forward)},
                  {"heads", fmt::format("{} of {}, {} for keys and values", shape.heads,
                                        shape.head_width, shape.kv_heads)},
                  {"vocabulary", std::to_string(shape.vocabulary)},
                  {"context", fmt::format("{} tokens", shape.context_tokens)},
                  {"KV per token", bytes_text(static_cast<double>(shape.kv_bytes_per_token()))},
                  {"tokenizer", fmt::format("{}, BOS {}", tokenizer_name(model),
                                            token_text(model.tokenizer().bos()))},
                  {"FIM", fmt::format("{}: prefix {}, suffix {}, middle {} ({})", info.fim_order,
                                      token_text(fim.prefix), token_text(fim.suffix),
                                      token_text(fim.middle), fim.reason)},
                  {"digest", info.digest}});
}

Config config_in_force(const Paths& paths) {
  Config config = load_config(paths.config_file);
  take_chosen_model(config, paths);
  return config;
}

Result<std::filesystem::path> file_asked_for(const Paths& paths, const CommandLine& line) {
  if (!line.model_file.empty()) return line.model_file;
  auto choice = choose_model(config_in_force(paths), find_model_places());
  if (!choice) return tl::unexpected(choice.error());
  return std::move(choice->path);
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
  fmt::print("\nin use: {} ({})\n", used.string(), choice->reason);
  return 0;
}

int run_model_info(const Paths& paths, const CommandLine& line) {
  const auto file = file_asked_for(paths, line);
  if (!file) return failed(file.error());
  const auto model = engine::Model::open(*file, load_config(paths.config_file).fim);
  if (!model) return failed(model.error());
  if (line.json)
    fmt::print("{}\n", lsp::json_text(info_json(**model)));
  else
    fmt::print("{}", info_text(**model));
  return 0;
}

}  // namespace efimd::service
