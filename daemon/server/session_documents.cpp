// The part of Session that deals with text: open documents, completions for them, and the messages
// beyond LSP (docs/protocol.md). A client that knows none of these misses nothing but the counts.
#include <fmt/format.h>
#include <spdlog/logger.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "daemon/files/secrets.h"
#include "daemon/server/session.h"
#include "lsp/uri.h"

namespace efimd::service {

using lsp::Json;

namespace {

/// Of a large text that edits read and move: about 10 ms at once, and 5 s in one change.
constexpr std::size_t kBytesTouchedAtOnce = std::size_t{32} << 20;
/// A larger text is copied on another thread, even for a single letter: 64 MiB take 40 ms.
constexpr std::size_t kCopiedAtOnceMax = std::size_t{8} << 20;
constexpr std::size_t kBytesTouchedMax = std::size_t{16} << 30;

/// Where `position` is in a text with these lines.
std::size_t byte_in(std::string_view bytes, const text::LineIndex& lines,
                    const lsp::Position& position, lsp::PositionEncoding encoding) {
  const std::size_t begin = lines.start(position.line);
  const std::size_t end = std::max(begin, lines.content_end(bytes, position.line));
  return begin + lsp::byte_of(bytes.substr(begin, end - begin), position.character, encoding);
}

std::string unusable_as(const Exclusions::Verdict& secret) {
  return "the file may hold secrets (" + secret.pattern +
         "); completion.secret_files = true completes it anyway";
}

const char* state_name(completion::EngineState state, bool thinking) {
  switch (state) {
    case completion::EngineState::kLoading:
      return "loading";
    case completion::EngineState::kReady:
      return thinking ? "thinking" : "ready";
    case completion::EngineState::kFailed:
      return "failed";
  }
  return "failed";
}

/// Whole percents: a file that is read in small steps is not worth a message for each.
double rounded(double progress) { return std::round(std::clamp(progress, 0.0, 1.0) * 100) / 100; }

}  // namespace

std::size_t Session::byte_at(std::string_view bytes, const text::LineIndex& lines,
                             const lsp::Position& position) const {
  return byte_in(bytes, lines, position, encoding_);
}

lsp::Position Session::position_at(const text::Snapshot& snapshot, std::size_t byte) const {
  const std::size_t line = snapshot.lines().line_of(byte);
  const std::size_t begin = snapshot.lines().start(line);
  const std::string_view before = snapshot.bytes().substr(begin, byte - begin);
  return {static_cast<std::uint32_t>(line), lsp::character_of(before, before.size(), encoding_)};
}

Session::Prepared Session::prepare(std::string_view body) {
  Prepared prepared{lsp::parse_message(body)};
  if (!prepared.message) return prepared;
  lsp::Json& params = prepared.message->params;
  if (prepared.message->method == "textDocument/didOpen") {
    auto opened = lsp::params_of<lsp::DidOpenTextDocumentParams>(params);
    if (!opened) return prepared;  // did_open() says why
    params = nullptr;
    prepared.document = text::Document::open(opened->text);
    prepared.secret = secret_by_content(opened->text);
    opened->text = {};
    prepared.opened = std::move(*opened);
  } else if (prepared.message->method == "textDocument/didChange") {
    auto changed = lsp::params_of<lsp::DidChangeTextDocumentParams>(params);
    if (!changed) return prepared;
    params = nullptr;
    prepared.changed = std::move(*changed);
  }
  return prepared;
}

void Session::did_open(const lsp::Message& message) {
  if (prepared_ && prepared_->opened)
    return open(std::move(*prepared_->opened), std::move(*prepared_->document),
                std::move(prepared_->secret));
  auto params = params_of<lsp::DidOpenTextDocumentParams>(message);
  if (!params) return;
  auto document = text::Document::open(params->text);
  std::string secret = secret_by_content(params->text);
  open(std::move(*params), std::move(document), std::move(secret));
}

void Session::open(lsp::DidOpenTextDocumentParams params, Result<text::Document> document,
                   std::string secret) {
  if (documents_.size() >= lsp::kDocumentsMax && !documents_.contains(params.uri)) {
    host_.log().warn("session {}: more than {} open documents; one is ignored", id_,
                     lsp::kDocumentsMax);
    return;
  }
  // A second didOpen without a didClose is a new text with its own history.
  if (documents_.contains(params.uri)) host_.close_document({id_, params.uri});
  if (const auto pending = take_pending(params.uri)) answer(pending->id, nullptr);
  OpenDocument fresh{document ? std::move(*document) : text::Document(""), params.version,
                     params.languageId, document ? "" : document.error().message()};
  OpenDocument& open = documents_.insert_or_assign(params.uri, std::move(fresh)).first->second;
  const std::uint64_t opening = open.opening = ++openings_;
  open.held = HeldText(host_.text_budget(), id_);
  weigh(params.uri, open);
  if (!secret.empty()) open.exclusion = {Exclusions::Reason::kSecret, std::move(secret)};
  host_.judge({id_, params.uri},
              [self = weak_from_this(), uri = params.uri, opening](const FileFacts& facts) {
                if (const auto session = self.lock()) session->judged(uri, opening, facts);
              });
}

void Session::weigh(const std::string& uri, OpenDocument& open, std::string lost) {
  if (lost.empty() && open.held.hold(open.document.snapshot()->bytes().size())) return;
  static_cast<void>(open.held.hold(0));
  open.document = text::Document("");
  open.unusable =
      lost.empty() ? "too much text is open; close files, or restart the editor" : std::move(lost);
  if (!open.judged) return;  // nobody else knows the document yet
  host_.close_document({id_, uri});
  tell_unusable(uri, open);
}

void Session::judged(const std::string& uri, std::uint64_t opening, const FileFacts& facts) {
  const auto found = documents_.find(uri);
  if (found == documents_.end() || found->second.opening != opening) return;
  OpenDocument& open = found->second;
  const bool first = !std::exchange(open.judged, true);
  const bool secret_text = open.exclusion.reason == Exclusions::Reason::kSecret;
  if (!secret_text) open.exclusion = facts.exclusion;
  if (first) open.file = facts.file;  // a prompt's head stays what it was
  if (!secret_text) open.home = home_of(facts);
  if (open.home.project != open.home.path) host_.look_at_project(open.home);
  if (open.exclusion.reason == Exclusions::Reason::kSecret && !host_.config().secret_files &&
      open.unusable.empty()) {
    open.unusable = unusable_as(open.exclusion);
    if (!first) host_.close_document({id_, uri});
  }
  if (first) become_usable(uri, open);
}

void Session::become_usable(const std::string& uri, OpenDocument& open) {
  if (!open.unusable.empty()) tell_unusable(uri, open);
  if (open.unusable.empty())
    host_.open_document({{id_, uri},
                         open.document.snapshot(),
                         open.exclusion.may_be_stored(),
                         open.file,
                         open.home});
  const auto waiting = std::exchange(open.waiting, std::nullopt);
  const auto pending = pending_.find(uri);
  if (!waiting || pending == pending_.end() || pending->second.number != waiting->asked.number)
    return;  // a newer one, or the editor, has answered it
  if (open.unusable.empty()) return submit(waiting->asked, waiting->params);
  take_pending(uri);
  answer_unusable(waiting->asked, open);
  tell_state();
}

void Session::did_change(const lsp::Message& message) {
  auto params = prepared_ && prepared_->changed
                    ? std::move(prepared_->changed)
                    : params_of<lsp::DidChangeTextDocumentParams>(message);
  const auto found = documents_.find(params ? params->uri : lsp::document_uri(message.params));
  if (found == documents_.end()) {
    host_.log().warn("session {}: ignored a change to a document that is not open", id_);
    return;
  }
  OpenDocument& open = found->second;
  if (params && params->version) open.version = params->version;
  if (!open.unusable.empty()) return;
  // What it said is unknown, so the text is not the editor's any more.
  if (!params) return weigh(found->first, open, "a change was not understood; open it again");
  revising_ = std::make_shared<Revising>(
      Revising{params->uri, open.document.revise(), std::move(params->contentChanges), encoding_});
}

bool Session::revises_large_text() const {
  return revising_ && revising_->revision.bytes().size() > kCopiedAtOnceMax;
}

std::function<void()> Session::work_aside() {
  return [revising = revising_] {
    if (!revising) return;
    revising->lost = true;
    revising->go_on(kBytesTouchedMax);
    revising->lost = false;
  };
}

Session::Next Session::go_on() {
  if (state_ == State::kEnded) return Next::kClose;
  if (revising_ && revising_->lost) throw std::bad_alloc();
  if (revising_ && !revising_->is_done()) revising_->go_on(kBytesTouchedAtOnce);
  if (revising_ && !revising_->is_done()) return Next::kUnfinished;
  if (revising_) revised();
  tell_state();
  return Next::kGoOn;
}

void Session::Revising::go_on(std::size_t bytes_max) {
  for (const std::size_t begin = bytes_touched; !is_done() && bytes_touched - begin <= bytes_max;)
    outcome = make_next();
  if (is_done()) judge();
}

void Session::Revising::judge() {
  // A key is pasted, or comes with the whole text; nobody types one.
  for (const auto& change : std::exchange(changes, {}))
    if (secret.empty()) secret = secret_by_content(change.text);
}

Result<void> Session::Revising::make_next() {
  const lsp::TextDocumentContentChangeEvent& change = changes[next++];
  if (!change.range) {
    bytes_touched += change.text.size();
    return revision.replace_all(change.text);
  }
  const text::LineIndex& lines = revision.lines();
  const std::size_t begin = byte_in(revision.bytes(), lines, change.range->start, encoding);
  const std::size_t end = byte_in(revision.bytes(), lines, change.range->end, encoding);
  // Both lines up to there are read, the text behind is moved, and so is the index of its lines.
  const std::size_t lines_behind =
      lines.line_count() - std::min<std::size_t>(change.range->start.line, lines.line_count());
  bytes_touched += begin - std::min(begin, lines.start(change.range->start.line));
  bytes_touched += end - std::min(end, lines.start(change.range->end.line));
  bytes_touched += revision.bytes().size() - begin + lines_behind * sizeof(std::uint32_t);
  if (bytes_touched > kBytesTouchedMax)
    return fail(Fault::kBadInput, "document: one change makes too many edits for its size",
                "no completions in it until it is reopened");
  return revision.replace(std::min(begin, end), std::max(begin, end), change.text);
}

void Session::revised() {
  const std::shared_ptr<Revising> made = std::exchange(revising_, nullptr);
  const auto found = documents_.find(made->uri);
  // Its file may have turned out to be one with secrets meanwhile.
  if (found == documents_.end() || !found->second.unusable.empty()) return;
  OpenDocument& open = found->second;
  if (made->outcome) {
    open.document.adopt(std::move(made->revision));
    weigh(made->uri, open);
    close_if_secret(made->uri, made->secret);
    if (!open.judged || !open.unusable.empty() || open.home.path.empty() ||
        !host_.config().completion.recall)
      return;
    host_.revise_document({id_, made->uri}, open.home, open.document.snapshot());
    return look_again(open.home);
  }
  host_.log().warn("session {}: a document is not completed any more: {}", id_,
                   made->outcome.error().message());
  weigh(made->uri, open, made->outcome.error().message());
}

void Session::close_if_secret(const std::string& uri, const std::string& why) {
  if (why.empty()) return;
  OpenDocument& open = documents_.at(uri);
  open.exclusion = {Exclusions::Reason::kSecret, why};
  host_.forget_text(std::exchange(open.home, {}));
  if (host_.config().secret_files) return;
  host_.close_document({id_, uri});
  open.unusable = unusable_as(open.exclusion);
}

/// Of files that may hold secrets nothing is said: their owner knows why, and the receipt says so.
void Session::tell_unusable(const std::string& uri, const OpenDocument& open) {
  if (open.exclusion.reason == Exclusions::Reason::kSecret || unusable_told_.contains(uri)) return;
  if (unusable_told_.size() < lsp::kDocumentsMax) unusable_told_.insert(uri);
  show(lsp::MessageType::kWarning, "No completions in " + lsp::display(uri) + ": " + open.unusable);
}

void Session::did_close(const lsp::Message& message) {
  const auto params = params_of<lsp::DidCloseTextDocumentParams>(message);
  if (!params) return;
  const auto closed = documents_.extract(params->uri);
  if (closed.empty()) return;
  // From here on, a text that was saved meanwhile counts.
  const completion::TextHome& home = closed.mapped().home;
  if (home.project != home.path) host_.look_at_project(home);
  if (const auto pending = take_pending(params->uri)) answer(pending->id, nullptr);
  if (focused_ == params->uri) focused_.clear();
  host_.close_document({id_, params->uri});
}

void Session::tell_state() {
  if (!states_ || state_ != State::kServing) return;
  const ModelProgress model = host_.model_progress();
  Json now = {{"name", state_name(model.state, !pending_.empty())},
              {"progress", rounded(model.progress)},
              {"message", model.failure}};
  if (now == state_told_) return;
  state_told_ = now;
  notify("efim/state", std::move(now));
}

void Session::cache(const lsp::Message& message) {
  auto request = cache_request_from(message.params);
  if (!request)
    return refuse(message.id, lsp::ErrorCode::kInvalidParams, request.error().message());
  host_.cache(id_, std::move(*request),
              [self = weak_from_this(), id = message.id](Result<Json> answer) {
                const auto session = self.lock();
                if (!session || session->state_ == State::kEnded) return;
                if (answer) return session->answer(id, std::move(*answer));
                session->refuse(id, lsp::ErrorCode::kRequestFailed, answer.error().message());
              });
}

void Session::did_focus(const lsp::Message& message) {
  const auto params = params_of<lsp::EfimDidFocusParams>(message);
  if (!params || !documents_.contains(params->uri)) return;
  focused_ = params->uri;
  host_.focus_document({id_, params->uri});
}

void Session::did_show(const lsp::Message& message) {
  if (params_of<lsp::EfimDidShowParams>(message)) ++shown_;
}

void Session::did_dismiss(const lsp::Message& message) {
  const auto params = params_of<lsp::EfimDidDismissParams>(message);
  if (!params) return;
  const auto open = documents_.find(params->uri);
  if (open == documents_.end()) return;
  ++dismissed_;
  host_.dismiss_suggestion({{id_, params->uri}, open->second.document.snapshot()});
}

void Session::did_partially_accept(const lsp::Message& message) {
  if (params_of<lsp::EfimDidPartiallyAcceptParams>(message)) ++accepted_partly_;
}

}  // namespace efimd::service
