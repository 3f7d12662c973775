#include "daemon/completion/answer/worker.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "daemon/completion/answer/plans.h"
#include "daemon/completion/answer/selected.h"
#include "daemon/completion/fit/fit.h"
#include "daemon/completion/fit/stop_rules.h"
#include "daemon/completion/generate/healing.h"
#include "daemon/completion/pace.h"
#include "daemon/prompt/places.h"

namespace efimd::completion {

namespace {

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

/// Tokens kept free behind the prompt, so that there is room to generate.
int reserved(const Options& options, int window_tokens) {
  return std::clamp(options.tokens_max, 0, window_tokens / 4);
}

}  // namespace

Place place_of(const Request& request, const text::Snapshot& snapshot, std::size_t cursor) {
  const Language& language = language_of(request.language_id, request.document.uri);
  Place place = place_at(snapshot, language, cursor, prompt::choose_resume(snapshot, cursor));
  if (request.selected) go_on_from(place, *request.selected);
  return place;
}

Worker::Worker(std::unique_ptr<engine::Engine> engine, Budgets budgets, std::size_t documents_max,
               std::shared_ptr<PageKeeper> keeper)
    : engine_(std::move(engine)),
      budgets_(std::move(budgets)),
      documents_(*engine_, documents_max),
      memory_(*engine_, documents_, std::move(keeper)) {
  // Where healing is the rule, the first keystroke does not wait for it.
  if (!engine_->fragment_trained()) byte_order_.emplace(engine_->tokenizer());
}

void Worker::close(const DocumentKey& document) {
  documents_.close(document);
  memory_.close(document);
}

void Worker::open(const OpenedDocument& opened) {
  idle_.wake();
  memory_.open(opened);
  DocumentState& document = documents_.use(opened.document, opened.file);
  document.snapshot = opened.snapshot;
  document.windows = windows_for({}, document);
}

void Worker::focus(const DocumentKey& document) {
  idle_.wake();
  documents_.focus(document);
}

void Worker::dismiss(const Dismissal& dismissal) {
  documents_.dismiss(dismissal.document, *dismissal.snapshot);
}

Idle::Clock::time_point Worker::idle(const std::stop_token& stop) {
  Idle::Clock::time_point later = kNever;
  widen(budgets_, engine_->window_tokens());
  if (!idle_.prepare_cursor(stop)) return later;
  look_ahead(stop);
  if (!stop.stop_requested()) static_cast<void>(idle_.prepare_places(stop, later));
  return later;
}

Answer Worker::serve(const Job& job) {
  idle_.wake();
  const Request& request = job.request;
  Answer answer;
  Receipt& receipt = answer.outcome.receipt;
  planned_.reset();
  receipt.queue_ms = ms_between(request.arrived, Clock::now());
  if (job.stop.stop_requested()) {
    answer.outcome.superseded = true;
  } else {
    DocumentState& document = documents_.use(request.document, request.file);
    document.source = memory_.source_of(request.document, request.may_be_stored);
    Or<std::vector<Item>> items = complete(job, document, receipt);
    if (items) {
      const Item& first = items->front();
      document.last->shown = Shown{first.text, first.replace_begin};
      if (!request.selected) document.shown = first;
      answer.outcome.more.assign(items->begin() + 1, items->end());
      answer.outcome.item = std::move(items->front());
    } else if (items.error().superseded) {
      answer.outcome.superseded = true;
    } else {
      document.last->shown.reset();
      answer.silence = items.error().silence.reason;
      receipt.reason = items.error().silence.message();
    }
  }
  receipt.total_ms = ms_between(request.arrived, Clock::now());
  if (planned_) {
    planned_->uri = request.document.uri;
    planned_->event = event_name(receipt.event);
    answer.plan = std::move(planned_);
  }
  return answer;
}

void Worker::note_request(const Request& request, std::size_t cursor, DocumentState& document,
                          Receipt& receipt) {
  const text::Snapshot& snapshot = *request.snapshot;
  receipt.event = classify(document.last ? &*document.last : nullptr,
                           documents_.is_current(request.document), snapshot, cursor);
  documents_.set_current(request.document);
  documents_.follow(document, snapshot);
  if (!document.last) document.last.emplace();
  forget_moved(*document.last, snapshot);
  document.rejections.judge(*document.last, snapshot, cursor);
  document.last->serial = snapshot.serial();
  document.last->cursor = cursor;
  document.snapshot = request.snapshot;
  document.asked = request;
  document.shown.reset();
  document.asked->cursor = cursor;
  document.windows = windows_for(request.options, document);
}

prompt::Windows Worker::windows_for(const Options& options, const DocumentState& document) const {
  const int window = engine_->window_tokens();
  const int prompt_tokens =
      std::min(window - reserved(options, window), budgets_.prompt_tokens_max);
  const int head = static_cast<int>(document.spine.path().size());
  // The path is read first, too; at least half of a first answer's time stays for text.
  const int near = budgets_.near_tokens_max;
  return prompt::Windows::of(prompt_tokens - head, std::max(near - head, near / 2));
}

Worker::Or<std::vector<Item>> Worker::complete(const Job& job, DocumentState& document,
                                               Receipt& receipt) {
  const Request& request = job.request;
  const std::size_t cursor = utf8::floor(request.snapshot->bytes(), request.cursor);
  note_request(request, cursor, document, receipt);
  if (request.selected && !can_go_on_from(*request.selected, *request.snapshot, cursor))
    return tl::unexpected(Nothing{false, {silence::kSelectedElse, {}}});
  // Others than the one shown are wanted by hand; a menu's entry has its own way on.
  if (request.by_hand || request.selected)
    return ask_model(job, document, cursor, nullptr, receipt);
  return find_items(job, cursor, document, receipt);
}

Worker::Or<std::vector<Item>> Worker::find_items(const Job& job, std::size_t cursor,
                                                 DocumentState& document, Receipt& receipt) {
  const Request& request = job.request;
  const Known known = known_suggestion(request, cursor, document);
  if (known.suggestion == nullptr) return ask_model(job, document, cursor, nullptr, receipt);
  if (fuller_is_whole(document, *known.suggestion, *request.snapshot, cursor))
    return ask_model(job, document, cursor, known.suggestion, receipt);
  if (can_answer(*known.suggestion, known.typed)) {
    auto items = answer_from(known, request, cursor, document, receipt);
    if (items) return items;
    // What is remembered is no reason to be silent: the model may have something else by now.
    document.suggestions.clear();
  } else if (can_go_on(known, request, document)) {
    return go_on(job, known, cursor, document, receipt);
  }
  return ask_model(job, document, cursor, nullptr, receipt);
}

Worker::Or<std::vector<Item>> Worker::ask_model(const Job& job, DocumentState& document,
                                                std::size_t cursor, const Suggestion* shown,
                                                Receipt& receipt) {
  const Request& request = job.request;
  std::string draft;
  if (shown != nullptr)
    if (const auto typed = typed_of(*shown, *request.snapshot, cursor))
      draft = shown->generated.text.substr(std::min(*typed, shown->generated.text.size()));
  Or<prompt::Candidate> planned = plan(request, cursor, document);
  if (!planned) return tl::unexpected(planned.error());
  ++(planned->remembered >= 0 ? document.hits : document.misses);
  const prompt::Plan& plan = planned->plan;
  KeptAnchor& kept = documents_.keep(document, plan, planned->remembered);
  std::optional<Generated> begun;
  if (draft.empty() || typed_tokens(request, kept.anchor) > 0) {
    if (auto held = hold(job, kept, plan.tokens, receipt); !held)
      return tl::unexpected(held.error());
  } else {
    Or<Generated> held = hold_draft(job, kept, plan, draft, receipt);
    if (!held) return tl::unexpected(held.error());
    if (!held->tokens.empty()) begun = std::move(*held);
  }
  const Place place = place_of(request, *request.snapshot, cursor);
  auto generated = generate_text(job, document, kept, plan, place, std::move(begun), receipt);
  if (!generated) return tl::unexpected(generated.error());
  return shape_all(request, document, place, *generated, receipt);
}

Worker::Or<prompt::Candidate> Worker::plan(const Request& request, std::size_t cursor,
                                           DocumentState& document) {
  const engine::Tokenizer& tokenizer = engine_->tokenizer();
  if (const Result<void> able = prompt::can_fill_in(tokenizer); !able)
    return tl::unexpected(Nothing{false, {silence::kCannotFillIn, ": " + able.error().message()}});
  const PlanPlace place{*request.snapshot, cursor,           *engine_,
                        documents_,        document.windows, budgets_.costs};
  std::vector<prompt::Candidate> candidates = possible_plans(place, document);
  const std::size_t taken = prompt::choose(candidates);
  planned_.emplace();
  for (std::size_t at = 0; at < candidates.size(); ++at)
    if (at != taken) planned_->considered.push_back(prompt::describe(candidates[at]));
  planned_->taken = prompt::describe(candidates[taken]);
  return std::move(candidates[taken]);
}

tl::unexpected<Worker::Nothing> Worker::failed(KeptAnchor& kept, const Error& error) {
  if (error.fault == Fault::kStopped) return tl::unexpected(Nothing{true, {}});
  documents_.drop_sequence(kept);
  return tl::unexpected(Nothing{false, {silence::kEngineFailed, ": " + error.message()}});
}

Worker::Or<void> Worker::hold(const Job& job, KeptAnchor& kept,
                              std::span<const engine::TokenId> tokens, Receipt& receipt) {
  const Nothing no_room{false, {silence::kNoRoom, {}}};
  if (tokens.size() > static_cast<std::size_t>(engine_->window_tokens()))
    return tl::unexpected(no_room);
  for (;;) {
    const auto cost = engine_->hold(
        documents_.sequence_of(kept), tokens,
        {.stop = job.stop.get_token(), .logits_rows = 1 + typed_tokens(job.request, kept.anchor)});
    if (cost) {
      receipt.source = "engine";
      receipt.prompt_tokens = static_cast<int>(tokens.size());
      receipt.reused_tokens = cost->reused;
      receipt.evaluated_tokens = cost->evaluated;
      receipt.restored_tokens = cost->restored;
      return {};
    }
    if (cost.error().fault != Fault::kWindowFull) return failed(kept, cost.error());
    if (!documents_.make_room(kept)) return tl::unexpected(no_room);
  }
}

int Worker::typed_tokens(const Request& request, const prompt::Anchor& anchor) const {
  const Healing healing = request.options.healing;
  const bool wanted =
      healing == Healing::kAuto ? !engine_->fragment_trained() : healing == Healing::kOn;
  return wanted || request.selected ? typed_tail(anchor.increment, engine_->tokenizer()) : 0;
}

Worker::Or<std::vector<Generated>> Worker::generate_text(const Job& job, DocumentState& document,
                                                         KeptAnchor& kept, const prompt::Plan& plan,
                                                         const Place& place,
                                                         std::optional<Generated> begun,
                                                         Receipt& receipt) {
  const Request& request = job.request;
  StopRules rules(request.options.stop, stop_place(place));
  Options options = request.options;
  // The last token is not evaluated.
  const int room = engine_->window_tokens() - static_cast<int>(plan.tokens.size()) + 1;
  options.tokens_max = std::min(options.tokens_max, room);
  GenerationSetting setting{*engine_, *kept.sequence, job.stop.get_token()};
  setting.make_room = [&] { return documents_.make_room(kept); };
  Idle::Ride ride(idle_, document, kept);
  setting.passenger = [&] { return ride.next(); };
  setting.begun = std::move(begun);
  if (const int typed = typed_tokens(request, kept.anchor); typed > 0 || request.selected) {
    if (!byte_order_) byte_order_.emplace(engine_->tokenizer());
    setting.typed.emplace(TypedEnd{*byte_order_, typed});
  }
  if (request.selected) {
    std::size_t typed_bytes = 0;
    const std::span<const prompt::CoveredToken> increment = kept.anchor.increment;
    for (const auto& token : increment.last(static_cast<std::size_t>(setting.typed->tokens)))
      typed_bytes += token.bytes;
    const auto spelled =
        spelled_for(*request.selected, *request.snapshot, plan.cursor, typed_bytes);
    if (!spelled) return tl::unexpected(Nothing{false, {silence::kSelectedElse, {}}});
    setting.typed->spells = *spelled;
  }
  const bool several = request.by_hand && options.stop != StopRule::kNone;
  Result<std::vector<Generated>> all =
      generate_several(setting, options, rules, several ? kCandidatesMax : 1);
  if (!all) return failed(kept, all.error());
  for (const Generated& each : *all) receipt.generated_tokens += each.new_tokens;
  const Generated& first = all->front();
  receipt.healed_tokens = first.healed;
  if (first.first_token) receipt.first_token_ms = ms_between(request.arrived, *first.first_token);
  // also when superseded, for the KV of these tokens is there.
  if (!first.tokens.empty()) prompt::offer(kept.anchor, first.tokens, first.healed);
  if (!request.selected)
    remember(document, {.snapshot = request.snapshot,
                        .begin = plan.cursor,
                        .replace_end = plan.cursor,
                        .lead = {},
                        .options = request.options,
                        .generated = first,
                        .prompt = plan.tokens,
                        .sequence = kept.sequence,
                        .poverty = prompt::poverty(kept.anchor)});
  if (first.end == End::kStopped) return tl::unexpected(Nothing{true, {}});
  return std::move(*all);
}

Worker::Or<std::vector<Item>> Worker::shape_all(const Request& request,
                                                const DocumentState& document, const Place& place,
                                                const std::vector<Generated>& generated,
                                                Receipt& receipt) const {
  std::vector<Item> items;
  std::optional<Nothing> why;
  for (const Generated& each : generated) {
    std::optional<double> confidence;
    Or<Item> item = shape(request, place, each, confidence);
    if (item && document.rejections.turned_down(*request.snapshot, item->replace_begin, item->text))
      item = tl::unexpected(Nothing{false, {silence::kRejected, {}}});
    if (items.empty() && (item || !why)) receipt.confidence = confidence;
    if (!item && !why) why = item.error();
    if (item && std::ranges::find(items, item->text, &Item::text) == items.end())
      items.push_back(std::move(*item));
  }
  if (items.empty()) return tl::unexpected(why.value_or(Nothing{}));
  return items;
}

Worker::Or<Item> Worker::shape(const Request& request, const Place& place,
                               const Generated& generated,
                               std::optional<double>& confidence) const {
  const auto nothing = [](std::string_view reason) {
    return tl::unexpected(Nothing{false, {reason, {}}});
  };
  if (generated.new_tokens == 0)
    return nothing(generated.first_token ? silence::kNothing : silence::kNoBudget);
  if (generated.blank_line) return nothing(silence::kNothingOnLine);
  const Confident sure =
      confident_part(generated.text, generated.chances, place, least_confidence(request.options));
  const bool unsure = sure.size == 0 && (generated.end == End::kUnsure || !generated.text.empty());
  confidence = generated.text.empty() ? generated.confidence : sure.confidence;
  if (unsure) return nothing(silence::kUnsure);
  Fitted fitted = fit(std::string_view(generated.text).substr(0, sure.size), place);
  if (fitted.text.empty()) return nothing(fitted.silence);
  if (!request.selected) return Item{std::move(fitted.text), place.cursor, fitted.replace_end};
  return Item{request.selected->text + fitted.text, request.selected->begin, fitted.replace_end};
}

}  // namespace efimd::completion
