#include "daemon/completion/answer/worker.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/utf8.h"
#include "daemon/completion/answer/shape.h"
#include "daemon/completion/answer/verdicts.h"
#include "daemon/completion/fit/selected.h"
#include "daemon/completion/pace.h"

namespace efimd::completion {

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// BOS and the three of the format, and what a text may gain when it is tokenized in two parts.
constexpr int kFramingTokens = 16;

/// Tokens kept free after the prompt, so that there is room to generate.
int reserved(const Options& options, int window_tokens) {
  return std::clamp(options.tokens_max, 0, window_tokens / 4);
}

}  // namespace

Worker::Worker(std::unique_ptr<engine::Engine> engine, Settings settings)
    : engine_(std::move(engine)),
      budgets_(std::move(settings.budgets)),
      documents_(*engine_, settings.documents_max),
      memory_(*engine_, documents_, std::move(settings.keeper), settings.ask_head != nullptr),
      index_(settings.index),
      texts_(index_),
      taste_(settings.taste) {
  if (settings.remote.engine) remote_.emplace(engine_->tokenizer(), std::move(settings.remote));
  if (engine_->tokenizer().fim().files.shows_others) ask_head_ = std::move(settings.ask_head);
  if (settings.shows_edits) elsewhere_.emplace(*engine_, documents_, memory_);
}

void Worker::close(const DocumentKey& document) {
  texts_.close(document);
  memory_.close(document);
  documents_.close(document);
  if (remote_) remote_->close(document);
  if (ask_head_) ask_head_({document, nullptr});
}

void Worker::open(const OpenedDocument& opened) {
  idle_.wake();
  DocumentState& document = documents_.use(opened.document, opened.file);
  // One that was closed and is open again counts as open before anybody asks for it.
  if (!document.open) documents_.follow(document, *opened.snapshot);
  memory_.open(opened);
  document.snapshot = opened.snapshot;
  document.windows = windows_for({}, document);
  document.home = opened.home;
  texts_.set(opened.document, opened.home, opened.snapshot);
  if (elsewhere_) elsewhere_->follow(document, *opened.snapshot);
  ask_head(opened.document, document);
}

void Worker::ask_head(const DocumentKey& document, DocumentState& state) {
  if (!ask_head_ || !state.snapshot || state.home.path.empty() ||
      state.head_asked == state.snapshot->serial())
    return;
  state.head_asked = state.snapshot->serial();
  HeadQuestion question{document, state.snapshot, state.file, state.home};
  if (state.spine.end() > state.spine.begin()) {
    question.window_begin = state.spine.begin();
    question.window_end = state.spine.end();
  }
  question.bytes_max = prompt::declaration_bytes(budgets_.head_tokens_max(), engine_->tokenizer());
  ask_head_(std::move(question));
}

void Worker::ask_heads() {
  if (!ask_head_ || !idle_.has_settled()) return;
  documents_.for_each([this](const DocumentKey& document, DocumentState& state) {
    if (state.open) ask_head(document, state);
  });
}

void Worker::show_head(const HeadAnswer& answer) {
  DocumentState* const document = documents_.find_open(answer.document);
  if (document == nullptr || !answer.head) return;
  memory_.note_shown(*document, answer.shown);
  documents_.show_head(*document, *answer.head, budgets_.head_tokens_max());
  document->windows =
      windows_for(document->asked ? document->asked->options : Options(), *document);
}

void Worker::focus(const DocumentKey& document) {
  idle_.wake();
  documents_.focus(document);
}

void Worker::dismiss(const Dismissal& dismissal) {
  const DocumentState* known = documents_.find(dismissal.document);
  if (taste_ != nullptr && known != nullptr) note_dismissed(*taste_, *known, *dismissal.snapshot);
  documents_.dismiss(dismissal.document, *dismissal.snapshot);
}

Idle::Clock::time_point Worker::idle(const std::stop_token& stop) {
  Idle::Clock::time_point later = kNever;
  ask_heads();
  // Full anchors are made for the document used last.
  if (const auto open = documents_.open_by_use(); elsewhere_ && !open.empty())
    elsewhere_->choose(*open.front());
  if (!idle_.prepare_cursor(stop)) return later;
  // In the pauses of typing the wide window comes first: it makes this suggestion better, and what
  // is looked ahead for is only shown to who accepts this one.
  if (!idle_.widen_cursor(stop, Clock::now() + Idle::kPause)) return later;
  // Beside a better engine elsewhere, this one's next suggestion is not wanted.
  if (!remote_ || !remote_->is_up()) model_.look_ahead(stop);
  if (stop.stop_requested() || !idle_.widen_cursor(stop)) return later;
  static_cast<void>(idle_.prepare_places(stop, later));
  return later;
}

