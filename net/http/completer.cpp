#include "net/http/completer.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <memory>
#include <utility>

#include "lsp/protocol.h"

namespace efimd::http {

namespace asio = boost::asio;
using lsp::Json;

namespace {

/// How often deadlines and idle documents are looked at.
constexpr auto kTick = std::chrono::seconds(1);

/// How a receipt begins that says that the model is not there yet, or cannot be had.
constexpr char kLoading[] = "the model is still loading";
constexpr char kNoModel[] = "no model";
constexpr char kTooLate[] = "the model did not answer in time";
/// Of an answer whose receipt does not come, because the daemon died between them.
constexpr auto kReceiptMax = std::chrono::seconds(2);

/// A daemon that is starting, or loading, answers later; then no editor's document is waited for.
constexpr auto kSeekMax = std::chrono::seconds(10);

/// The options of a request that LSP has words for. All of them each time, because a later request
/// that leaves one open must not get an earlier one's.
Json options_of(const CompletionRequest& request, const Completer::Defaults& defaults) {
  return {{"maxTokens", request.tokens_max.value_or(defaults.tokens_max)},
          {"temperature", request.temperature.value_or(defaults.temperature)}};
}

/// What the first item of an answer inserts at the cursor.
std::string text_in(const Json& result, const lsp::Position& cursor, const std::string& rest) {
  const Json items = result.is_object() ? result.value("items", Json::array()) : result;
  if (!items.is_array() || items.empty() || !items[0].is_object()) return {};
  const Json& item = items[0];
  if (!item.contains("insertText") || !item["insertText"].is_string()) return {};
  const Json::json_pointer end("/range/end/character");
  std::size_t covered = 0;
  if (item.contains(end) && item.at(end).is_number_unsigned())
    covered =
        item.at(end).get<std::size_t>() - std::min<std::size_t>(cursor.character, item.at(end));
  return insertable(item["insertText"].get<std::string>(),
                    std::string_view(rest).substr(0, covered));
}

}  // namespace

Completer::Completer(asio::io_context& io, DaemonLink::Ends ends, Defaults defaults)
    : io_(io),
      link_(io, {std::move(ends.connect), [this](const lsp::Message& message) { heard(message); },
                 [this](const std::string& why) { lost(why); }, std::move(ends.log)}),
      defaults_(defaults),
      timer_(io) {
  tick();
}

Completer::Ticket Completer::ask(const CompletionRequest& request, Done done, Begun begun) {
  const Ticket ticket = ++last_ticket_;
  used_ = Clock::now();
  Waiter waiter{ticket, std::move(done), used_, std::move(begun)};
  if (auto placed = documents_.place_in_open(request.text, used_))
    ask_at(std::move(*placed), request, {std::move(waiter)});
  else
    seek({request, std::move(waiter)});
  return ticket;
}

void Completer::seek(Sought sought) {
  const Surroundings& text = sought.request.text;
  const std::int64_t id = ++last_id_;
  link_.say(
      lsp::request_body(id, "efim/findDocument",
                        {{"above", lines_above(text.before)}, {"below", lines_below(text.after)}}));
  sought_.emplace(id, std::move(sought));
}

void Completer::found(Sought sought, const Json& document) {
  const auto text_of = [&](const char* name) {
    return document.is_object() && document.contains(name) && document[name].is_string()
               ? document[name].get<std::string>()
               : std::string();
  };
  const Surroundings& text = sought.request.text;
  const auto now = Clock::now();
  // Another request may have opened it meanwhile.
  auto placed = documents_.place_in_open(text, now);
  if (std::string uri = text_of("uri"); !placed && !uri.empty())
    for (std::string& message :
         documents_.adopt({std::move(uri), text_of("languageId"), text_of("text")}, text, now))
      link_.say(std::move(message));
  ask_at(placed ? std::move(*placed) : documents_.place(text, now), sought.request,
         {std::move(sought.waiter)});
}

void Completer::ask_at(Placed placed, const CompletionRequest& request,
                       std::vector<Waiter> waiters) {
  const Json options = options_of(request, defaults_);
  for (std::string& message : placed.messages) link_.say(std::move(message));
  const auto same = std::ranges::find_if(asked_, [&](const auto& each) {
    const Asked& other = each.second;
    return other.uri == placed.uri && other.version == placed.version &&
           other.cursor == placed.cursor && other.options == options && !other.waiters.empty();
  });
  if (same != asked_.end()) {
    std::ranges::move(waiters, std::back_inserter(same->second.waiters));
    return;
  }
  set_options(options);
  const std::int64_t id = ++last_id_;
  const bool in_pieces = std::ranges::any_of(waiters, [](const Waiter& w) { return !!w.begun; });
  const auto deadline = waiters.front().arrived + kAnswerMax;
  asked_[id] = {placed.uri, placed.version,     placed.cursor, options, placed.rest,
                request,    std::move(waiters), std::nullopt,  deadline};
  Json params = {{"textDocument", {{"uri", placed.uri}}},
                 {"position", lsp::to_json(placed.cursor)},
                 {"context", {{"triggerKind", 2}}}};
  if (in_pieces) params["partialResultToken"] = id;
  if (recent_.asks_ahead(request.text)) params["efim"] = {{"ahead", true}};
  link_.say(lsp::request_body(id, "textDocument/inlineCompletion", std::move(params)));
}

/// They hold for the requests that follow.
void Completer::set_options(const Json& options) {
  if (options == options_) return;
  options_ = options;
  link_.say(lsp::notification_body("workspace/didChangeConfiguration",
                                   {{"settings", {{"efim", options}}}}));
}

void Completer::withdraw(Ticket ticket) {
  std::erase_if(looks_, [&](const Look& each) { return each.ticket == ticket; });
  std::erase_if(sought_, [&](const auto& each) { return each.second.waiter.ticket == ticket; });
  for (auto& [uri, displaced] : displaced_)
    std::erase_if(displaced.waiters, [&](const Waiter& each) { return each.ticket == ticket; });
  for (auto& [id, asked] : asked_) {
    if (std::erase_if(asked.waiters, [&](const Waiter& each) { return each.ticket == ticket; }) ==
        0)
      continue;
    if (asked.waiters.empty() && !asked.text)
      link_.say(lsp::notification_body("$/cancelRequest", {{"id", id}}));
    return;
  }
}

Completer::Ticket Completer::look(std::function<void(const ModelPages&)> done) {
  const Ticket ticket = ++last_ticket_;
  used_ = Clock::now();
  looks_.push_back({ticket, std::move(done), used_ + kAnswerMax});
  ask_status();
  return ticket;
}

void Completer::wake() {
  used_ = Clock::now();
  if (!pages_.ready()) ask_status();
}

void Completer::ask_status() {
  if (status_id_) return;
  status_id_ = ++last_id_;
  link_.say(lsp::request_body(*status_id_, "efim/status", nullptr));
}

void Completer::heard(const lsp::Message& message) {
  using Kind = lsp::Message::Kind;
  if (message.kind == Kind::kRequest) return link_.say(lsp::response_body(message.id, nullptr));
  if (message.kind == Kind::kNotification) {
    if (message.method == "efim/receipt") return receipt(message.params);
    if (message.method == "$/progress") return begun(message.params);
    if (message.method == "efim/state" && message.params.is_object())
      note_state(message.params.value("name", ""));
    return;
  }
  const auto* const id = std::get_if<std::int64_t>(&message.id);
  if (id == nullptr) return;
  if (auto sought = sought_.extract(*id))
    return found(std::move(sought.mapped()), message.error ? Json() : message.result);
  if (status_id_ != *id) return answered(*id, message);
  status_id_.reset();
  pages_ = ModelPages(message.error ? Json() : message.result, defaults_.started_s);
  answer_looks(std::exchange(looks_, {}), pages_);
}

/// A model that was loaded is asked for its marks.
void Completer::note_state(const std::string& name) {
  if (name == "loading" || name == "failed") pages_ = ModelPages(nullptr, defaults_.started_s);
  if (name == "ready" && !pages_.ready()) ask_status();
}

void Completer::answered(std::int64_t id, const lsp::Message& message) {
  const auto found = asked_.find(id);
  if (found == asked_.end()) return;
  if (message.error) return finish(id, {});  // cancelled
  if (message.result.is_null()) return displaced(id);
  Asked& asked = found->second;
  asked.text = text_in(message.result, asked.cursor, asked.rest);
  std::string stop;
  recent_.note(asked.request.text, before_stops(*asked.text, asked.request.stops, stop));
  asked.deadline = std::min(asked.deadline, Clock::now() + kReceiptMax);
}

void Completer::begun(const Json& params) {
  if (!params.is_object() || !params.contains("token") || !params["token"].is_number_integer())
    return;
  const auto found = asked_.find(params["token"].get<std::int64_t>());
  if (found == asked_.end() || found->second.text) return;
  Asked& asked = found->second;
  std::string text = text_in(params.value("value", Json()), asked.cursor, asked.rest);
  asked.begun |= !text.empty();
  for (const Waiter& waiter : asked.waiters)
    if (waiter.begun && !text.empty())
      asio::post(io_, [begun = waiter.begun, text] { begun(text); });
}

void Completer::receipt(const Json& params) {
  if (!params.is_object() || !params.contains("request") || !params["request"].is_number_integer())
    return;
  const auto id = params["request"].get<std::int64_t>();
  const auto found = asked_.find(id);
  if (found == asked_.end() || !found->second.text) return;
  Outcome outcome;
  outcome.completed = {*found->second.text, params, 0};
  const std::string reason = params.value("reason", "");
  if (reason.starts_with(kNoModel)) outcome = {Outcome::Kind::kFailed, {}, reason};
  if (reason.starts_with(kLoading)) outcome = {Outcome::Kind::kNotReady, {}, "Loading model"};
  finish(id, std::move(outcome));
}

void Completer::finish(std::int64_t id, Outcome outcome) {
  auto asked = asked_.extract(id);
  if (asked.empty()) return;
  hand_out(std::move(asked.mapped().waiters), outcome);
  ask_displaced(asked.mapped().uri);
}

bool Completer::is_asked_in(const std::string& uri) const {
  return std::ranges::any_of(asked_, [&](const auto& each) { return each.second.uri == uri; });
}

/// The daemon goes on with a newer request in the document.
void Completer::displaced(std::int64_t id) {
  Asked asked = std::move(asked_.extract(id).mapped());
  if (asked.begun || asked.waiters.empty() || !is_asked_in(asked.uri)) {
    hand_out(std::move(asked.waiters), {});
    return ask_displaced(asked.uri);
  }
  Displaced& last = displaced_[asked.uri];
  hand_out(std::move(last.waiters), {});
  last = {std::move(asked.request), std::move(asked.waiters)};
}

void Completer::ask_displaced(const std::string& uri) {
  if (is_asked_in(uri)) return;
  auto displaced = displaced_.extract(uri);
  if (displaced.empty() || displaced.mapped().waiters.empty()) return;
  Displaced& again = displaced.mapped();
  ask_at(documents_.place(again.request.text, Clock::now()), again.request,
         std::move(again.waiters));
}

void Completer::hand_out(std::vector<Waiter> waiters, const Outcome& outcome) {
  for (Waiter& waiter : waiters) {
    Outcome own = outcome;
    own.completed.total_ms =
        std::chrono::duration<double, std::milli>(Clock::now() - waiter.arrived).count();
    asio::post(io_, [done = std::move(waiter.done), own = std::move(own)] { done(own); });
  }
}

void Completer::lost(const std::string& why) {
  documents_.clear();
  options_ = nullptr;
  status_id_.reset();
  pages_ = ModelPages(nullptr, defaults_.started_s);
  for (auto& [id, asked] : std::exchange(asked_, {}))
    hand_out(std::move(asked.waiters), {Outcome::Kind::kFailed, {}, why});
  for (auto& [uri, displaced] : std::exchange(displaced_, {}))
    hand_out(std::move(displaced.waiters), {Outcome::Kind::kFailed, {}, why});
  for (auto& [id, sought] : std::exchange(sought_, {})) {
    std::vector<Waiter> waiters;
    waiters.push_back(std::move(sought.waiter));
    hand_out(std::move(waiters), {Outcome::Kind::kFailed, {}, why});
  }
  answer_looks(std::exchange(looks_, {}), pages_);
}

void Completer::end_late(Clock::time_point now) {
  std::vector<std::int64_t> late;
  for (const auto& [id, asked] : asked_)
    if (now >= asked.deadline) late.push_back(id);
  for (const std::int64_t id : late) give_up(id);
  for (auto& [uri, displaced] : displaced_)
    if (!displaced.waiters.empty() && now >= displaced.waiters.front().arrived + kAnswerMax)
      hand_out(std::exchange(displaced.waiters, {}), {Outcome::Kind::kTooLate, {}, kTooLate});
  while (!sought_.empty() && now >= sought_.begin()->second.waiter.arrived + kSeekMax)
    found(std::move(sought_.extract(sought_.begin()).mapped()), nullptr);
  end_late_looks(now);
}

/// The daemon is asked again for those that are left, since it owes the late ones' answer.
void Completer::end_late_looks(Clock::time_point now) {
  const auto rest = std::ranges::find_if(looks_, [&](const Look& l) { return now < l.deadline; });
  if (rest == looks_.begin()) return;
  const std::vector<Look> late(std::make_move_iterator(looks_.begin()),
                               std::make_move_iterator(rest));
  looks_.erase(looks_.begin(), rest);
  answer_looks(late, ModelPages(nullptr, defaults_.started_s));
  if (!status_id_) return;
  link_.say(lsp::notification_body("$/cancelRequest", {{"id", *std::exchange(status_id_, {})}}));
  if (!looks_.empty()) ask_status();
}

void Completer::answer_looks(const std::vector<Look>& looks, const ModelPages& pages) {
  for (const Look& look : looks) asio::post(io_, [done = look.done, pages] { done(pages); });
}

void Completer::give_up(std::int64_t id) {
  const auto found = asked_.find(id);
  if (found == asked_.end()) return;
  if (const auto text = found->second.text)
    return finish(id, {Outcome::Kind::kCompleted, {*text, nullptr, 0}, {}});
  link_.say(lsp::notification_body("$/cancelRequest", {{"id", id}}));
  finish(id, {Outcome::Kind::kTooLate, {}, kTooLate});
}

void Completer::tick() {
  timer_.expires_after(kTick);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    const auto now = Clock::now();
    end_late(now);
    for (std::string& message : documents_.close_idle(now)) link_.say(std::move(message));
    // A daemon without editors ends after a while; an idle server does not keep it.
    if (!link_.is_resting() && now - used_ >= Documents::kIdleMax && asked_.empty()) {
      link_.rest();
      lost("idle");
    }
    tick();
  });
}

}  // namespace efimd::http
