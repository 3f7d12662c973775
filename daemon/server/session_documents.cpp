// The part of Session that deals with text: open documents, and completions for them.
#include <fmt/format.h>
#include <spdlog/logger.h>

#include <algorithm>
#include <utility>

#include "daemon/server/project_files.h"
#include "daemon/server/repository.h"
#include "daemon/server/secrets.h"
#include "daemon/server/session.h"
#include "lsp/uri.h"

namespace efimd::service {

using lsp::Json;

namespace {

constexpr char kNotOpen[] = "the document is not open";
constexpr char kSecretFile[] = "the file may hold secrets";
constexpr char kTooLarge[] = "the document is too large";
constexpr char kSuperseded[] = "superseded by a newer request";

Json version_json(const std::optional<std::int32_t>& version) {
  return version ? Json(*version) : Json(nullptr);
}

std::string unusable_as(const Exclusions::Verdict& secret) {
  return "the file may hold secrets (" + secret.pattern +
         "); completion.secret_files = true completes it all the same";
}

}  // namespace

std::size_t Session::byte_at(std::string_view bytes, const text::LineIndex& lines,
                             const lsp::Position& position) const {
  const std::size_t begin = lines.start(position.line);
  const std::size_t end = std::max(begin, lines.content_end(bytes, position.line));
  return begin + lsp::byte_of(bytes.substr(begin, end - begin), position.character, encoding_);
}

lsp::Position Session::position_at(const text::Snapshot& snapshot, std::size_t byte) const {
  const std::size_t line = snapshot.lines().line_of(byte);
  const std::size_t begin = snapshot.lines().start(line);
  const std::string_view before = snapshot.bytes().substr(begin, byte - begin);
  return {static_cast<std::uint32_t>(line), lsp::character_of(before, before.size(), encoding_)};
}

void Session::did_open(const lsp::Message& message) {
  const auto params = params_of<lsp::DidOpenTextDocumentParams>(message);
  if (!params) return;
  if (documents_.size() >= lsp::kDocumentsMax && !documents_.contains(params->uri)) {
    host_.log().warn("session {}: more than {} open documents; one is passed over", id_,
                     lsp::kDocumentsMax);
    return;
  }
  // A second didOpen without a didClose is a new text with its own history.
  if (documents_.contains(params->uri)) host_.close_document({id_, params->uri});
  const auto [entry, fresh] = documents_.insert_or_assign(params->uri, opened(*params));
  OpenDocument& open = entry->second;
  open.exclusion = host_.exclusions().judge(params->uri, params->text);
  open.file = file_name_of(params->uri);
  const bool shares =
      open.exclusion.may_be_stored() || open.exclusion.reason == Exclusions::Reason::kScheme;
  if (shares && host_.config().completion.recall) open.home = text_home_of(params->uri);
  if (open.home.project != open.home.path) host_.look_at_project(open.home);
  if (open.exclusion.reason == Exclusions::Reason::kSecret && !host_.config().secret_files)
    open.unusable = unusable_as(open.exclusion);
  if (!open.unusable.empty()) tell_unusable(params->uri, open);
  if (open.unusable.empty())
    host_.open_document({{id_, params->uri},
                         open.document.snapshot(),
                         open.exclusion.may_be_stored(),
                         open.file,
                         open.home});
}

Session::OpenDocument Session::opened(const lsp::DidOpenTextDocumentParams& params) const {
  auto document = text::Document::open(params.text);
  if (document) return {std::move(*document), params.version, params.languageId, {}};
  return {text::Document(""), params.version, params.languageId, document.error().message()};
}

void Session::did_change(const lsp::Message& message) {
  const auto params = params_of<lsp::DidChangeTextDocumentParams>(message);
  if (!params) return;
  const auto found = documents_.find(params->uri);
  if (found == documents_.end()) {
    host_.log().warn("session {}: ignored a change to a document that is not open", id_);
    return;
  }
  OpenDocument& open = found->second;
  if (params->version) open.version = params->version;
  if (!open.unusable.empty()) return;
  auto revision = revised(open.document, params->contentChanges);
  if (revision) {
    open.document.adopt(std::move(*revision));
    return close_if_secret(params->uri, params->contentChanges);
  }
  host_.log().warn("session {}: a document is not completed any more: {}", id_,
                   revision.error().message());
  open = {text::Document(""), open.version, open.language_id, revision.error().message()};
  tell_unusable(params->uri, open);
}

void Session::close_if_secret(const std::string& uri,
                              std::span<const lsp::TextDocumentContentChangeEvent> changes) {
  // A key is pasted, or comes with the whole text; nobody types one.
  const auto found = std::ranges::find_if(
      changes, [](const auto& change) { return !secret_by_content(change.text).empty(); });
  if (found == changes.end()) return;
  OpenDocument& open = documents_.at(uri);
  open.exclusion = {Exclusions::Reason::kSecret, secret_by_content(found->text)};
  open.home = {};  // it leaves the index with the next request
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

Result<text::Revision> Session::revised(
    const text::Document& document,
    std::span<const lsp::TextDocumentContentChangeEvent> changes) const {
  text::Revision revision = document.revise();
  for (const auto& change : changes) {
    std::size_t begin = 0, end = revision.bytes().size();
    if (change.range) {
      begin = byte_at(revision.bytes(), revision.lines(), change.range->start);
      end = byte_at(revision.bytes(), revision.lines(), change.range->end);
    }
    const auto replaced = revision.replace(std::min(begin, end), std::max(begin, end), change.text);
    if (!replaced) return tl::unexpected(replaced.error());
  }
  return revision;
}

void Session::did_close(const lsp::Message& message) {
  const auto params = params_of<lsp::DidCloseTextDocumentParams>(message);
  if (!params) return;
  const auto closed = documents_.extract(params->uri);
  if (closed.empty()) return;
  // What was saved meanwhile counts from here on.
  const completion::TextHome& home = closed.mapped().home;
  if (home.project != home.path) host_.look_at_project(home);
  if (const auto pending = take_pending(params->uri)) answer(pending->id, nullptr);
  if (focused_ == params->uri) focused_.clear();
  host_.close_document({id_, params->uri});
}

void Session::inline_completion(const lsp::Message& message) {
  const auto params = params_of<lsp::InlineCompletionParams>(message);
  if (!params) return;
  ++completions_;
  if (const auto older = take_pending(params->uri)) answer(older->id, nullptr);
  Asked asked{message.id, params->uri, std::nullopt, nullptr, {}, completions_};
  const auto found = documents_.find(params->uri);
  if (found == documents_.end()) return answer_empty(asked, kNotOpen, kNotOpen);
  asked.version = found->second.version;
  if (!found->second.unusable.empty())
    return answer_empty(
        asked,
        found->second.exclusion.reason == Exclusions::Reason::kSecret ? kSecretFile : kTooLarge,
        found->second.unusable);
  asked.snapshot = found->second.document.snapshot();
  asked.language_id = found->second.language_id;
  submit(std::move(asked), *params);
}

void Session::submit(Asked asked, const lsp::InlineCompletionParams& params) {
  Pending& pending = pending_[asked.uri];
  pending = {asked.id, std::stop_source(), asked.number};
  completion::Request request;
  request.document = {id_, asked.uri};
  request.snapshot = asked.snapshot;
  const auto byte = [&](const lsp::Position& position) {
    return byte_at(asked.snapshot->bytes(), asked.snapshot->lines(), position);
  };
  request.cursor = byte(params.position);
  if (const auto& selected = params.selectedCompletionInfo)
    request.selected = {byte(selected->range.start), byte(selected->range.end), selected->text};
  request.by_hand = params.triggerKind == lsp::InlineCompletionTriggerKind::kInvoked;
  request.language_id = asked.language_id;
  request.options = options_;
  request.stop = pending.stop.get_token();
  request.arrived = std::chrono::steady_clock::now();
  if (const auto open = documents_.find(asked.uri); open != documents_.end()) {
    request.may_be_stored = open->second.exclusion.may_be_stored();
    request.file = open->second.file;
    request.home = open->second.home;
  }
  host_.complete(std::move(request), [self = weak_from_this(), asked = std::move(asked)](
                                         const completion::Outcome& outcome) {
    if (const auto session = self.lock()) session->finished(asked, outcome);
  });
}

std::optional<Session::Pending> Session::take_pending(const std::string& uri) {
  auto taken = pending_.extract(uri);
  if (taken.empty()) return std::nullopt;
  taken.mapped().stop.request_stop();
  return std::move(taken.mapped());
}

void Session::finished(const Asked& asked, const completion::Outcome& outcome) {
  if (state_ == State::kEnded) return;
  const auto found = pending_.find(asked.uri);
  const bool waiting = found != pending_.end() && found->second.number == asked.number;
  completion::Receipt receipt = outcome.receipt;
  if (!waiting || outcome.superseded) {
    if (receipt.reason.empty()) receipt.reason = kSuperseded;
    if (waiting) answer(asked.id, nullptr);
  } else if (outcome.item) {
    std::vector items{item_of(asked, *outcome.item)};
    for (const completion::Item& item : outcome.more) items.push_back(item_of(asked, item));
    answer(asked.id, lsp::inline_completion_list(items));
  } else {
    answer(asked.id, lsp::inline_completion_list({}));
  }
  if (waiting) pending_.erase(found);
  send_receipt(asked, receipt);
  tell_state();
}

lsp::InlineCompletionItem Session::item_of(const Asked& asked, const completion::Item& item) const {
  lsp::InlineCompletionItem shown;
  shown.insertText = item.text;
  shown.filterText = item.text;
  shown.range = {position_at(*asked.snapshot, item.replace_begin),
                 position_at(*asked.snapshot, item.replace_end)};
  shown.command =
      lsp::Command{"Accept", kAcceptCommand, {Json(asked.uri), version_json(asked.version)}};
  return shown;
}

void Session::answer_empty(const Asked& asked, const char* silence, const std::string& reason) {
  answer(asked.id, lsp::inline_completion_list({}));
  host_.count_silence(silence);
  completion::Receipt receipt;
  receipt.reason = reason;
  send_receipt(asked, receipt);
}

void Session::send_receipt(const Asked& asked, const completion::Receipt& receipt) {
  if (!receipts_) return;
  Json params = {{"request", lsp::to_json(asked.id)},
                 {"uri", asked.uri},
                 {"version", version_json(asked.version)},
                 {"event", completion::event_name(receipt.event)},
                 {"source", receipt.source},
                 {"promptTokens", receipt.prompt_tokens},
                 {"reusedTokens", receipt.reused_tokens},
                 {"evaluatedTokens", receipt.evaluated_tokens},
                 {"generatedTokens", receipt.generated_tokens},
                 {"healedTokens", receipt.healed_tokens},
                 {"restoredTokens", receipt.restored_tokens},
                 {"draftedTokens", receipt.drafted_tokens},
                 {"acceptedTokens", receipt.accepted_tokens},
                 {"exact", true},
                 {"queueMs", receipt.queue_ms},
                 {"firstTokenMs", receipt.first_token_ms},
                 {"totalMs", receipt.total_ms}};
  if (receipt.confidence) params["confidence"] = *receipt.confidence;
  if (!receipt.reason.empty()) params["reason"] = receipt.reason;
  notify("efim/receipt", std::move(params));
}

}  // namespace efimd::service