Answer Worker::serve(const Job& job) {
  idle_.wake();
  const Request& request = job.request;
  const double queue_ms = ms_since(request.arrived);
  Answer answer;
  if (job.stop.stop_requested()) {
    answer.outcome.superseded = true;
  } else {
    DocumentState& document = documents_.use(request.document, request.file);
    document.source = memory_.source_of(request.document, request.may_be_stored);
    Turn turn{job, document, utf8::floor(request.snapshot->bytes(), request.cursor)};
    std::optional<LastRequest> last;
    if (request.ahead) last = document.last;
    Or<std::vector<Item>> items = complete(turn);
    answer = answer_of(std::move(turn), std::move(items));
    if (request.ahead) document.last = std::move(last);
  }
  answer.outcome.receipt.queue_ms = queue_ms;
  answer.outcome.receipt.total_ms = ms_since(request.arrived);
  return answer;
}

Answer Worker::answer_of(Turn&& turn, Or<std::vector<Item>> items) const {
  DocumentState& document = turn.document;
  Answer answer;
  answer.accepted = std::move(turn.accepted);
  if (turn.plan) {
    turn.plan->uri = turn.request().document.uri;
    turn.plan->event = event_name(turn.receipt.event);
    answer.plan = std::move(turn.plan);
  }
  answer.outcome.receipt = std::move(turn.receipt);
  if (items) {
    const Item& first = items->front();
    const auto& before = document.last->shown;
    const bool is_rest = before && before->is_judged && before->begin < first.replace_begin;
    const Receipt& receipt = answer.outcome.receipt;
    Shown shown{first.text, first.replace_begin, receipt.source, receipt.confidence.value_or(0),
                is_rest};
    if (before && is_left_of(*before, shown))
      shown.source = before->source;
    else
      answer.shown = turn.request().ahead ? "" : shown.source;
    document.last->shown = std::move(shown);
    if (!turn.request().selected) document.shown = first;
    answer.outcome.more.assign(items->begin() + 1, items->end());
    answer.outcome.item = std::move(items->front());
  } else if (items.error().superseded) {
    answer.outcome.superseded = true;
  } else {
    document.last->shown.reset();
    answer.silence = items.error().silence.reason;
    answer.outcome.receipt.reason = items.error().silence.message();
  }
  return answer;
}

void Worker::note_request(Turn& turn) {
  const Request& request = turn.request();
  const text::Snapshot& snapshot = turn.snapshot();
  DocumentState& document = turn.document;
  turn.receipt.event = classify(document.last ? &*document.last : nullptr,
                                documents_.is_current(request.document), snapshot, turn.cursor);
  if (documents_.set_current(request.document)) memory_.visit(request.document, document);
  documents_.follow(document, snapshot);
  if (!document.last) document.last.emplace();
  if (request.ahead)
    forget_moved(*document.last, snapshot);
  else
    learn(turn);
  document.home = request.home;
  document.last->serial = snapshot.serial();
  document.last->cursor = turn.cursor;
  document.snapshot = request.snapshot;
  document.asked = request;
  document.asked->partial = nullptr;
  document.shown.reset();
  document.asked->cursor = turn.cursor;
  document.widening_cpu_s = std::max(0.0, document.widening_cpu_s - Idle::kWideningBackS);
  document.windows = windows_for(request.options, document);
}

void Worker::learn(Turn& turn) {
  const Request& request = turn.request();
  DocumentState& document = turn.document;
  LastRequest& last = *document.last;
  if (turn.receipt.event == Event::kAccept && last.shown) turn.accepted = last.shown->source;
  if (taste_ != nullptr) note_verdict(*taste_, turn);
  forget_moved(last, turn.snapshot());
  document.rejections.judge(last, turn.snapshot(), turn.cursor);
  if (index_ != nullptr) {
    texts_.set(request.document, request.home, request.snapshot);
    note_accepted(*index_, turn);
  }
  if (elsewhere_) elsewhere_->follow(document, turn.snapshot());
}

prompt::Windows Worker::windows_for(const Options& options, const DocumentState& document) const {
  const int window = engine_->window_tokens();
  const int path = static_cast<int>(document.first_spine.path().size());
  const int head =
      static_cast<int>(std::max(document.newest_path().size(), document.spine.path().size()));
  const int edits = elsewhere_ ? std::min(kEditTokensMax, window / kEditShare) : 0;
  const int room = window - reserved(options, window) - head - edits;
  // The path is read first, too; at least half of a first answer's time stays for text.
  const int near = budgets_.near_tokens_max;
  const auto first = prompt::Windows::of(std::min(room, budgets_.prompt_tokens_max - path),
                                         std::max(near - path, near / 2));
  const int wide = std::min(budgets_.wide_tokens_max, wide_tokens_within(room - kFramingTokens));
  return wide > first.before_max + first.after_max ? prompt::Windows::wide(wide, first) : first;
}

