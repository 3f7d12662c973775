// The part of Worker that never does the same work twice: what was generated before answers what is
// typed of it, goes on where it was stopped, and is prepared for what is likely to be accepted.
#include <algorithm>
#include <utility>

#include "daemon/completion/answer/plans.h"
#include "daemon/completion/answer/worker.h"
#include "daemon/completion/fit/stop_rules.h"
#include "daemon/completion/generate/confidence.h"
#include "engine/decode/sampler.h"

namespace efimd::completion {

namespace {

/// Tokens of a suggestion that are checked in one step when the text around it changed.
constexpr std::size_t kDraftTokensMax = engine::Engine::kLogitsRowsMax - 1;
/// A prompt that idle time would have to evaluate more of than this is no likely next one.
constexpr int kAheadTokensMax = 64;

bool is_greedy(const Options& options) { return options.temperature <= 0; }

/// Tokens of the generation that lie in its first `typed` bytes.
int tokens_typed(const Generated& generated, std::size_t typed) {
  return static_cast<int>(std::ranges::count_if(
      generated.chances, [&](const TokenChance& chance) { return chance.begin < typed; }));
}

}  // namespace

Worker::Known Worker::known_suggestion(const Request& request, std::size_t cursor,
                                       DocumentState& document) const {
  Known known;
  std::vector<Suggestion>& suggestions = document.suggestions;
  // One that the text disagrees with may still be right for another place, or after an undo; they
  // are few, and the oldest goes.
  for (Suggestion& suggestion : suggestions) {
    if (suggestion.options != request.options) continue;
    const auto typed = typed_of(suggestion, *request.snapshot, cursor);
    if (!typed || (known.suggestion != nullptr && *typed >= known.typed)) continue;
    known = {&suggestion, *typed};
  }
  return known;
}

bool Worker::fuller_is_whole(const DocumentState& document, const Suggestion& suggestion,
                             const text::Snapshot& snapshot, std::size_t cursor) const {
  return suggestion.poverty > 0 &&
         std::ranges::any_of(document.anchors, [&](const KeptAnchor& kept) {
           if (prompt::poverty(kept.anchor) >= suggestion.poverty) return false;
           const auto plan = prompt::continued(kept.anchor, snapshot, cursor, engine_->tokenizer(),
                                               document.windows);
           return plan && prompt::poverty(plan->anchor) < suggestion.poverty &&
                  tokens_missing(*engine_, &kept, plan->tokens) <= 1;
         });
}

Worker::Or<std::vector<Item>> Worker::answer_from(const Known& known, const Request& request,
                                                  std::size_t cursor, DocumentState& document,
                                                  Receipt& receipt) {
  Suggestion& suggestion = *known.suggestion;
  const Place place = place_of(request, *request.snapshot, cursor);
  auto items =
      shape_all(request, document, place, {rest_of(suggestion.generated, known.typed)}, receipt);
  if (!items) return items;
  const bool unchanged = request.snapshot->serial() == suggestion.snapshot->serial();
  const bool ahead = !suggestion.lead.empty() && known.typed == 0;
  receipt.source = ahead ? "prefetched" : unchanged ? "remembered" : "typed-through";
  ++document.hits;
  // what was accepted is a part of the anchor now, and this is what it offers.
  if (ahead && !document.anchors.empty() &&
      document.anchors.front().sequence == suggestion.sequence) {
    KeptAnchor& kept = document.anchors.front();
    if (auto plan = prompt::continued(kept.anchor, *request.snapshot, cursor, engine_->tokenizer(),
                                      document.windows)) {
      kept.anchor = std::move(plan->anchor);
      prompt::offer(kept.anchor, suggestion.generated.tokens, suggestion.generated.healed);
    }
  }
  return items;
}

bool Worker::can_go_on(const Known& known, const Request& request,
                       const DocumentState& document) const {
  const Suggestion& suggestion = *known.suggestion;
  const End end = suggestion.generated.end;
  if (end != End::kStopped && end != End::kTokens && end != End::kTime) return false;
  if (!is_greedy(request.options) || !suggestion.lead.empty() ||
      suggestion.generated.tokens.empty() || document.anchors.empty())
    return false;
  const KeptAnchor& kept = document.anchors.front();
  return kept.sequence && kept.sequence == suggestion.sequence &&
         kept.anchor.state == prompt::Anchor::State::kGood;
}

Worker::Or<std::vector<Item>> Worker::go_on(const Job& job, const Known& known, std::size_t cursor,
                                            DocumentState& document, Receipt& receipt) {
  const Request& request = job.request;
  Suggestion suggestion = *known.suggestion;
  KeptAnchor& kept = document.anchors.front();
  const Generated& begun = suggestion.generated;
  std::vector<engine::TokenId> tokens(suggestion.prompt.begin(),
                                      suggestion.prompt.end() - begun.healed);
  for (const prompt::CoveredToken& token : begun.tokens) tokens.push_back(token.id);
  if (auto held = hold(job, kept, tokens, receipt); !held) return tl::unexpected(held.error());

  StopRules rules(request.options.stop,
                  stop_place(place_of(request, *suggestion.snapshot, suggestion.begin)));
  Options options = request.options;
  options.tokens_max += tokens_typed(begun, known.typed);
  GenerationSetting setting{*engine_, *kept.sequence, job.stop.get_token()};
  setting.make_room = [&] { return documents_.make_room(kept); };
  Idle::Ride ride(idle_, document, kept);
  setting.passenger = [&] { return ride.next(); };
  setting.begun = begun;
  Result<Generated> generated = generate(setting, options, rules);
  if (!generated) return failed(kept, generated.error());
  receipt.generated_tokens = generated->new_tokens - begun.new_tokens;
  if (generated->first_token)
    receipt.first_token_ms =
        std::chrono::duration<double, std::milli>(*generated->first_token - request.arrived)
            .count();
  kept.anchor.offered = generated->tokens;
  suggestion.generated = *generated;
  remember(document, std::move(suggestion));
  if (generated->end == End::kStopped) return tl::unexpected(Nothing{true, {}});
  return shape_all(request, document, place_of(request, *request.snapshot, cursor),
                   {rest_of(*generated, known.typed)}, receipt);
}

Worker::Or<Generated> Worker::hold_draft(const Job& job, KeptAnchor& kept, const prompt::Plan& plan,
                                         std::string_view draft, Receipt& receipt) {
  const engine::Tokenizer& tokenizer = engine_->tokenizer();
  std::vector<engine::TokenId> drafted = tokenizer.encode(draft, engine::Fragment::kInside);
  const auto room = static_cast<std::size_t>(engine_->window_tokens()) - plan.tokens.size();
  drafted.resize(std::min({drafted.size(), kDraftTokensMax, room}));
  std::vector<engine::TokenId> tokens = plan.tokens;
  tokens.insert(tokens.end(), drafted.begin(), drafted.end());
  const auto count = static_cast<int>(drafted.size());
  const auto cost = engine_->hold(documents_.sequence_of(kept), tokens,
                                  {.stop = job.stop.get_token(), .logits_rows = count + 1});
  Generated begun;
  if (!cost && cost.error().fault == Fault::kWindowFull) {  // then without it
    if (auto held = hold(job, kept, plan.tokens, receipt); !held)
      return tl::unexpected(held.error());
    return begun;
  }
  if (!cost) return failed(kept, cost.error());
  receipt.source = "engine";
  receipt.prompt_tokens = static_cast<int>(plan.tokens.size());
  receipt.evaluated_tokens = std::max(0, cost->evaluated - count);
  receipt.reused_tokens = receipt.prompt_tokens - receipt.evaluated_tokens;

  engine::Sampler sampler({job.request.options.temperature, job.request.options.top_p,
                           job.request.options.top_k, job.request.options.seed});
  for (int at = 0; at < count; ++at) {
    const std::span<const float> logits = engine_->logits(*kept.sequence, count - at);
    const engine::TokenId token = drafted[static_cast<std::size_t>(at)];
    if (sampler.choose(logits) != token) break;
    begun.chances.push_back({probability_of(token, logits), begun.all_text.size()});
    begun.confidence *= begun.chances.back().probability;
    begun.tokens.push_back({token, tokenizer.bytes(token).size(), true});
    begun.all_text += tokenizer.bytes(token);
    ++begun.new_tokens;
  }
  tokens.resize(plan.tokens.size() + begun.tokens.size());
  if (auto back = engine_->adopt(*kept.sequence, tokens); !back) return failed(kept, back.error());
  return begun;
}

void Worker::remember(DocumentState& document, Suggestion suggestion) const {
  std::vector<Suggestion>& suggestions = document.suggestions;
  const auto same_place = [&](const Suggestion& other) {
    return other.begin == suggestion.begin && other.lead == suggestion.lead &&
           other.snapshot->serial() == suggestion.snapshot->serial();
  };
  std::erase_if(suggestions, same_place);
  suggestions.insert(suggestions.begin(), std::move(suggestion));
  if (suggestions.size() > kSuggestionsMax) suggestions.pop_back();
}

void Worker::look_ahead(const std::stop_token& stop) {
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
  const engine::Tokenizer& tokenizer = engine_->tokenizer();
  KeptAnchor& kept = document.anchors.front();
  prompt::Anchor anchor = kept.anchor;
  prompt::follow(anchor, **text, tokenizer);
  const std::size_t cursor = item.replace_begin + item.text.size();
  auto plan = prompt::continued(anchor, **text, cursor, tokenizer, document.windows);
  if (!plan || tokens_missing(*engine_, &kept, plan->tokens) > kAheadTokensMax ||
      plan->tokens.size() + static_cast<std::size_t>(asked.options.tokens_max) >
          static_cast<std::size_t>(engine_->window_tokens()))
    return;
  const int typed = typed_tokens(asked, plan->anchor);
  const auto held = engine_->hold(documents_.sequence_of(kept), plan->tokens,
                                  {.stop = stop, .logits_rows = 1 + typed});
  if (!held) return;
  StopRules rules(asked.options.stop, stop_place(place_of(asked, **text, cursor)));
  GenerationSetting setting{*engine_, *kept.sequence, stop};
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
                      .poverty = prompt::poverty(plan->anchor)});
}

}  // namespace efimd::completion
