#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/commands/table.h"
#include "daemon/cli/model/asked_model.h"
#include "daemon/config/config.h"
#include "daemon/models/chosen_model.h"
#include "daemon/models/engine_host.h"
#include "daemon/models/model_catalog.h"
#include "daemon/models/speed/expected_speed.h"
#include "engine/model/architecture.h"
#include "engine/model/model.h"
#include "engine/model/tensor_groups.h"
#include "lsp/json_rpc.h"

namespace efimd::service {

using lsp::Json;

namespace {

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

/// The model's expected speed on a device, or why it would not run there.
struct DeviceSpeed {
  std::string kind;
  Result<ExpectedSpeed> speed;
};
using Speeds = std::vector<DeviceSpeed>;

/// On each device of this machine that this build can use.
Speeds speeds_here(const engine::Model& model, const Config& config) {
  Speeds speeds;
  const std::uint64_t bytes = model.weight_bytes();
  for (const DeviceHere& device : devices_here(config, {&bytes, 1}))
    speeds.push_back({device.kind, expected_speed(model, device.make)});
  return speeds;
}

Json groups_json(const engine::Model& model) {
  Json list = Json::array();
  for (const engine::TensorGroup& group : engine::tensor_groups(model.file())) {
    Json types = Json::array();
    for (const auto& [type, tensors, bytes] : group.parts)
      types.push_back(
          {{"type", engine::tensor_type_name(type)}, {"tensors", tensors}, {"bytes", bytes}});
    list.push_back({{"name", group.name}, {"bytes", group.bytes()}, {"types", std::move(types)}});
  }
  return list;
}

std::string groups_table(const engine::Model& model) {
  std::vector<std::vector<std::string>> rows;
  for (const engine::TensorGroup& group : engine::tensor_groups(model.file())) {
    std::string types;
    for (const auto& part : group.parts)
      types += fmt::format("{}{} {}", types.empty() ? "" : ", ", part.tensors,
                           engine::tensor_type_name(part.type));
    rows.push_back({group.name, types, bytes_text(static_cast<double>(group.bytes()))});
  }
  return table({{"tensors", Align::kLeft}, {"types", Align::kLeft}, {"size"}}, rows);
}

Json speeds_json(const Speeds& speeds) {
  Json list = Json::array();
  for (const auto& [kind, speed] : speeds) {
    if (!speed)
      list.push_back({{"kind", kind}, {"reason", speed.error().message()}});
    else
      list.push_back({{"kind", kind},
                      {"name", speed->device_name},
                      {"generationTokensPerS", speed->generation_tokens_per_s},
                      {"promptTokensPerS", speed->prompt_tokens_per_s},
                      {"layersMeasured", speed->layers_measured}});
  }
  return list;
}

std::string rate_text(double per_s) { return fmt::format("{:.{}f}", per_s, per_s < 100 ? 1 : 0); }

std::string speeds_text(const Speeds& speeds, const engine::Model& model) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [kind, speed] : speeds) {
    if (!speed)
      rows.push_back({kind, "-", "-", "-", speed.error().message()});
    else
      rows.push_back({kind, rate_text(speed->prompt_tokens_per_s),
                      rate_text(speed->generation_tokens_per_s),
                      fmt::format("{} of {}", speed->layers_measured, model.shape().layers),
                      speed->device_name});
  }
  return fmt::format("Expected speed after {} tokens, measured now on the first layers:\n{}",
                     kExpectedBehindTokens,
                     table({{"device", Align::kLeft},
                            {"prompt, tokens/s"},
                            {"generation, tokens/s"},
                            {"layers"},
                            {"", Align::kLeft}},
                           rows));
}

