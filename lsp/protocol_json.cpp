#include <algorithm>

#include "lsp/protocol.h"

namespace efimd::lsp {

namespace {

/// textDocumentSync.change
constexpr int kIncremental = 2;

Json command_json(const Command& command) {
  return {{"title", command.title},
          {"command", command.command},
          {"arguments", Json(command.arguments)}};
}

Json progress(const Id& token, Json value) {
  return {{"token", to_json(token)}, {"value", std::move(value)}};
}

}  // namespace

Json to_json(const Position& position) {
  return {{"line", position.line}, {"character", position.character}};
}

Json to_json(const Range& range) {
  return {{"start", to_json(range.start)}, {"end", to_json(range.end)}};
}

Json to_json(const InlineCompletionItem& item) {
  Json out = {{"insertText", item.insertText}, {"range", to_json(item.range)}};
  if (!item.filterText.empty()) out["filterText"] = item.filterText;
  if (item.command) out["command"] = command_json(*item.command);
  return out;
}

Json inline_completion_list(std::span<const InlineCompletionItem> items) {
  Json list = Json::array();
  for (const InlineCompletionItem& item : items) list.push_back(to_json(item));
  return {{"items", std::move(list)}};
}

Json initialize_result(PositionEncoding encoding, const ServerIdentity& server,
                       std::span<const std::string> commands) {
  Json capabilities = {
      {"positionEncoding", encoding_name(encoding)},
      {"textDocumentSync", {{"openClose", true}, {"change", kIncremental}}},
      {"inlineCompletionProvider", true},
      {"executeCommandProvider",
       {{"commands", Json(Json::array_t(commands.begin(), commands.end()))}}},
      {"workspace", {{"workspaceFolders", {{"supported", true}, {"changeNotifications", true}}}}},
  };
  return {{"capabilities", std::move(capabilities)},
          {"serverInfo", {{"name", server.name}, {"version", server.version}}}};
}

Json watch_files_params(std::string_view registration) {
  Json watchers = Json::array();
  watchers.push_back({{"globPattern", "**/*"}});
  Json registrations = Json::array();
  registrations.push_back({{"id", registration},
                           {"method", "workspace/didChangeWatchedFiles"},
                           {"registerOptions", {{"watchers", std::move(watchers)}}}});
  return {{"registrations", std::move(registrations)}};
}

Json work_done_create_params(const Id& token) {
  Json out;
  out["token"] = to_json(token);
  return out;
}

Json progress_begin_params(const Id& token, std::string_view title) {
  return progress(token,
                  {{"kind", "begin"}, {"title", title}, {"cancellable", false}, {"percentage", 0}});
}

Json progress_report_params(const Id& token, std::string_view message, int percentage) {
  return progress(
      token,
      {{"kind", "report"}, {"message", message}, {"percentage", std::clamp(percentage, 0, 100)}});
}

Json progress_end_params(const Id& token, std::string_view message) {
  return progress(token, {{"kind", "end"}, {"message", message}});
}

Json partial_result_params(const Id& token, std::span<const InlineCompletionItem> items) {
  return progress(token, inline_completion_list(items));
}

Json message_params(MessageType type, std::string_view message) {
  return {{"type", static_cast<int>(type)}, {"message", message}};
}

}  // namespace efimd::lsp
