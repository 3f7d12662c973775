#include "daemon/server/session.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/config/build.h"
#include "lsp/excerpt.h"

namespace efimd::service {

using lsp::ErrorCode;
using lsp::Json;

namespace {

constexpr char kProgressId[] = "efimd/model-progress";
constexpr char kWatchId[] = "efimd/watched-files";
/// Of names that a client chose, in answers and in the status.
constexpr std::size_t kShownBytesMax = 80;

// The log gets names from these lists only: a client with a defect may send text as any name.
constexpr std::array<std::string_view, 5> kIgnoredNames = {
    "$/setTrace", "$/progress", "textDocument/didSave", "textDocument/willSave",
    "window/workDoneProgress/cancel"};
constexpr std::array<std::string_view, 9> kEditors = {
    "Neovim", "Visual Studio Code", "VSCodium", "Cursor", "Emacs", "Eglot", "helix", "Zed", "Kate"};

std::string known_name(std::string_view method) {
  const bool known = std::ranges::find(kIgnoredNames, method) != kIgnoredNames.end();
  return known ? std::string(method)
               : fmt::format("a notification with a name of {} bytes", method.size());
}

/// The editor that `client` begins with.
std::string_view known_editor(std::string_view client) {
  const auto* const found = std::ranges::find_if(
      kEditors, [&](std::string_view editor) { return client.starts_with(editor); });
  return found != kEditors.end() ? *found : "a client";
}

/// A client's name for something, fit for a person to read.
std::string shown(std::string_view name) {
  std::string text(name.substr(0, kShownBytesMax));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
  return text;
}

}  // namespace

// The whole protocol. $/ notifications and notifications that are not here are ignored, as LSP
// wants.

std::span<const Session::Method> Session::requests() {
  static constexpr Method kMethods[] = {
      {"initialize", &Session::initialize, When::kAlways},
      {"shutdown", &Session::shutdown, When::kServing},
      {"textDocument/inlineCompletion", &Session::inline_completion, When::kServing},
      {"workspace/executeCommand", &Session::execute_command, When::kServing},
      {"efim/status", &Session::status, When::kAlways},
      {"efim/version", &Session::version, When::kAlways},
      {"efim/stop", &Session::stop, When::kAlways},
      {"efim/retire", &Session::retire, When::kAlways},
      {"efim/cache", &Session::cache, When::kAlways},
      {"efim/findDocument", &Session::find_document, When::kServing},
  };
  return kMethods;
}

std::span<const Session::Method> Session::notifications() {
  static constexpr Method kMethods[] = {
      {"initialized", &Session::initialized, When::kServing},
      {"textDocument/didOpen", &Session::did_open, When::kServing},
      {"textDocument/didChange", &Session::did_change, When::kServing},
      {"textDocument/didClose", &Session::did_close, When::kServing},
      {"workspace/didChangeConfiguration", &Session::did_change_configuration, When::kServing},
      {"workspace/didChangeWatchedFiles", &Session::did_change_watched_files, When::kServing},
      {"workspace/didChangeWorkspaceFolders", &Session::did_change_workspace_folders,
       When::kServing},
      {"$/cancelRequest", &Session::cancel_request, When::kServing},
      {"efim/didFocus", &Session::did_focus, When::kServing},
      {"efim/didShow", &Session::did_show, When::kServing},
      {"efim/didDismiss", &Session::did_dismiss, When::kServing},
      {"efim/didPartiallyAccept", &Session::did_partially_accept, When::kServing},
  };
  return kMethods;
}

Session::Session(std::uint64_t id, SessionHost& host, Send send)
    : id_(id), host_(host), send_(std::move(send)), options_(host.config().completion) {}

Session::Next Session::receive(std::string_view body) {
  return receive(Prepared{lsp::parse_message(body)});
}

Session::Next Session::receive(Prepared prepared) {
  if (state_ == State::kEnded) return Next::kClose;
  const auto& message = (prepared_ = std::move(prepared))->message;
  if (!message) {
    const lsp::BadMessage& bad = message.error();
    host_.log().warn("session {}: refused a message: {}", id_,
                     lsp::without_excerpts(bad.error.message()));
    refuse(bad.id, bad.code, bad.error.message());
    return Next::kGoOn;
  }
  if (message->kind == lsp::Message::Kind::kNotification && message->method == "exit")
    return Next::kClose;
  dispatch(*message);
  const bool large = prepared_ && prepared_->changed;
  prepared_.reset();
  if (revising_ && (large || revises_large_text())) return Next::kAside;
  return go_on();
}

void Session::dispatch(const lsp::Message& message) {
  switch (message.kind) {
    case lsp::Message::Kind::kRequest:
      return receive_request(message);
    case lsp::Message::Kind::kNotification:
      return receive_notification(message);
    case lsp::Message::Kind::kResponse:
      return receive_response(message);
  }
}

const Session::Method* Session::find(std::span<const Method> methods, std::string_view name) {
  const auto found = std::find_if(methods.begin(), methods.end(),
                                  [&](const Method& each) { return each.name == name; });
  return found == methods.end() ? nullptr : &*found;
}

void Session::receive_request(const lsp::Message& message) {
  const Method* method = find(requests(), message.method);
  if (method != nullptr && method->when == When::kAlways) return (this->*method->handler)(message);
  if (state_ == State::kFresh)
    return refuse(message.id, ErrorCode::kServerNotInitialized, "initialize comes first");
  if (state_ == State::kShutDown)
    return refuse(message.id, ErrorCode::kInvalidRequest, "the session was shut down");
  if (method == nullptr)
    return refuse(message.id, ErrorCode::kMethodNotFound,
                  "efimd has no method " + shown(message.method));
  (this->*method->handler)(message);
}

void Session::receive_notification(const lsp::Message& message) {
  const Method* method = find(notifications(), message.method);
  if (method == nullptr) {
    host_.log().debug("session {}: ignored {}", id_, known_name(message.method));
    return;
  }
  if (state_ != State::kServing) {
    host_.log().warn("session {}: dropped {}, the session is not initialized or was shut down", id_,
                     message.method);
    return;
  }
  (this->*method->handler)(message);
}

void Session::receive_response(const lsp::Message& message) {
  if (message.id != lsp::Id(kProgressId) || progress_ != Progress::kAsked) return;
  progress_ = message.error ? Progress::kOver : Progress::kShown;
  if (progress_ != Progress::kShown) return;
  notify("$/progress", lsp::progress_begin_params(kProgressId, "efimd: loading the model"));
  model_changed();
}

void Session::initialize(const lsp::Message& message) {
  if (state_ != State::kFresh)
    return refuse(message.id, ErrorCode::kInvalidRequest, "initialize was sent before");
  const auto params = params_of<lsp::InitializeParams>(message);
  if (!params) return;
  client_ = shown(params->clientInfo.name + (params->clientInfo.version.empty() ? "" : " ") +
                  params->clientInfo.version);
  encoding_ = lsp::negotiate(params->positionEncodings);
  work_done_progress_ = params->workDoneProgress;
  registers_watchers_ = params->registersWatchers && host_.config().completion.recall;
  for (const std::string& uri : params->workspaceFolders) add_folder(uri);
  if (folders_.empty() && params->rootUri) add_folder(*params->rootUri);
  take_options(params->efim);
  state_ = State::kServing;
  const std::string commands[] = {kAcceptCommand};
  answer(message.id, lsp::initialize_result(encoding_, {"efimd", this_build().version}, commands));
  host_.log().info("session {}: {}, {}", id_, known_editor(client_), lsp::encoding_name(encoding_));
}

void Session::shutdown(const lsp::Message& message) {
  while (!pending_.empty())
    if (const auto pending = take_pending(pending_.begin()->first)) answer(pending->id, nullptr);
  state_ = State::kShutDown;
  answer(message.id, nullptr);
}

void Session::execute_command(const lsp::Message& message) {
  const auto params = params_of<lsp::ExecuteCommandParams>(message);
  if (!params) return;
  if (params->command != kAcceptCommand)
    return refuse(message.id, ErrorCode::kInvalidParams,
                  "efimd has no command " + shown(params->command));
  ++accepted_;
  answer(message.id, nullptr);
}

void Session::status(const lsp::Message& message) { answer(message.id, host_.status()); }

void Session::version(const lsp::Message& message) {
  const Build& build = this_build();
  answer(message.id, {{"version", build.version}, {"pid", ::getpid()}, {"build", to_json(build)}});
}

void Session::stop(const lsp::Message& message) {
  answer(message.id, nullptr);
  host_.stop();
}

void Session::retire(const lsp::Message& message) {
  answer(message.id, nullptr);
  host_.retire();
}

void Session::initialized(const lsp::Message&) {
  const ModelProgress model = host_.model_progress();
  if (model.state == completion::EngineState::kLoading && work_done_progress_ &&
      progress_ == Progress::kNone) {
    progress_ = Progress::kAsked;
    send_(lsp::request_body(kProgressId, "window/workDoneProgress/create",
                            lsp::work_done_create_params(kProgressId)));
  }
  if (model.state == completion::EngineState::kFailed) tell_failure(model.failure);
  if (registers_watchers_)
    send_(lsp::request_body(kWatchId, "client/registerCapability",
                            lsp::watch_files_params(kWatchId)));
  tell_configuration(host_.config().warnings);
}

void Session::cancel_request(const lsp::Message& message) {
  const auto params = params_of<lsp::CancelParams>(message);
  if (!params) return;
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const auto& each) { return each.second.id == params->id; });
  if (found == pending_.end()) return;  // answered already
  if (const auto pending = take_pending(found->first))
    refuse(pending->id, ErrorCode::kRequestCancelled, "cancelled by the editor");
}

