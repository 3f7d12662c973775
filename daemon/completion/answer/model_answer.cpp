#include "daemon/completion/answer/model_answer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/completion/answer/partial.h"
#include "daemon/completion/answer/plans.h"
#include "daemon/completion/fit/selected.h"
#include "daemon/completion/fit/stop_rules.h"
#include "daemon/completion/generate/healing.h"
#include "daemon/completion/generate/token_probability.h"
#include "engine/decode/sampler.h"

namespace efimd::completion {

namespace {

/// Tokens of a suggestion that are checked in one step after the text around it changed.
constexpr std::size_t kDraftTokensMax = engine::Engine::kLogitsRowsMax - 1;
/// A prompt of which idle time must evaluate more than this is not likely to come next.
constexpr int kAheadTokensMax = 64;

bool is_greedy(const Options& options) { return options.temperature <= 0; }

void note_work(Turn& turn, const Generated& generated) {
  turn.receipt.steps = generated.work.steps;
  turn.receipt.drafted_tokens = generated.work.drafted;
  turn.receipt.accepted_tokens = generated.work.accepted;
  if (generated.first_token)
    turn.receipt.first_token_ms =
        std::chrono::duration<double, std::milli>(*generated.first_token - turn.request().arrived)
            .count();
}

/// Tokens of the generation that lie in its first `typed` bytes.
int tokens_typed(const Generated& generated, std::size_t typed) {
  return static_cast<int>(std::ranges::count_if(
      generated.chances, [&](const TokenChance& chance) { return chance.begin < typed; }));
}

/// A sample depends on how many tokens were drawn before it.
bool may_draft(const Turn& turn, const Draft& draft) {
  const Options& options = turn.request().options;
  return !draft.text.empty() && options.drafts && is_greedy(options);
}

}  // namespace

ModelAnswer::ModelAnswer(const Uses& uses)
    : engine_(uses.engine),
      documents_(uses.documents),
      budgets_(uses.budgets),
      idle_(uses.idle),
      index_(uses.index) {
  // If healing is the rule, the first keystroke must not wait for it.
  if (!engine_.fragment_trained()) byte_order_.emplace(engine_.tokenizer());
}

Or<std::vector<Generated>> ModelAnswer::ask(Turn& turn, const Draft& draft) {
  DocumentState& document = turn.document;
  Or<prompt::Candidate> planned = plan(turn);
  if (!planned) return tl::unexpected(planned.error());
  ++(planned->remembered >= 0 ? document.hits : document.misses);
  const prompt::Plan& plan = planned->plan;
  KeptAnchor& kept = documents_.keep(document, plan, planned->remembered);
  const Prompted prompted{kept, plan};
  const std::vector<engine::TokenId> tokens = drafted(turn, prompted, draft);
  Drafter drafter = drafter_for(turn);
  if (may_draft(turn, draft)) drafter.expect(draft.text, draft.chance, tokens.size());
  if (tokens.empty()) {
    if (auto held = prefill(turn, kept, plan.tokens); !held) return tl::unexpected(held.error());
    return generate_from(turn, prompted, {0, draft.candidates}, drafter);
  }
  const Or<int> held = prefill_draft(turn, prompted, tokens);
  if (!held) return tl::unexpected(held.error());
  Or<std::vector<Generated>> generated =
      generate_from(turn, prompted, {*held, draft.candidates}, drafter);
  if (generated) odds_.judged_with_prompt(draft.chance, tokens, generated->front().tokens);
  return generated;
}

Or<prompt::Candidate> ModelAnswer::plan(Turn& turn) {
  const engine::Tokenizer& tokenizer = engine_.tokenizer();
  if (const Result<void> able = prompt::can_fill_in(tokenizer); !able)
    return nothing(silence::kCannotFillIn, ": " + able.error().message());
  const PlanPlace place{turn.snapshot(), turn.cursor,           engine_,
                        documents_,      turn.document.windows, budgets_.costs};
  std::vector<prompt::Candidate> candidates = possible_plans(place, turn.document);
  const std::size_t taken = prompt::choose(candidates);
  ServiceStatus::PlanNote& note = turn.plan.emplace();
  for (std::size_t at = 0; at < candidates.size(); ++at)
    if (at != taken) note.considered.push_back(prompt::describe(candidates[at]));
  note.taken = prompt::describe(candidates[taken]);
  if (candidates[taken].plan.anchor.path.other_files > 0) note.head = turn.document.head_files;
  return std::move(candidates[taken]);
}

tl::unexpected<Nothing> ModelAnswer::failed(KeptAnchor& kept, const Error& error) {
  if (error.fault == Fault::kStopped) return superseded();
  documents_.drop_sequence(kept);
  return nothing(silence::kEngineFailed, ": " + error.message());
}

Or<void> ModelAnswer::prefill(Turn& turn, KeptAnchor& kept,
                              std::span<const engine::TokenId> tokens) {
  if (tokens.size() > static_cast<std::size_t>(engine_.window_tokens()))
    return nothing(silence::kNoRoom);
  for (;;) {
    const auto cost =
        engine_.prefill(documents_.sequence_of(kept), tokens,
                        {.stop = turn.job.stop.get_token(),
                         .logits_rows = 1 + typed_tokens(turn.request(), kept.anchor)});
    if (cost) {
      turn.receipt.source = source::kEngine.name;
      turn.receipt.prompt_tokens = static_cast<int>(tokens.size());
      turn.receipt.reused_tokens = cost->reused;
      turn.receipt.evaluated_tokens = cost->evaluated;
      turn.receipt.restored_tokens = cost->restored;
      turn.note_window(kept.anchor);
      return {};
    }
    if (cost.error().fault != Fault::kWindowFull) return failed(kept, cost.error());
    if (!documents_.make_room(kept)) return nothing(silence::kNoRoom);
  }
}

Or<int> ModelAnswer::prefill_draft(Turn& turn, const Prompted& prompted,
                                   std::span<const engine::TokenId> draft) {
  const auto& [kept, plan] = prompted;
  std::vector<engine::TokenId> tokens = plan.tokens;
  tokens.insert(tokens.end(), draft.begin(), draft.end());
  const auto count = static_cast<int>(draft.size());
  const int rows = 1 + typed_tokens(turn.request(), kept.anchor) + count;
  const auto cost = engine_.prefill(documents_.sequence_of(kept), tokens,
                                    {.stop = turn.job.stop.get_token(), .logits_rows = rows});
  if (!cost && cost.error().fault == Fault::kWindowFull) {  // then without the draft
    if (auto held = prefill(turn, kept, plan.tokens); !held) return tl::unexpected(held.error());
    return 0;
  }
  if (!cost) return failed(kept, cost.error());
  turn.receipt.source = source::kEngine.name;
  turn.receipt.prompt_tokens = static_cast<int>(plan.tokens.size());
  turn.receipt.evaluated_tokens = std::max(0, cost->evaluated - count);
  turn.receipt.reused_tokens = turn.receipt.prompt_tokens - turn.receipt.evaluated_tokens;
  turn.receipt.restored_tokens = std::min(cost->restored, turn.receipt.reused_tokens);
  turn.note_window(kept.anchor);
  return count;
}

std::vector<engine::TokenId> ModelAnswer::drafted(const Turn& turn, const Prompted& prompted,
                                                  const Draft& draft) const {
  if (!may_draft(turn, draft)) return {};
  const auto typed = static_cast<std::size_t>(typed_tokens(turn.request(), prompted.kept.anchor));
  const std::size_t room =
      static_cast<std::size_t>(engine_.window_tokens()) - prompted.plan.tokens.size();
  const std::size_t most = std::min(kDraftTokensMax - typed, room);
  const std::size_t count = odds_.worthwhile_with_prompt(budgets_.costs, draft.chance, 0, most);
  if (count == 0) return {};
  std::vector<engine::TokenId> tokens =
      engine_.tokenizer().encode(draft.text, engine::Fragment::kInside);
  if (tokens.size() > count) tokens.resize(count);
  return tokens;
}

Drafter ModelAnswer::drafter_for(const Turn& turn) {
  const Request& request = turn.request();
  const bool recalls =
      request.options.recall && request.options.drafts && !request.home.path.empty();
  return Drafter(
      {recalls ? index_ : nullptr, engine_.tokenizer(), budgets_.costs, odds_, !budgets_.are_fixed},
      turn);
}

int ModelAnswer::typed_tokens(const Request& request, const prompt::Anchor& anchor) const {
  const Healing healing = request.options.healing;
  const bool wanted =
      healing == Healing::kAuto ? !engine_.fragment_trained() : healing == Healing::kOn;
  return wanted || request.selected ? typed_tail(anchor.increment, engine_.tokenizer()) : 0;
}

Or<std::optional<TypedEnd>> ModelAnswer::typed_end(const Turn& turn, const Prompted& prompted) {
  const Request& request = turn.request();
  const prompt::Anchor& anchor = prompted.kept.anchor;
  const int typed = typed_tokens(request, anchor);
  if (typed == 0 && !request.selected) return std::nullopt;
  if (!byte_order_) byte_order_.emplace(engine_.tokenizer());
  TypedEnd end{*byte_order_, typed};
  if (!request.selected) return std::optional(std::move(end));
  std::size_t typed_bytes = 0;
  const std::span<const prompt::CoveredToken> increment = anchor.increment;
  for (const auto& token : increment.last(static_cast<std::size_t>(typed)))
    typed_bytes += token.bytes;
  const auto spelled =
      spelled_for(*request.selected, turn.snapshot(), prompted.plan.cursor, typed_bytes);
  if (!spelled) return nothing(silence::kSelectedElse);
  end.spells = *spelled;
  return std::optional(std::move(end));
}

Or<std::vector<Generated>> ModelAnswer::generate_from(Turn& turn, const Prompted& prompted,
                                                      const ToJudge& judge, Drafter& drafter) {
  const Request& request = turn.request();
  const auto& [kept, plan] = prompted;
  Options options = request.options;
  // The last token is not evaluated.
  const int room = engine_.window_tokens() - static_cast<int>(plan.tokens.size()) + 1;
  options.tokens_max = std::min(options.tokens_max, room);
  Or<std::optional<TypedEnd>> typed = typed_end(turn, prompted);
  if (!typed) return tl::unexpected(typed.error());
  GenerationSetting setting{engine_, *kept.sequence, turn.job.stop.get_token()};
  setting.heard = partial_teller(turn);
  setting.make_room = [this, &kept = kept] { return documents_.make_room(kept); };
  Idle::Piggyback piggyback(idle_, turn.document, kept);
  setting.piggyback = [&] { return piggyback.next(); };
  setting.drafted = judge.drafted;
  setting.candidates = judge.candidates;
  if (*typed) setting.typed.emplace(std::move(**typed));
  StopRules rules(options.stop, stop_place(turn.context()));
  const bool several = request.by_hand && options.stop != StopRule::kNone;
  if (!several && is_greedy(options)) setting.drafts = &drafter;
  Result<std::vector<Generated>> all =
      generate_several(setting, options, rules, several ? kCandidatesMax : 1);
  if (!all) return failed(kept, all.error());
  for (const Generated& each : *all) turn.receipt.generated_tokens += each.new_tokens;
  const Generated& first = all->front();
  note_work(turn, first);
  turn.judged = first.judged;
  turn.receipt.healed_tokens = first.healed;
  // also when superseded, because the KV of these tokens is there.
  if (!first.tokens.empty()) prompt::offer(kept.anchor, first.tokens, first.healed);
  if (!request.selected)
    remember(turn.document, {.snapshot = request.snapshot,
                             .begin = plan.cursor,
                             .replace_end = plan.cursor,
                             .lead = {},
                             .options = request.options,
                             .generated = first,
                             .prompt = plan.tokens,
                             .sequence = kept.sequence,
                             .view_rank = prompt::view_rank(kept.anchor)});
  if (first.end == End::kStopped) return superseded();
  return std::move(*all);
}

bool ModelAnswer::can_go_on(const Turn& turn, const Suggestion& suggestion) {
  const End end = suggestion.generated.end;
  const std::vector<KeptAnchor>& anchors = turn.document.anchors;
  if (end != End::kStopped && end != End::kTokens && end != End::kTime) return false;
  if (!is_greedy(turn.request().options) || !suggestion.lead.empty() ||
      suggestion.generated.tokens.empty() || anchors.empty())
    return false;
  const KeptAnchor& kept = anchors.front();
  return kept.sequence && kept.sequence == suggestion.sequence &&
         kept.anchor.state == prompt::Anchor::State::kGood;
}

Or<Generated> ModelAnswer::go_on(Turn& turn, Suggestion suggestion, std::size_t typed) {
  const Request& request = turn.request();
  KeptAnchor& kept = turn.document.anchors.front();
  const Generated& begun = suggestion.generated;
  std::vector<engine::TokenId> tokens(suggestion.prompt.begin(),
                                      suggestion.prompt.end() - begun.healed);
  for (const prompt::CoveredToken& token : begun.tokens) tokens.push_back(token.id);
  if (auto held = prefill(turn, kept, tokens); !held) return tl::unexpected(held.error());

  StopRules rules(request.options.stop,
                  stop_place(context_of(request, *suggestion.snapshot, suggestion.begin)));
  Options options = request.options;
  options.tokens_max += tokens_typed(begun, typed);
  GenerationSetting setting{engine_, *kept.sequence, turn.job.stop.get_token()};
  setting.make_room = [&] { return documents_.make_room(kept); };
  Idle::Piggyback piggyback(idle_, turn.document, kept);
  setting.piggyback = [&] { return piggyback.next(); };
  setting.begun = begun;
  setting.heard = partial_teller(turn, typed);
  Drafter drafter = drafter_for(turn);
  setting.drafts = &drafter;
  Result<Generated> generated = generate(setting, options, rules);
  if (!generated) return failed(kept, generated.error());
  turn.receipt.generated_tokens = generated->new_tokens - begun.new_tokens;
  note_work(turn, *generated);
  kept.anchor.offered = generated->tokens;
  suggestion.generated = *generated;
  remember(turn.document, std::move(suggestion));
  if (generated->end == End::kStopped) return superseded();
  return std::move(*generated);
}

bool ModelAnswer::sees_more_than(const Suggestion& suggestion, const Turn& turn) const {
  if (suggestion.view_rank == 0) return false;
  return std::ranges::any_of(turn.document.anchors, [&](const KeptAnchor& kept) {
    if (prompt::view_rank(kept.anchor) >= suggestion.view_rank) return false;
    const auto plan = prompt::continued(kept.anchor, turn.snapshot(), turn.cursor,
                                        engine_.tokenizer(), turn.document.windows);
    return plan && prompt::view_rank(plan->anchor) < suggestion.view_rank &&
           tokens_missing(engine_, &kept, plan->tokens) <= 1;
  });
}

void ModelAnswer::look_ahead(const std::stop_token& stop) {
  const std::vector<DocumentState*> open = documents_.open_by_use();
  if (open.empty() || stop.stop_requested()) return;
  DocumentState& document = *open.front();
  if (!document.asked || !document.shown || document.anchors.empty()) return;
  const Request& asked = *document.asked;
  const Item item = *document.shown;
  if (!is_greedy(asked.options)) return;
  if (std::ranges::any_of(document.suggestions, [&](const Suggestion& known) {
        return known.lead == item.text && known.begin == item.replace_begin;
      }))
    return;
  const auto text =
      text::with_replaced(asked.snapshot, item.replace_begin, item.replace_end, item.text);
  if (!text) return;
  const engine::Tokenizer& tokenizer = engine_.tokenizer();
  KeptAnchor& kept = document.anchors.front();
  prompt::Anchor anchor = kept.anchor;
  prompt::follow(anchor, **text, tokenizer);
  const std::size_t cursor = item.replace_begin + item.text.size();
  auto plan = prompt::continued(anchor, **text, cursor, tokenizer, document.windows);
  if (!plan || tokens_missing(engine_, &kept, plan->tokens) > kAheadTokensMax ||
      plan->tokens.size() + static_cast<std::size_t>(asked.options.tokens_max) >
          static_cast<std::size_t>(engine_.window_tokens()))
    return;
  const int typed = typed_tokens(asked, plan->anchor);
  const auto held = engine_.prefill(documents_.sequence_of(kept), plan->tokens,
                                    {.stop = stop, .logits_rows = 1 + typed, .ahead = true});
  if (!held) return;
  StopRules rules(asked.options.stop, stop_place(context_of(asked, **text, cursor)));
  GenerationSetting setting{engine_, *kept.sequence, stop};
  if (typed > 0 && byte_order_) setting.typed.emplace(TypedEnd{*byte_order_, typed});
  const Result<Generated> generated = generate(setting, asked.options, rules);
  if (!generated || generated->end == End::kStopped) return;
  remember(document, {.snapshot = asked.snapshot,
                      .begin = item.replace_begin,
                      .replace_end = item.replace_end,
                      .lead = item.text,
                      .options = asked.options,
                      .generated = *generated,
                      .prompt = std::move(plan->tokens),
                      .sequence = kept.sequence,
                      .view_rank = prompt::view_rank(plan->anchor)});
}

}  // namespace efimd::completion
