#include "daemon/completion/answer/idle.h"

#include <algorithm>
#include <utility>

#include "daemon/completion/answer/plans.h"
#include "daemon/prompt/places.h"

namespace efimd::completion {

namespace {

/// A step may grow by this much for tokens that ride along.
constexpr double kFreeRide = 1.1;
/// Full pages of a prompt that miss no more than this count as there: the rest is evaluated with the
/// request.
constexpr int kMissingMax = 1;
/// Documents besides the last one that are kept ready.
constexpr std::size_t kOtherDocumentsMax = 8;

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
  for (DocumentState* document : open)
    if (!prepare_anchor(*document, stop) || !renew_stale(*document, stop) ||
        !prepare_spine(*document, stop))
      return false;
  return true;
}

Idle::Wanted Idle::wanted_anchor(DocumentState& document) {
  if (!document.asked) return {};
  const Request& asked = *document.asked;
  const text::Snapshot& snapshot = *asked.snapshot;
  const engine::Tokenizer& tokenizer = engine_.tokenizer();
  for (KeptAnchor& kept : document.anchors) {
    auto plan = prompt::continued(kept.anchor, snapshot, asked.cursor, tokenizer, document.windows);
    if (!plan || prompt::poverty(plan->anchor) > 0) continue;
    if (is_whole(engine_, kept, plan->tokens)) return {};
    return {&kept, std::move(plan->tokens)};
  }
  prompt::Plan plan = prompt::anchored(prompt::View::kFull, snapshot, asked.cursor, document.spine,
                                       tokenizer, document.windows);
  if (plan.tokens.size() > static_cast<std::size_t>(engine_.window_tokens())) return {};
  return {&documents_.add_behind(document, plan), std::move(plan.tokens)};
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
    if (!evaluate(documents_.sequence_of(kept), plan->tokens, stop)) return false;
  }
  return true;
}

bool Idle::prepare_anchor(DocumentState& document, const std::stop_token& stop) {
  if (!complete_recalled(document, stop)) return false;
  Wanted wanted = wanted_anchor(document);
  if (wanted.kept == nullptr) return true;
  const engine::SequenceId sequence = documents_.sequence_of(*wanted.kept);
  return evaluate(sequence, wanted.tokens, stop);
}

bool Idle::renew_stale(DocumentState& document, const std::stop_token& stop) {
  if (!document.asked) return true;
  const text::Snapshot& snapshot = *document.asked->snapshot;
  for (KeptAnchor& kept : document.anchors) {
    if (kept.anchor.state != prompt::Anchor::State::kStale) continue;
    std::size_t cursor = kept.anchor.cut;
    for (const prompt::CoveredToken& token : kept.anchor.increment) cursor += token.bytes;
    cursor = std::min(cursor, kept.anchor.resume);
    prompt::Plan plan = prompt::anchored(prompt::View::kFull, snapshot, cursor, document.spine,
                                         engine_.tokenizer(), document.windows);
    kept.anchor = std::move(plan.anchor);
    const engine::SequenceId sequence = documents_.sequence_of(kept);
    if (!evaluate(sequence, plan.tokens, stop)) return false;
  }
  return true;
}

bool Idle::prepare_spine(DocumentState& document, const std::stop_token& stop) {
  if (!document.snapshot) return true;
  const text::Snapshot& snapshot = *document.snapshot;
  const std::size_t cursor = document.asked ? document.asked->cursor : 0;
  const engine::Tokenizer& tokenizer = engine_.tokenizer();
  // A window that was restored stands until a request says where the cursor is.
  if (document.asked || document.spine.tokens().empty())
    document.spine.follow(snapshot, prompt::choose_cut(snapshot.bytes(), cursor, tokenizer),
                          document.windows.before_max);
  std::vector<engine::TokenId> tokens = prompt::spine_prompt(document.spine, tokenizer);
  const auto most = static_cast<std::size_t>(engine_.window_tokens());
  if (tokens.size() > most) tokens.resize(most);
  if (tokens.empty()) return true;
  const engine::SequenceId sequence = documents_.spine_sequence_of(document);
  const std::span<const engine::TokenId> held = engine_.held(sequence);
  if (held.size() == tokens.size() && std::ranges::equal(held, tokens)) return true;
  return evaluate(sequence, tokens, stop);
}

bool Idle::evaluate(engine::SequenceId sequence, std::span<const engine::TokenId> tokens,
                    const std::stop_token& stop) {
  Result<int> held = engine_.rewind(sequence, tokens);
  while (held && *held < static_cast<int>(tokens.size())) {
    if (stop.stop_requested()) return false;
    const int count = std::min(step_tokens(), static_cast<int>(tokens.size()) - *held);
    const engine::BatchItem item{
        .sequence = sequence,
        .tokens = tokens.subspan(static_cast<std::size_t>(*held), static_cast<std::size_t>(count))};
    // What does not fit the KV memory stays for the request; what fails is told there, too.
    const Clock::time_point begin = Clock::now();
    const Result<void> done = engine_.step({&item, 1}, stop);
    if (!done) return done.error().fault == Fault::kWindowFull;
    if (!budgets_.are_fixed())
      budgets_.costs.learn(count,
                           std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    *held += count;
  }
  return held.has_value();
}

int Idle::step_tokens() const {
  if (Clock::now() >= woken_ + kPause) return engine_.step_tokens();
  const prompt::StepCosts& costs = budgets_.costs;
  const double limit = std::max(kStepMs, costs.ms(1) * kFreeRide);
  return std::min(costs.tokens_within(limit), engine_.step_tokens());
}

int Idle::free_ride_tokens() const {
  const prompt::StepCosts& costs = budgets_.costs;
  return costs.tokens_within(costs.ms(1) * kFreeRide) - 1;
}

engine::BatchItem Idle::Ride::next() {
  if (!step_tokens_) {
    step_tokens_ = idle_.free_ride_tokens();
    if (*step_tokens_ <= 0 || prompt::poverty(serving_.anchor) == 0) return {};
    Wanted wanted = idle_.wanted_anchor(document_);
    if (wanted.kept != &serving_) riding_ = wanted.kept;
    tokens_ = std::move(wanted.tokens);
  }
  if (riding_ == nullptr) return {};
  const engine::SequenceId sequence = idle_.documents_.sequence_of(*riding_);
  const Result<int> held = idle_.engine_.rewind(sequence, tokens_);
  if (!held || *held + 1 >= static_cast<int>(tokens_.size())) return {};
  const auto from = static_cast<std::size_t>(*held);
  const auto count = std::min(tokens_.size() - from, static_cast<std::size_t>(*step_tokens_));
  return {.sequence = sequence, .tokens = std::span(tokens_).subspan(from, count)};
}

}  // namespace efimd::completion