void Session::model_changed() {
  if (state_ != State::kServing) return;
  const ModelProgress model = host_.model_progress();
  const bool loading = model.state == completion::EngineState::kLoading;
  if (progress_ == Progress::kShown && loading) {
    const int percent = static_cast<int>(std::clamp(model.progress, 0.0, 1.0) * 100);
    notify("$/progress",
           lsp::progress_report_params(kProgressId, fmt::format("{} %", percent), percent));
  } else if (progress_ == Progress::kShown) {
    progress_ = Progress::kOver;
    const bool ready = model.state == completion::EngineState::kReady;
    notify("$/progress", lsp::progress_end_params(kProgressId, ready ? "ready" : "failed"));
  }
  if (model.state == completion::EngineState::kFailed) tell_failure(model.failure);
  tell_remote(model.remote_trouble);
  tell_state();
}

void Session::tell_remote(const std::string& trouble) {
  // Once for each time that it stops to answer.
  if (trouble.empty() == !std::exchange(remote_trouble_told_, !trouble.empty())) return;
  if (!trouble.empty())
    show(lsp::MessageType::kWarning, "efimd: the engine elsewhere does not answer (" + trouble +
                                         "). This machine's model answers meanwhile.");
}

void Session::tell_failure(const std::string& failure) {
  if (failure_told_) return;
  failure_told_ = true;
  show(lsp::MessageType::kError, "efimd gives no completions: " + failure);
}

