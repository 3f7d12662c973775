#include "daemon/completion/answer/idle.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <utility>

#include "daemon/completion/answer/packed.h"
#include "daemon/completion/answer/plans.h"
#include "daemon/prompt/places.h"

namespace efimd::completion {

namespace {

/// A step may grow by this much for piggybacked tokens.
constexpr double kFreeShare = 1.1;
/// Of the time that nobody has typed for: what a step may take.
constexpr double kStepShare = 0.25;
/// Full pages of a prompt that miss no more than this count as there: the rest is evaluated with the
/// request.
constexpr int kMissingMax = 1;
/// Documents besides the last one that are kept ready.
constexpr std::size_t kOtherDocumentsMax = 8;
/// Stages of one pause, and sequences closed for them.
constexpr int kWideningStepsMax = 16;

/// What I-1 evaluates.
prompt::View first_view(const DocumentState& document) {
  return document.windows.has_first() ? prompt::View::kFirst : prompt::View::kFull;
}

bool is_whole(const engine::Engine& engine, const KeptAnchor& kept,
              std::span<const engine::TokenId> tokens) {
  return tokens_missing(engine, &kept, tokens) <= kMissingMax;
}

}  // namespace

bool Idle::prepare_cursor(const std::stop_token& stop) {
  const std::vector<DocumentState*> open = documents_.open_by_use();
  return open.empty() || prepare_anchor(*open.front(), stop);
}

bool Idle::prepare_places(const std::stop_token& stop, Clock::time_point& later) {
  std::vector<DocumentState*> open = documents_.open_by_use();
  if (open.size() > kOtherDocumentsMax + 1) open.resize(kOtherDocumentsMax + 1);
  if (Clock::now() < woken_ + budgets_.settle) {
    if (!open.empty()) later = woken_ + budgets_.settle;
    return true;
  }
  if (open.empty()) return true;
  const auto finish = [&](DocumentState* document) {
    return renew_stale(*document, stop) && prepare_spine(*document, stop, later);
  };
  const std::span<DocumentState* const> others = std::span(open).subspan(1);
  return prepare_anchor(*open.front(), stop) && finish(open.front()) &&
         prepare_anchors(others, stop) && std::ranges::all_of(others, finish);
}

Idle::Wanted Idle::anchor_for(DocumentState& document, prompt::View view) {
  const Request& asked = *document.asked;
  const engine::Tokenizer& tokenizer = engine_.tokenizer();
  for (KeptAnchor& kept : document.anchors) {
    if (kept.anchor.view != view || (view == prompt::View::kFull && kept.anchor.lacks_head))
      continue;
    auto plan =
        prompt::continued(kept.anchor, *asked.snapshot, asked.cursor, tokenizer, document.windows);
    if (plan && !prompt::has_grown(plan->anchor)) return {&kept, std::move(plan->tokens)};
  }
  prompt::Plan plan = new_plan(view, document, tokenizer);
  if (plan.tokens.size() > static_cast<std::size_t>(engine_.window_tokens())) return {};
  // A view that shows all has become another one, which may be there.
  if (plan.anchor.view != view) return anchor_for(document, plan.anchor.view);
  return {&documents_.add_behind(document, plan), std::move(plan.tokens)};
}

std::vector<Idle::Serving> Idle::serving_cursor(DocumentState& document) {
  std::vector<Serving> found;
  const Request& asked = *document.asked;
  for (KeptAnchor& kept : document.anchors) {
    auto plan = prompt::continued(kept.anchor, *asked.snapshot, asked.cursor, engine_.tokenizer(),
                                  document.windows);
    if (!plan) continue;
    const int missing = tokens_missing(engine_, &kept, plan->tokens);
    found.push_back({{&kept, std::move(plan->tokens)}, prompt::view_rank(plan->anchor), missing});
  }
  std::ranges::stable_sort(found, {}, &Serving::poverty);
  return found;
}

int Idle::poverty_at_cursor(DocumentState& document) {
  for (const Serving& anchor : serving_cursor(document))
    if (anchor.missing <= kMissingMax) return anchor.poverty;
  return std::numeric_limits<int>::max();
}

Idle::Wanted Idle::wanted_anchor(DocumentState& document) {
  if (!document.asked) return {};
  const prompt::View view = first_view(document);
  std::vector<Serving> serving = serving_cursor(document);
  std::erase_if(serving, [&](const Serving& anchor) {
    return anchor.poverty > prompt::view_rank_of(view) || anchor.missing > engine::kPageTokens;
  });
  if (serving.empty()) return anchor_for(document, view);
  // A request that the next key ended leaves tokens missing.
  const auto least = std::ranges::min_element(serving, {}, &Serving::missing);
  return least->missing <= kMissingMax ? Wanted{} : std::move(serving.front().wanted);
}

Idle::Wanted Idle::wanted_stage(DocumentState& document) {
  if (!document.asked || !document.windows.has_first() ||
      document.widening_cpu_s >= budgets_.widening_cpu_s_max)
    return {};
  const int there = poverty_at_cursor(document);
  // A model that reads the suffix first would evaluate every stage from its start.
  const bool in_stages = engine_.tokenizer().fim().order == engine::FimOrder::kPsm;
  for (const prompt::View view :
       {prompt::View::kShortAfter, prompt::View::kPartAfter, prompt::View::kFull}) {
    if (there <= prompt::view_rank_of(view) || (!in_stages && view != prompt::View::kFull))
      continue;
    Wanted wanted = anchor_for(document, view);
    if (wanted.kept == nullptr || !is_whole(engine_, *wanted.kept, wanted.tokens)) return wanted;
  }
  return {};
}

void Idle::take_head(DocumentState& document) {
  if (!document.coming || !document.asked || poverty_at_cursor(document) > 0) return;
  document.spine = std::move(*document.coming);
  document.coming.reset();
  // What was made with the older head elsewhere is less than a new one from this spine.
  documents_.drop_if(document, [](const KeptAnchor& kept) {
    return kept.anchor.lacks_head && kept.anchor.view == prompt::View::kFull;
  });
}

bool Idle::widen_cursor(const std::stop_token& stop, Clock::time_point deadline) {
  const std::vector<DocumentState*> open = documents_.open_by_use();
  if (open.empty()) return true;
  DocumentState& document = *open.front();
  for (int step = 0; step < kWideningStepsMax && Clock::now() < deadline; ++step) {
    const Wanted wanted = wanted_stage(document);
    if (wanted.kept == nullptr) break;
    const engine::SequenceId sequence = documents_.sequence_of(*wanted.kept);
    const std::clock_t begin = std::clock();
    const Done done = evaluate(sequence, wanted.tokens, stop, deadline);
    document.widening_cpu_s += static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (done == Done::kStopped) return !stop.stop_requested();
    // Other documents' places are evaluated again when they are used; their pages may even stay.
    if (done == Done::kNoRoom && !documents_.make_room(*wanted.kept, &document)) break;
    if (done == Done::kWhole) drop_stages(document);
  }
  take_head(document);
  return true;
}

void Idle::drop_stages(DocumentState& document) {
  const int there = poverty_at_cursor(document);
  const Request& asked = *document.asked;
  documents_.drop_if(document, [&](const KeptAnchor& kept) {
    const prompt::View view = kept.anchor.view;
    if (prompt::is_of_first_window(view) || prompt::view_rank(kept.anchor) <= there) return false;
    return prompt::continued(kept.anchor, *asked.snapshot, asked.cursor, engine_.tokenizer(),
                             document.windows)
        .has_value();
  });
}

bool Idle::complete_recalled(DocumentState& document, const std::stop_token& stop) {
  if (document.asked || !document.recalled_cursor || !document.snapshot) return true;
  for (KeptAnchor& kept : document.anchors) {
    const prompt::Anchor& anchor = kept.anchor;
    const auto plan =
        prompt::continued(anchor, *document.snapshot,
                          std::clamp(*document.recalled_cursor, anchor.cut, anchor.resume),
                          engine_.tokenizer(), document.windows);
    // More than a page means that its pages are gone: that is the next request's to say.
    if (!plan || tokens_missing(engine_, &kept, plan->tokens) > engine::kPageTokens) continue;
    if (evaluate(documents_.sequence_of(kept), plan->tokens, stop) == Done::kStopped) return false;
  }
  return true;
}

bool Idle::prepare_anchor(DocumentState& document, const std::stop_token& stop) {
  if (!complete_recalled(document, stop)) return false;
  Wanted wanted = wanted_anchor(document);
  if (wanted.kept == nullptr) return true;
  const Done done = evaluate(documents_.sequence_of(*wanted.kept), wanted.tokens, stop);
  if (done == Done::kWhole) take_head(document);
  return done != Done::kStopped;
}

bool Idle::prepare_anchors(std::span<DocumentState* const> documents, const std::stop_token& stop) {
  std::vector<PackedPrompt> prompts;
  std::vector<DocumentState*> of;
  for (DocumentState* document : documents) {
    if (!complete_recalled(*document, stop)) return false;
    Wanted wanted = wanted_anchor(*document);
    if (wanted.kept == nullptr) continue;
    prompts.push_back({documents_.sequence_of(*wanted.kept), std::move(wanted.tokens)});
    of.push_back(document);
  }
  const Packing packing{[this] { return step_tokens(); },
                        [this](int tokens, double ms) { learn(tokens, ms); }};
  const bool all = evaluate_packed(engine_, prompts, packing, stop);
  for (std::size_t i = 0; i < of.size(); ++i)
    if (prompts[i].state == PackedPrompt::State::kWhole) take_head(*of[i]);
  return all;
}

void Idle::learn(int tokens, double ms) {
  if (!budgets_.are_fixed) budgets_.costs.learn(tokens, ms);
}

bool Idle::renew_stale(DocumentState& document, const std::stop_token& stop) {
  if (!document.asked) return true;
  const text::Snapshot& snapshot = *document.asked->snapshot;
  const engine::Tokenizer& tokenizer = engine_.tokenizer();
  // Every edit makes every other place's wide anchor stale: these get the first window again.
  const prompt::View view = first_view(document);
  for (KeptAnchor& kept : document.anchors) {
    if (kept.anchor.state != prompt::Anchor::State::kStale) continue;
    std::size_t cursor = kept.anchor.cut;
    for (const prompt::CoveredToken& token : kept.anchor.increment) cursor += token.bytes;
    cursor = std::min(cursor, kept.anchor.resume);
    if (&kept != &document.anchors.front() && is_served(document, cursor, tokenizer)) {
      kept.anchor.state = prompt::Anchor::State::kLost;
      continue;
    }
    prompt::Plan plan = prompt::anchored(view, snapshot, cursor, document.newest_spine_of(view),
                                         tokenizer, document.windows);
    kept.anchor = std::move(plan.anchor);
    document.judge_head(kept.anchor);
    const engine::SequenceId sequence = documents_.sequence_of(kept);
    if (evaluate(sequence, plan.tokens, stop) == Done::kStopped) return false;
  }
  documents_.drop_if(document, [](const KeptAnchor& kept) {
    return kept.anchor.state == prompt::Anchor::State::kLost;
  });
  return true;
}

std::vector<engine::TokenId> Idle::spine_tokens(DocumentState& document) {
  const text::Snapshot& snapshot = *document.snapshot;
  const engine::Tokenizer& tokenizer = engine_.tokenizer();
  // The wide one where somebody works; a file that is only open is not worth so much.
  const bool wide = !document.windows.has_first() ||
                    (document.asked && document.widening_cpu_s < budgets_.widening_cpu_s_max) ||
                    (!document.asked && !document.spine.tokens().empty());
  const prompt::View view = wide ? prompt::View::kFull : prompt::View::kFirst;
  prompt::Spine& spine = document.newest_spine_of(view);
  const std::size_t cursor = document.asked ? document.asked->cursor : 0;
  // A window that was restored stands until a request says where the cursor is.
  if (document.asked || spine.tokens().empty())
    spine.follow(snapshot, prompt::choose_cut(snapshot.bytes(), cursor, tokenizer),
                 prompt::limits_of(view, document.windows));
  std::vector<engine::TokenId> tokens = prompt::spine_prompt(spine, tokenizer);
  const auto most = static_cast<std::size_t>(engine_.window_tokens());
  if (tokens.size() > most) tokens.resize(most);
  return tokens;
}

bool Idle::prepare_spine(DocumentState& document, const std::stop_token& stop,
                         Clock::time_point& later) {
  if (!document.snapshot) return true;
  const std::vector<engine::TokenId> tokens = spine_tokens(document);
  if (tokens.empty()) return true;
  const engine::SequenceId sequence = documents_.spine_sequence_of(document);
  const std::span<const engine::TokenId> held = engine_.held(sequence);
  if (held.size() == tokens.size() && std::ranges::equal(held, tokens)) return true;
  const auto missing = static_cast<int>(std::ssize(tokens)) - engine_.resident(tokens);
  // What was restored is completed; if its pages are gone, the file is to be used first.
  if (document.windows.has_first() && !document.asked && missing > 2 * engine::kPageTokens &&
      !document.spine.tokens().empty())
    return true;
  const auto settle = std::chrono::duration_cast<Clock::duration>(
      budgets_.settle * std::max(1.0, budgets_.costs.ms(missing) / 1000));
  if (Clock::now() < woken_ + settle) {
    later = std::min(later, woken_ + settle);
    return true;
  }
  const std::clock_t begin = std::clock();
  const Done done = evaluate(sequence, tokens, stop);
  if (document.windows.has_first())
    document.widening_cpu_s += static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return done != Done::kStopped;
}

Idle::Done Idle::evaluate(engine::SequenceId sequence, std::span<const engine::TokenId> tokens,
                          const std::stop_token& stop, Clock::time_point deadline) {
  Result<int> held = engine_.rewind(sequence, tokens);
  while (held && *held < static_cast<int>(tokens.size())) {
    if (stop.stop_requested() || Clock::now() >= deadline) return Done::kStopped;
    const int stopped = engine_.stopped_tokens(sequence);
    const int count =
        stopped > 0 ? stopped : std::min(step_tokens(), static_cast<int>(tokens.size()) - *held);
    const engine::BatchItem item{
        .sequence = sequence,
        .tokens = tokens.subspan(static_cast<std::size_t>(*held), static_cast<std::size_t>(count))};
    // What does not fit the KV memory stays for the request; what fails is told there, too.
    const Clock::time_point begin = Clock::now();
    const Result<void> done = engine_.step({&item, 1}, stop);
    if (!done) return done.error().fault == Fault::kWindowFull ? Done::kNoRoom : Done::kStopped;
    if (stopped == 0)
      learn(count, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    *held += count;
  }
  return held ? Done::kWhole : Done::kStopped;
}

int Idle::step_tokens() const {
  const auto quiet = Clock::now() - woken_;
  const prompt::StepCosts& costs = budgets_.costs;
  if (quiet >= kPause && costs.points.empty()) return engine_.step_tokens();
  double limit = std::max({kStepMs, costs.ms(1) * kFreeShare, kPartMs * engine_.step_parts()});
  // A keystroke is most likely soon after the last one, and the step that it interrupts may be lost.
  if (quiet >= kPause / 2)
    limit = std::max(limit, std::chrono::duration<double, std::milli>(quiet).count() * kStepShare);
  return std::min(costs.tokens_within(limit), engine_.step_tokens());
}

int Idle::free_tokens() const {
  const prompt::StepCosts& costs = budgets_.costs;
  return costs.tokens_within(costs.ms(1) * kFreeShare) - 1;
}

engine::BatchItem Idle::Piggyback::next() {
  if (!step_tokens_) {
    step_tokens_ = idle_.free_tokens();
    if (*step_tokens_ <= 0 ||
        prompt::view_rank(serving_.anchor) <= prompt::view_rank_of(first_view(document_)))
      return {};
    Wanted wanted = idle_.wanted_anchor(document_);
    if (wanted.kept != &serving_) prefilled_ = wanted.kept;
    tokens_ = std::move(wanted.tokens);
  }
  if (prefilled_ == nullptr) return {};
  const engine::SequenceId sequence = idle_.documents_.sequence_of(*prefilled_);
  if (idle_.engine_.stopped_tokens(sequence) > 0) return {};  // idle time goes on with that step
  const Result<int> held = idle_.engine_.rewind(sequence, tokens_);
  if (!held || *held + 1 >= static_cast<int>(tokens_.size())) return {};
  const auto from = static_cast<std::size_t>(*held);
  const auto count = std::min(tokens_.size() - from, static_cast<std::size_t>(*step_tokens_));
  return {.sequence = sequence, .tokens = std::span(tokens_).subspan(from, count)};
}

}  // namespace efimd::completion
