#include "lsp/protocol.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "lsp/document_fields.h"
#include "lsp/framing.h"

namespace efimd::lsp {

namespace {

constexpr std::size_t kEncodingsMax = 16;  ///< of a longer list the rest is not looked at
constexpr std::size_t kUnknownKeysMax = 16;

std::string uri_in(const Field& params) {
  return params.member("textDocument").member("uri").string(kUriBytesMax);
}

std::optional<Id> id_in(const Field& field) {
  if (!field.there()) return std::nullopt;
  std::optional<Id> id = id_of(field.json());
  if (!id) field.refuse("an integer or a string");
  return id;
}

std::optional<EfimStop> stop_in(const Field& field) {
  const std::optional<std::string> name = field.optional_string(kNameBytesMax);
  if (!name) return std::nullopt;
  if (*name == "none") return EfimStop::kNone;
  if (*name == "line") return EfimStop::kLine;
  if (*name == "block") return EfimStop::kBlock;
  field.refuse("\"none\", \"line\" or \"block\"");
  return std::nullopt;
}

std::vector<std::string> unknown_keys(const Field& field) {
  static constexpr std::array<std::string_view, 5> kKnown = {"receipts", "state", "maxTokens",
                                                             "stop", "temperature"};
  std::vector<std::string> unknown;
  if (!field.json().is_object()) return unknown;
  for (const auto& [key, value] : field.json().items()) {
    if (std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end()) continue;
    if (unknown.size() < kUnknownKeysMax) unknown.push_back(key.substr(0, kNameBytesMax));
  }
  return unknown;
}

EfimOptions efim_options_in(const Field& field) {
  EfimOptions options;
  options.receipts = field.member("receipts").optional_boolean();
  options.state = field.member("state").optional_boolean();
  if (const auto tokens = field.member("maxTokens").optional_integer(1, kMaxTokensMax))
    options.maxTokens = static_cast<int>(*tokens);
  options.stop = stop_in(field.member("stop"));
  options.temperature = field.member("temperature").optional_number(0, kTemperatureMax);
  options.unknown = unknown_keys(field);
  return options;
}

std::vector<std::string> encodings_in(const Field& list) {
  std::vector<std::string> names;
  const std::size_t count = std::min(list.array_size(), kEncodingsMax);
  for (std::size_t i = 0; i < count; ++i) names.push_back(list.element(i).string(kNameBytesMax));
  return names;
}

std::vector<std::string> folders_in(const Field& list) {
  std::vector<std::string> uris;
  const std::size_t count = std::min(list.array_size(), kWorkspaceFoldersMax);
  for (std::size_t i = 0; i < count; ++i)
    uris.push_back(list.element(i).member("uri").string(kUriBytesMax));
  return uris;
}

std::optional<SelectedCompletionInfo> selected_in(const Field& field) {
  if (!field.there()) return std::nullopt;
  return SelectedCompletionInfo{range_in(field.member("range")),
                                field.member("text").string(kMessageBytesMax)};
}

/// Pre-release servers and clients counted from 0.
InlineCompletionTriggerKind trigger_in(const Field& context) {
  const auto kind = context.member("triggerKind").optional_integer(0, kUintegerMax);
  return kind && *kind <= 1 ? InlineCompletionTriggerKind::kInvoked
                            : InlineCompletionTriggerKind::kAutomatic;
}

}  // namespace

std::string document_uri(const Json& params) {
  Reading ignored;
  const Field root(ignored, params, "params");
  return root.member("textDocument").member("uri").optional_string(kUriBytesMax).value_or("");
}

template <>
Result<InitializeParams> params_of(const Json& params) {
  Reading reading;
  const Field root = root_of(reading, params);
  InitializeParams out;
  constexpr auto kAny = std::numeric_limits<std::int64_t>();
  out.processId = root.member("processId").optional_integer(kAny.min(), kAny.max());
  // Clients that have no process say so with null, 0 or -1.
  if (out.processId.value_or(1) < 1) out.processId.reset();
  const Field client = root.member("clientInfo");
  out.clientInfo.name = client.member("name").optional_string(kNameBytesMax).value_or("");
  out.clientInfo.version = client.member("version").optional_string(kNameBytesMax).value_or("");
  out.rootUri = root.member("rootUri").optional_string(kUriBytesMax);
  out.workspaceFolders = folders_in(root.member("workspaceFolders"));
  out.workDoneToken = id_in(root.member("workDoneToken"));
  const Field capabilities = root.member("capabilities");
  out.positionEncodings = encodings_in(capabilities.member("general").member("positionEncodings"));
  out.inlineCompletion = capabilities.member("textDocument").member("inlineCompletion").there();
  out.workDoneProgress =
      capabilities.member("window").member("workDoneProgress").optional_boolean().value_or(false);
  out.registersWatchers = capabilities.member("workspace")
                              .member("didChangeWatchedFiles")
                              .member("dynamicRegistration")
                              .optional_boolean()
                              .value_or(false);
  out.efim = efim_options_in(root.member("initializationOptions").member("efim"));
  return reading.finish(std::move(out));
}

template <>
Result<DidOpenTextDocumentParams> params_of(const Json& params) {
  Reading reading;
  const Field root = root_of(reading, params);
  DidOpenTextDocumentParams out = document_in(root.member("textDocument"));
  return reading.finish(std::move(out));
}

template <>
Result<DidChangeTextDocumentParams> params_of(const Json& params) {
  Reading reading;
  const Field root = root_of(reading, params);
  DidChangeTextDocumentParams out;
  out.uri = uri_in(root);
  out.version = version_in(root.member("textDocument"));
  out.contentChanges = changes_in(root.member("contentChanges"));
  return reading.finish(std::move(out));
}

template <>
Result<DidCloseTextDocumentParams> params_of(const Json& params) {
  Reading reading;
  DidCloseTextDocumentParams out{uri_in(root_of(reading, params))};
  return reading.finish(std::move(out));
}

template <>
Result<InlineCompletionParams> params_of(const Json& params) {
  Reading reading;
  const Field root = root_of(reading, params);
  InlineCompletionParams out;
  out.uri = uri_in(root);
  out.position = position_in(root.member("position"));
  const Field context = root.member("context");
  out.triggerKind = trigger_in(context);
  out.selectedCompletionInfo = selected_in(context.member("selectedCompletionInfo"));
  out.partialResultToken = id_in(root.member("partialResultToken"));
  out.ahead = root.member("efim").member("ahead").optional_boolean().value_or(false);
  return reading.finish(std::move(out));
}

template <>
Result<DidChangeWatchedFilesParams> params_of(const Json& params) {
  Reading reading;
  const Field changes = root_of(reading, params).member("changes");
  DidChangeWatchedFilesParams out;
  const std::size_t count = changes.array_size();
  out.more = count > kWatchedFilesMax;
  for (std::size_t i = 0; i < std::min(count, kWatchedFilesMax); ++i)
    out.uris.push_back(changes.element(i).member("uri").string(kUriBytesMax));
  return reading.finish(std::move(out));
}

template <>
Result<DidChangeWorkspaceFoldersParams> params_of(const Json& params) {
  Reading reading;
  const Field event = root_of(reading, params).member("event");
  DidChangeWorkspaceFoldersParams out{folders_in(event.member("added")),
                                      folders_in(event.member("removed"))};
  return reading.finish(std::move(out));
}

template <>
Result<FindDocumentParams> params_of(const Json& params) {
  Reading reading;
  const Field root = root_of(reading, params);
  constexpr std::size_t kMax = FindDocumentParams::kBytesMax;
  FindDocumentParams out{root.member("above").optional_string(kMax).value_or(""),
                         root.member("below").optional_string(kMax).value_or("")};
  return reading.finish(std::move(out));
}

template <>
Result<CancelParams> params_of(const Json& params) {
  Reading reading;
  const Field id = root_of(reading, params).member("id");
  if (!id.there()) id.refuse("an integer or a string");
  CancelParams out{id_in(id).value_or(Id{})};
  return reading.finish(std::move(out));
}

template <>
Result<ExecuteCommandParams> params_of(const Json& params) {
  Reading reading;
  const Field root = root_of(reading, params);
  ExecuteCommandParams out;
  out.command = root.member("command").string(kNameBytesMax);
  const Field arguments = root.member("arguments");
  const std::size_t count = arguments.array_size();
  for (std::size_t i = 0; i < count; ++i) out.arguments.push_back(arguments.element(i).json());
  return reading.finish(std::move(out));
}

/// `settings` has no fixed shape, and clients send those of other servers: only an object's "efim"
/// is looked at.
template <>
Result<DidChangeConfigurationParams> params_of(const Json& params) {
  Reading reading;
  DidChangeConfigurationParams out;
  const Field settings = root_of(reading, params).member("settings");
  if (settings.json().is_object()) out.efim = efim_options_in(settings.member("efim"));
  return reading.finish(std::move(out));
}

template <>
Result<EfimDidFocusParams> params_of(const Json& params) {
  Reading reading;
  EfimDidFocusParams out{uri_in(root_of(reading, params))};
  return reading.finish(std::move(out));
}

template <>
Result<EfimDidShowParams> params_of(const Json& params) {
  Reading reading;
  EfimDidShowParams out{uri_in(root_of(reading, params))};
  return reading.finish(std::move(out));
}

template <>
Result<EfimDidDismissParams> params_of(const Json& params) {
  Reading reading;
  EfimDidDismissParams out{uri_in(root_of(reading, params))};
  return reading.finish(std::move(out));
}

template <>
Result<EfimDidPartiallyAcceptParams> params_of(const Json& params) {
  Reading reading;
  const Field root = root_of(reading, params);
  EfimDidPartiallyAcceptParams out;
  out.uri = uri_in(root);
  out.acceptedLength = root.member("acceptedLength").integer(1, kUintegerMax);
  return reading.finish(std::move(out));
}

}  // namespace efimd::lsp
