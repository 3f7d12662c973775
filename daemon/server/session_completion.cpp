// The part of Session that finds documents, asks for completions, and sends what comes of them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "daemon/server/receipt.h"
#include "daemon/server/session.h"

namespace efimd::service {

using lsp::Json;

namespace {

constexpr char kNotOpen[] = "the document is not open";
constexpr char kSecretFile[] = "the file may hold secrets";
constexpr char kTooLarge[] = "the document is too large";
constexpr char kSuperseded[] = "superseded by a newer request";

/// Shorter samples are in many texts.
constexpr std::size_t kSampleBytesMin = 16;

/// Bytes of `sample` that `text` has: all or none.
std::size_t bytes_in(std::string_view text, std::string_view sample) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  if (sample.size() - static_cast<std::size_t>(std::ranges::count_if(sample, is_blank)) <
      kSampleBytesMin)
    return 0;
  // Takes time for text and sample together, not for their product as find() does.
  const void* const found = ::memmem(text.data(), text.size(), sample.data(), sample.size());
  return found != nullptr ? sample.size() : 0;
}

Json version_json(const std::optional<std::int32_t>& version) {
  return version ? Json(*version) : Json(nullptr);
}

}  // namespace

void Session::find_document(const lsp::Message& message) {
  auto sought = params_of<lsp::FindDocumentParams>(message);
  if (!sought) return;
  for (std::string* const sample : {&sought->above, &sought->below})
    *sample = text::document_text(std::move(*sample));
  const auto found = host_.find_document(id_, *sought);
  if (!found) return answer(message.id, nullptr);
  answer(message.id,
         {{"uri", found->uri}, {"languageId", found->language_id}, {"text", found->text->bytes()}});
}

void Session::find_document(const lsp::FindDocumentParams& sought,
                            std::optional<FoundDocument>& best) const {
  for (const auto& [uri, open] : documents_) {
    if (!open.unusable.empty() || !open.judged) continue;
    const text::SnapshotPtr& text = open.document.snapshot();
    if (text->bytes().size() > lsp::FindDocumentParams::kTextBytesMax) continue;
    const std::size_t alike =
        bytes_in(text->bytes(), sought.above) + bytes_in(text->bytes(), sought.below);
    if (alike > (best ? best->alike : 0)) best = {alike, uri, open.language_id, text};
  }
}

void Session::inline_completion(const lsp::Message& message) {
  const auto params = params_of<lsp::InlineCompletionParams>(message);
  if (!params) return;
  ++completions_;
  if (const auto older = take_pending(params->uri)) answer(older->id, nullptr);
  Asked asked{message.id, params->uri, std::nullopt, {}, completions_};
  const auto found = documents_.find(params->uri);
  if (found == documents_.end()) return answer_empty(asked, kNotOpen, kNotOpen);
  OpenDocument& open = found->second;
  asked.version = open.version;
  if (!open.unusable.empty()) return answer_unusable(asked, open);
  asked.language_id = open.language_id;
  asked.arrived = std::chrono::steady_clock::now();
  asked.options = options_;
  pending_[asked.uri] = {asked.id, std::stop_source(), asked.number, open.document.snapshot()};
  if (open.judged) return submit(asked, *params);
  open.waiting = {std::move(asked), *params};
}

void Session::answer_unusable(const Asked& asked, const OpenDocument& open) {
  const bool secret = open.exclusion.reason == Exclusions::Reason::kSecret;
  answer_empty(asked, secret ? kSecretFile : kTooLarge, open.unusable);
}

void Session::submit(const Asked& asked, const lsp::InlineCompletionParams& params) {
  const Pending& pending = pending_.at(asked.uri);
  completion::Request request;
  request.document = {id_, asked.uri};
  request.snapshot = pending.snapshot;
  const auto byte = [&](const lsp::Position& position) {
    return byte_at(pending.snapshot->bytes(), pending.snapshot->lines(), position);
  };
  request.cursor = byte(params.position);
  if (const auto& selected = params.selectedCompletionInfo)
    request.selected = {byte(selected->range.start), byte(selected->range.end), selected->text};
  request.by_hand = params.triggerKind == lsp::InlineCompletionTriggerKind::kInvoked;
  request.ahead = params.ahead;
  request.language_id = asked.language_id;
  request.options = asked.options;
  request.stop = pending.stop.get_token();
  request.arrived = asked.arrived;
  if (const auto open = documents_.find(asked.uri); open != documents_.end()) {
    request.may_be_stored = open->second.exclusion.may_be_stored();
    request.may_leave = open->second.exclusion.may_leave();
    request.file = open->second.file;
    request.home = open->second.home;
  }
  if (const auto& token = params.partialResultToken)
    request.partial = [self = weak_from_this(), asked,
                       token = *token](const completion::Item& item) {
      if (const auto session = self.lock()) session->begun(asked, token, item);
    };
  host_.complete(std::move(request),
                 [self = weak_from_this(), asked](const completion::Outcome& outcome) {
                   if (const auto session = self.lock()) session->finished(asked, outcome);
                 });
}

std::optional<Session::Pending> Session::take_pending(const std::string& uri) {
  auto taken = pending_.extract(uri);
  if (taken.empty()) return std::nullopt;
  taken.mapped().stop.request_stop();
  return std::move(taken.mapped());
}

void Session::begun(const Asked& asked, const lsp::Id& token, const completion::Item& item) {
  const auto found = pending_.find(asked.uri);
  if (state_ == State::kEnded || found == pending_.end() || found->second.number != asked.number)
    return;
  const std::vector items{item_of(asked, *found->second.snapshot, item)};
  notify("$/progress", lsp::partial_result_params(token, items));
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
    const text::Snapshot& snapshot = *found->second.snapshot;
    std::vector items{item_of(asked, snapshot, *outcome.item)};
    for (const completion::Item& item : outcome.more)
      items.push_back(item_of(asked, snapshot, item));
    answer(asked.id, lsp::inline_completion_list(items));
  } else {
    answer(asked.id, lsp::inline_completion_list({}));
  }
  if (waiting) pending_.erase(found);
  send_receipt(asked, receipt);
  tell_state();
}

lsp::InlineCompletionItem Session::item_of(const Asked& asked, const text::Snapshot& snapshot,
                                           const completion::Item& item) const {
  lsp::InlineCompletionItem shown;
  shown.insertText = item.text;
  shown.filterText = item.text;
  shown.range = {position_at(snapshot, item.replace_begin),
                 position_at(snapshot, item.replace_end)};
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
  const auto open = documents_.find(asked.uri);
  const bool unstored = open != documents_.end() && open->second.judged;
  notify("efim/receipt",
         receipt_json({asked.id, asked.uri, asked.version, receipt,
                       unstored ? open->second.exclusion.why_not_stored() : std::string()}));
}

}  // namespace efimd::service