Or<std::vector<Item>> Worker::complete(Turn& turn) {
  const Request& request = turn.request();
  note_request(turn);
  if (request.selected && !can_go_on_from(*request.selected, turn.snapshot(), turn.cursor))
    return nothing(silence::kSelectedElse);
  // By hand, others than the shown one are wanted; a menu's entry has its own continuation.
  if (request.by_hand || request.selected) return ask_model(turn);
  turn.taste = taste_;
  const Recalled recalled = index_ != nullptr ? propose(*index_, turn) : Recalled{};
  turn.rival = &recalled;
  Or<std::vector<Item>> written = find_items(turn, recalled);
  return better_of(turn, std::move(written), with_model(recalled, turn));
}

Or<std::vector<Item>> Worker::better_of(Turn& turn, Or<std::vector<Item>> written,
                                        const Recalled& recalled) const {
  if (!written && written.error().superseded) return written;
  if (written && !is_welcome(turn, turn.receipt.confidence)) written = nothing(silence::kFinished);
  // Who waved one suggestion away does not want the next best in its place.
  if (recalled.rejected) return nothing(silence::kRejected);
  if (!recalled.item) return written;
  const std::string& text = recalled.item->text;
  if (written && written->front().text.starts_with(text)) {
    turn.receipt.source = source::kRecalledAndModel.name;
    return written;
  }
  if (written && !is_better(recalled, written_gain(turn, *written))) return written;
  turn.receipt.source = source::kRecalled.name;
  turn.receipt.confidence = recalled.chance;
  return std::vector<Item>{*recalled.item};
}

Or<std::vector<Item>> Worker::find_items(Turn& turn, const Recalled& recalled) {
  const KnownSuggestion known =
      known_suggestion(turn.document, turn.request().options, turn.snapshot(), turn.cursor);
  Draft draft = draft_of(recalled);
  if (known.suggestion == nullptr) return ask_model(turn, draft);
  const Suggestion& suggestion = *known.suggestion;
  if (model_.sees_more_than(suggestion, turn)) {
    const std::string& text = suggestion.generated.text;
    turn.rival = nullptr;  // it is there in one step, or another text is
    draft.text = text.substr(std::min(known.typed, text.size()));
    draft.chance = 1;
    return ask_model(turn, draft);
  }
  if (can_answer(suggestion, known.typed)) {
    auto items = answer_from(turn, known);
    if (items) return items;
    // What is remembered is no reason to be silent: the model may have something else by now.
    turn.document.suggestions.clear();
  } else if (ModelAnswer::can_go_on(turn, suggestion)) {
    const Or<Generated> generated = model_.go_on(turn, suggestion, known.typed);
    if (!generated) return tl::unexpected(generated.error());
    return shape(turn, {rest_of(*generated, known.typed)});
  }
  return ask_model(turn, draft);
}

Or<std::vector<Item>> Worker::ask_model(Turn& turn, const Draft& draft) {
  if (remote_) {
    if (const std::optional<Or<Generated>> written = remote_->ask(turn)) {
      if (!*written) return tl::unexpected(written->error());
      return shape(turn, {**written});
    }
  }
  const Or<std::vector<Generated>> generated = model_.ask(turn, draft);
  if (!generated) return tl::unexpected(generated.error());
  return shape(turn, *generated);
}

Or<std::vector<Item>> Worker::answer_from(Turn& turn, const KnownSuggestion& known) {
  const Suggestion& suggestion = *known.suggestion;
  DocumentState& document = turn.document;
  auto items = shape(turn, {rest_of(suggestion.generated, known.typed)});
  if (!items) return items;
  const bool unchanged = turn.snapshot().serial() == suggestion.snapshot->serial();
  const bool ahead = !suggestion.lead.empty() && known.typed == 0;
  turn.receipt.source = (ahead       ? source::kPrefetched
                         : unchanged ? source::kRemembered
                                     : source::kTypedThrough)
                            .name;
  ++document.hits;
  // what was accepted is a part of the anchor now, and this is what it offers.
  if (ahead && !document.anchors.empty() &&
      document.anchors.front().sequence == suggestion.sequence) {
    KeptAnchor& kept = document.anchors.front();
    if (auto plan = prompt::continued(kept.anchor, turn.snapshot(), turn.cursor,
                                      engine_->tokenizer(), document.windows)) {
      kept.anchor = std::move(plan->anchor);
      prompt::offer(kept.anchor, suggestion.generated.tokens, suggestion.generated.healed);
    }
  }
  return items;
}

}  // namespace efimd::completion