/// How prompts say which file their text is from, special tokens as [ID]; empty: they do not.
std::string path_form(const engine::FimTokens& fim) {
  using Place = engine::FimFiles::Place;
  const engine::FimFiles& files = fim.files;
  if (files.place == Place::kNowhere || fim.order == engine::FimOrder::kNone) return "";
  std::string form;
  if (files.names_repository && fim.repository != engine::kNoToken)
    form += fmt::format("[{}] REPOSITORY ", fim.repository);
  if (files.mark != engine::kNoToken) form += fmt::format("[{}] ", files.mark);
  const std::string path =
      files.paths_are_comments ? "PATH in a comment" : files.before_path + "PATH";
  if (files.place == Place::kInsidePrefix) return form + fmt::format("[{}] {}", fim.prefix, path);
  const bool suffix_first = fim.order == engine::FimOrder::kSpm;
  return form + fmt::format("{} [{}]", path, suffix_first ? fim.suffix : fim.prefix);
}

Json info_json(const engine::Model& model, const std::optional<Speeds>& speeds) {
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
          {"tensors", groups_json(model)},
          {"expectedSpeed", speeds ? speeds_json(*speeds) : Json(nullptr)},
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
            {"fileSeparator", token_json(fim.file_separator)},
            {"path", path_form(fim)}}}};
}

std::string info_listing(const engine::Model& model) {
  const engine::ModelShape& shape = model.shape();
  const engine::FimTokens& fim = model.tokenizer().fim();
  const ModelInfo info = model_info(model);
  const std::string path = path_form(fim);
  return listing(
      {{"name", info.name},
       {"file", info.path},
       {"architecture", engine::describe(shape, model.weights())},
       {"parameters", parameters_text(model)},
       {"weights", fmt::format("{}, {}", info.file_type,
                               bytes_text(static_cast<double>(model.weight_bytes())))},
       {"layers", std::to_string(shape.layers)},
       {"width", fmt::format("{}, feed-forward {}", shape.width, shape.feed_forward)},
       {"heads", fmt::format("{} of {}, {} for keys and values", shape.heads, shape.head_width,
                             shape.kv_heads)},
       {"vocabulary", std::to_string(shape.vocabulary)},
       {"context", fmt::format("{} tokens", shape.context_tokens)},
       {"KV per token", bytes_text(static_cast<double>(shape.kv_bytes_per_token()))},
       {"tokenizer",
        fmt::format("{}, BOS {}", tokenizer_name(model), token_text(model.tokenizer().bos()))},
       {"FIM", fmt::format("{}: prefix {}, suffix {}, middle {} ({})", info.fim_order,
                           token_text(fim.prefix), token_text(fim.suffix), token_text(fim.middle),
                           fim.reason)},
       {"path of the file", path.empty() ? "not in the prompt: no form of it is known" : path},
       {"digest", info.digest}});
}

std::string info_text(const engine::Model& model, const std::optional<Speeds>& speeds) {
  const std::string text = info_listing(model) + "\n" + groups_table(model);
  return speeds ? text + "\n" + speeds_text(*speeds, model) : text;
}

Result<std::filesystem::path> file_asked_for(const Config& config, const CommandLine& line) {
  std::error_code error;
  if (std::filesystem::exists(line.model_file, error)) return line.model_file;
  if (!line.model_file.empty()) return find_asked_model(config, line.model_file.string());
  auto choice = choose_model(config, find_model_places());
  if (!choice) return tl::unexpected(choice.error());
  return std::move(choice->path);
}

}  // namespace

int run_model_info(const Paths& paths, const CommandLine& line) {
  const Config config = config_in_force(paths);
  const auto file = file_asked_for(config, line);
  if (!file) return failed(file.error());
  const auto model = engine::Model::open(*file, config.fim);
  if (!model) return failed(model.error());
  std::optional<Speeds> speeds;
  if (!line.no_speed) speeds = speeds_here(**model, config);
  if (line.json)
    fmt::print("{}\n", lsp::json_text(info_json(**model, speeds)));
  else
    fmt::print("{}", info_text(**model, speeds));
  return 0;
}

}  // namespace efimd::service