void Session::tell_configuration(const std::vector<ConfigWarning>& warnings) {
  if (state_ != State::kServing || warnings.empty()) return;
  const ConfigWarning& first = warnings.front();
  // Short, and without the path: Neovim 0.7 cuts what is longer than a line out of its middle.
  const std::string place =
      first.line > 0 ? fmt::format("{}:{}: ", host_.config().file.filename().string(), first.line)
                     : "efimd's configuration: ";
  const std::size_t more = warnings.size() - 1;
  show(lsp::MessageType::kWarning,
       place + first.message + (more > 0 ? fmt::format(" (and {} more: efimd doctor)", more) : ""));
}

void Session::show(lsp::MessageType type, const std::string& text) {
  // VS Code draws [text](command:...) as a link; a file's name is none.
  std::string plain = text;
  for (std::size_t at = 0; (at = plain.find("](", at)) != std::string::npos;)
    plain.insert(++at, " ");
  notify("window/showMessage", lsp::message_params(type, plain));
}

void Session::take_leave(bool another_comes) {
  if (state_ != State::kServing) return;
  notify("efim/leaving", another_comes ? Json{{"anotherComes", true}} : Json::object());
}

void Session::end() {
  revising_.reset();
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  while (!pending_.empty()) take_pending(pending_.begin()->first);
  for (const auto& [uri, document] : documents_) host_.close_document({id_, uri});
  documents_.clear();
}

SessionInfo Session::info() const {
  return {id_,        client_,   documents_.size(), completions_, shown_,
          dismissed_, accepted_, accepted_partly_,  focused_};
}

void Session::answer(const lsp::Id& id, Json result) {
  send_(lsp::response_body(id, std::move(result)));
}

void Session::refuse(const lsp::Id& id, ErrorCode code, std::string_view message) {
  send_(lsp::error_body(id, code, message));
}

void Session::notify(std::string_view method, Json params) {
  send_(lsp::notification_body(method, std::move(params)));
}

void Session::refuse_params(const lsp::Message& message, const Error& error) {
  if (message.kind == lsp::Message::Kind::kRequest)
    refuse(message.id, ErrorCode::kInvalidParams, message.method + ": " + error.message());
  else
    host_.log().warn("session {}: dropped {}: {}", id_, message.method,
                     lsp::without_excerpts(error.message()));
}

}  // namespace efimd::service
