#include "daemon/client/bridge_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lsp/excerpt.h"
#include "lsp/member.h"

namespace efimd::service {

using lsp::Json;
using lsp::member;
using Kind = lsp::Message::Kind;

namespace {

constexpr char kStatus[] = "efim/status";

}  // namespace

void BridgeSession::editor_says(std::string body) {
  auto message = lsp::parse_message(body);
  if (!message) {
    const lsp::BadMessage& bad = message.error();
    to_editor(lsp::error_body(bad.id, bad.code, bad.error.message()));
    return;
  }
  switch (message->kind) {
    case Kind::kRequest:
      return on_editor_request(*message, std::move(body));
    case Kind::kNotification:
      return on_editor_notification(*message, std::move(body));
    case Kind::kResponse:
      return on_editor_response(*message);
  }
}

void BridgeSession::on_editor_request(lsp::Message& message, std::string body) {
  if (message.method == "initialize" && !greeting_) return on_initialize(message);
  if (message.method == "shutdown") {
    shut_down_ = true;
    if (link_ != Link::kUp) {
      // No daemon is looked for any more, so nobody else would answer this.
      if (greeting_ && !std::exchange(greeting_->answered, true))
        to_editor(lsp::error_body(greeting_->id, lsp::ErrorCode::kServerCancelled,
                                  "the session was shut down"));
      for (const Pending& waiting : std::exchange(pending_, {})) answer_empty(waiting);
      return to_editor(lsp::response_body(message.id, nullptr));
    }
  }
  if (!greeting_)
    return to_editor(lsp::error_body(message.id, lsp::ErrorCode::kServerNotInitialized,
                                     "the first request must be initialize"));
  if (shut_down_ && link_ != Link::kUp)
    return to_editor(
        lsp::error_body(message.id, lsp::ErrorCode::kInvalidRequest, "the session is shut down"));
  if (is_of_running(message.method) && link_ == Link::kNone && !wants_daemon())
    return to_editor(lsp::response_body(message.id, nullptr));
  if (pending_.size() >= kPendingMax)
    return to_editor(lsp::error_body(message.id, lsp::ErrorCode::kServerCancelled,
                                     "too many unanswered requests"));
  const auto first_line = notebooks_.redirect(message, body);
  if (link_ == Link::kUp) to_daemon(body);
  pending_.push_back({message.id, message.method, std::move(body), false, first_line});
}

std::optional<std::int64_t> BridgeSession::editor_process() const {
  if (!greeting_) return std::nullopt;
  const auto params = lsp::params_of<lsp::InitializeParams>(greeting_->params);
  return params ? params->processId : std::nullopt;
}

void BridgeSession::on_initialize(const lsp::Message& message) {
  greeting_ = Greeting{message.id, message.params};
  shut_down_ = false;  // one before it ended nothing
  workspace_.begin(message.params);
  if (link_ == Link::kGreeting) connected();
}

void BridgeSession::on_editor_notification(lsp::Message& message, std::string body) {
  if (message.method == "exit") {
    exit_code_ = shut_down_ ? 0 : 1;
    if (link_ == Link::kUp) to_daemon(std::move(body));
    return;
  }
  if (!greeting_) return;  // the protocol has them dropped
  if (message.method == "$/cancelRequest") {
    on_cancel(message.params);
  } else {
    touched_ = link_ != Link::kUp;
    if (message.method == "initialized") initialized_ = true;
    workspace_.note(message.method, message.params);
    if (message.method.starts_with("notebookDocument/")) return on_notebook(message);
    notebooks_.redirect(message, body);
    documents_.note(message.method, message.params,
                    encoding_.value_or(lsp::PositionEncoding::kUtf16));
  }
  if (link_ == Link::kUp) to_daemon(std::move(body));
}

/// BR-7.
void BridgeSession::on_notebook(const lsp::Message& message) {
  const auto encoding = encoding_.value_or(lsp::PositionEncoding::kUtf16);
  Notebooks::Heard heard = notebooks_.note(message.method, message.params, encoding);
  for (Notebooks::Told& told : heard.told) {
    documents_.note(told.method, told.params, encoding);
    if (link_ == Link::kUp) to_daemon(lsp::notification_body(told.method, std::move(told.params)));
  }
  if (!heard.trouble.empty()) tell(lsp::MessageType::kWarning, heard.trouble);
}

void BridgeSession::on_cancel(const Json& params) {
  const auto cancel = lsp::params_of<lsp::CancelParams>(params);
  if (!cancel) return;
  const auto found = std::ranges::find(pending_, cancel->id, &Pending::id);
  if (found == pending_.end()) return;
  if (link_ == Link::kUp) {
    found->cancelled = true;  // the daemon answers
  } else {
    pending_.erase(found);
    answer_cancelled(cancel->id);
  }
}

void BridgeSession::on_editor_response(const lsp::Message& message) {
  const auto* name = std::get_if<std::string>(&message.id);
  const auto found = name ? daemon_requests_.find(*name) : daemon_requests_.end();
  if (found == daemon_requests_.end()) return;  // BR-3: of a daemon that is gone
  if (link_ == Link::kUp)
    to_daemon(message.error
                  ? lsp::error_body(found->second, static_cast<lsp::ErrorCode>(message.error->code),
                                    message.error->message)
                  : lsp::response_body(found->second, message.result));
  daemon_requests_.erase(found);
}

void BridgeSession::daemon_says(std::string body) {
  const auto message = lsp::parse_message(body);
  if (!message) {
    hang_up_ =
        "the daemon sent nonsense: " + lsp::without_excerpts(message.error().error.message());
    return;
  }
  if (message->kind == Kind::kResponse) return on_daemon_response(*message, std::move(body));
  if (message->kind == Kind::kRequest) return on_daemon_request(*message);
  if (message->method == "efim/leaving") {
    daemon_leaves_ = true;
    another_comes_ = member(message->params, "anotherComes") == true;
    return;
  }
  if (message->method == "$/progress") note_progress(message->params);
  if (message->method == "window/showMessage" && !is_news(message->params)) return;
  to_editor(std::move(body));
}

void BridgeSession::on_daemon_response(const lsp::Message& message, std::string body) {
  if (link_ == Link::kGreeting && message.id == greeting_id_) return on_greeting_answered(message);
  if (message.id == version_id_) return on_build_answered(message);
  const auto found = std::ranges::find(pending_, message.id, &Pending::id);
  if (found == pending_.end()) return;
  if (found->first_line && !message.error)
    body = lsp::response_body(message.id, Notebooks::lifted(message.result, *found->first_line));
  pending_.erase(found);
  to_editor(std::move(body));
}

void BridgeSession::on_daemon_request(const lsp::Message& message) {
  // What one daemon registered holds for the next one, too.
  if (message.method == "client/registerCapability" && std::exchange(registered_, true))
    return to_daemon(lsp::response_body(message.id, nullptr));
  // Two daemons count from the same number; the editor must see different ids.
  const std::string name = "efimd-" + std::to_string(++ids_made_);
  daemon_requests_[name] = message.id;
  to_editor(lsp::request_body(name, message.method, message.params));
}

void BridgeSession::note_progress(const Json& params) {
  const std::string token = lsp::json_text(member(params, "token"));
  const Json& kind = member(member(params, "value"), "kind");
  if (kind == "begin") progress_.insert(token);
  if (kind == "end") progress_.erase(token);
}

void BridgeSession::skipped(std::size_t bytes) {
  tell(lsp::MessageType::kWarning,
       fmt::format("No completions in a file of about {} MiB: efimd reads at most {}. Other files "
                   "are served as before.",
                   bytes >> 20, text::kDocumentBytesMax >> 20));
}

void BridgeSession::connected() {
  link_ = Link::kGreeting;
  daemon_leaves_ = false;
  hang_up_.reset();
  if (!greeting_) return;
  Json params = greeting_->params;
  // A token for the progress of initialize is dead once that is answered.
  if (greeting_->answered && params.is_object()) params.erase("workDoneToken");
  greeting_id_ = "efimd-initialize-" + std::to_string(++ids_made_);
  to_daemon(lsp::request_body(greeting_id_, "initialize", std::move(params)));
}

void BridgeSession::on_greeting_answered(const lsp::Message& message) {
  if (message.error) {
    // The message may quote the editor. The editor gets it as its answer, its log the code alone.
    hang_up_ = fmt::format("the daemon refused initialize (error {})", message.error->code);
    if (greeting_->answered) return;
    to_editor(lsp::error_body(greeting_->id, static_cast<lsp::ErrorCode>(message.error->code),
                              message.error->message));
    greeting_.reset();
    return;
  }
  if (!accept_encoding(message.result)) {
    hang_up_ = "the new daemon counts positions in another encoding than the one before";
    return;
  }
  if (!greeting_->answered)
    to_editor(
        lsp::response_body(greeting_->id, Notebooks::offered(message.result, greeting_->params)));
  greeting_->answered = true;
  link_ = Link::kUp;
  touched_ = false;
  replay();
  ask_build();
}

void BridgeSession::ask_build() {
  if (!ours_) return;
  version_id_ = "efimd-version-" + std::to_string(++ids_made_);
  to_daemon(lsp::request_body(*version_id_, "efim/version", nullptr));
}

void BridgeSession::ask_sign_of_life() {
  // The answer goes nowhere.
  to_daemon(
      lsp::request_body("efimd-alive-" + std::to_string(++ids_made_), "efim/version", nullptr));
}

/// BR-4.
void BridgeSession::on_build_answered(const lsp::Message& message) {
  version_id_.reset();
  const auto theirs = build_of(member(message.result, "build"));
  if (!theirs)
    return tell(lsp::MessageType::kWarning,
                "An older efimd is running than the one that this editor starts (" +
                    ours_->version + "). Run 'efimd stop': the new one takes over.");
  if (!ours_->replaces(*theirs)) return;
  if (retired_.contains(theirs->id))
    return tell(lsp::MessageType::kWarning, "Something starts an older efimd again (" +
                                                theirs->program + ", " + theirs->version +
                                                "). Run '" + ours_->program +
                                                " autostart enable', or remove the old one.");
  retiring_ = theirs->id;
  // Its answer is null and goes nowhere.
  to_daemon(
      lsp::request_body("efimd-retire-" + std::to_string(++ids_made_), "efim/retire", nullptr));
}

void BridgeSession::tell(lsp::MessageType type, const std::string& text) {
  Json params = lsp::message_params(type, text);
  if (is_news(params)) to_editor(lsp::notification_body("window/showMessage", std::move(params)));
}

bool BridgeSession::is_news(const Json& params) {
  if (told_.size() >= kToldMax) told_.clear();
  return told_.insert(lsp::json_text(params)).second;
}

bool BridgeSession::accept_encoding(const Json& result) {
  const Json& name = member(member(result, "capabilities"), "positionEncoding");
  const auto encoding = name.is_string() ? lsp::encoding_of(name.get_ref<const std::string&>())
                                         : lsp::PositionEncoding::kUtf16;
  if (!encoding || (encoding_ && *encoding_ != *encoding)) return false;
  encoding_ = encoding;
  return true;
}

/// BR-2.
void BridgeSession::replay() {
  if (initialized_) to_daemon(lsp::notification_body("initialized", Json::object()));
  for (std::string& body : workspace_.changes()) to_daemon(std::move(body));
  for (std::string& body : documents_.reopening()) to_daemon(std::move(body));
  for (const Pending& request : pending_) to_daemon(request.body);
}

void BridgeSession::disconnected() {
  link_ = Link::kNone;
  hang_up_.reset();
  version_id_.reset();
  // Like a keystroke, these need a daemon now.
  if (retiring_ || std::exchange(another_comes_, false)) touched_ = true;
  if (retiring_) retired_.insert(*std::exchange(retiring_, std::nullopt));
  for_daemon_.clear();
  daemon_requests_.clear();
  for (const std::string& token : std::exchange(progress_, {}))
    to_editor(lsp::notification_body(
        "$/progress", {{"token", lsp::parse_json(token).value()}, {"value", {{"kind", "end"}}}}));
  std::deque<Pending> kept;
  for (Pending& request : std::exchange(pending_, {})) {
    if (request.cancelled) {
      answer_cancelled(request.id);
    } else if (shut_down_ || is_of_running(request.method)) {
      answer_empty(request);
    } else {
      kept.push_back(std::move(request));
    }
  }
  pending_ = std::move(kept);
}

void BridgeSession::give_up(const std::string& reason) {
  touched_ = false;
  if (greeting_ && !greeting_->answered) {
    to_editor(lsp::error_body(greeting_->id, lsp::ErrorCode::kRequestFailed, "efimd: " + reason));
    greeting_.reset();
  }
  for (const Pending& request : std::exchange(pending_, {})) answer_empty(request);
  if (!greeting_ || std::exchange(outage_told_, true)) return;
  to_editor(lsp::notification_body(
      "window/showMessage",
      lsp::message_params(lsp::MessageType::kWarning, "No completions for now: " + reason)));
}

/// Whether it asks a daemon that runs, and starts none.
bool BridgeSession::is_of_running(const std::string& method) const {
  return method == kStatus && !status_waits_;
}

bool BridgeSession::wants_daemon() const {
  if (link_ != Link::kNone || !greeting_ || shut_down_ || exit_code_) return false;
  return !greeting_->answered || touched_ || !pending_.empty();
}

void BridgeSession::answer_empty(const Pending& request) {
  const bool list = request.method == "textDocument/inlineCompletion";
  to_editor(lsp::response_body(request.id, list ? Json{{"items", Json::array()}} : Json()));
}

void BridgeSession::answer_cancelled(const lsp::Id& id) {
  to_editor(lsp::error_body(id, lsp::ErrorCode::kRequestCancelled, "cancelled"));
}

}  // namespace efimd::service
