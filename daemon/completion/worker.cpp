#include "daemon/completion/worker.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "daemon/completion/compared.h"
#include "daemon/completion/fit.h"
#include "daemon/completion/healing.h"
#include "daemon/completion/plans.h"
#include "daemon/completion/selected.h"
#include "daemon/completion/stop_rules.h"

namespace efimd::completion {

namespace {

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

/// Where `plan` puts the request's completion.
Place place_of(const Request& request, const prompt::Plan& plan) {
  const Language& language = language_of(request.language_id, request.document.uri);
  Place place = place_at(*request.snapshot, language, plan.cursor, plan.tail_end);
  if (request.selected) go_on_from(place, *request.selected);
  return place;
}

/// Tokens kept free behind the prompt, so that there is room to generate.
int reserved(const Options& options, int window_tokens) {
  return std::clamp(options.tokens_max, 0, window_tokens / 4);
}

}  // namespace

Worker::Worker(std::unique_ptr<engine::Engine> engine, Budgets budgets, std::size_t documents_max,
               std::shared_ptr<PageKeeper> keeper, Treatment treatment)
    : engine_(std::move(engine)),
      budgets_(std::move(budgets)),
      documents_(*engine_, documents_max),
      memory_(*engine_, documents_, std::move(keeper)),
      treatment_(treatment) {
  // Where healing is the rule, the first keystroke does not wait for it.
  if (!engine_->fragment_trained()) byte_order_.emplace(engine_->tokenizer());
}

void Worker::close(const DocumentKey& document) {
  documents_.close(document);
  memory_.close(document);
}

Answer Worker::serve(const Job& job) {
  const Request& request = job.request;
  Answer answer;
  Receipt& receipt = answer.outcome.receipt;
  receipt.queue_ms = ms_between(request.arrived, Clock::now());
  if (job.stop.stop_requested()) {
    answer.outcome.superseded = true;
  } else {
    DocumentState& document = documents_.use(request.document);
    document.source = memory_.source_of(request.document, request.may_be_stored);
    Or<std::vector<Item>> items = complete(job, document, receipt);
    if (treatment_.reuse == Treatment::Reuse::kNone) forget_kv(document, documents_, *engine_);
    if (items) {
      document.last->shown = Shown{items->front().text, items->front().replace_begin};
      answer.outcome.item = std::move(items->front());
      answer.outcome.more.assign(items->begin() + 1, items->end());
    } else if (items.error().superseded) {
      answer.outcome.superseded = true;
    } else {
      document.last->shown.reset();
      answer.silence = items.error().silence.reason;
      receipt.reason = items.error().silence.message();
    }
  }
  receipt.total_ms = ms_between(request.arrived, Clock::now());
  return answer;
}

Worker::Or<std::vector<Item>> Worker::complete(const Job& job, DocumentState& document, Receipt& receipt) {
  const Request& request = job.request;
  const std::size_t cursor = utf8::floor(request.snapshot->bytes(), request.cursor);
  receipt.event = classify(document.last ? &*document.last : nullptr,
                           documents_.is_current(request.document), *request.snapshot, cursor);
  documents_.set_current(request.document);
  documents_.follow(document, *request.snapshot);
  if (!document.last) document.last.emplace();
  forget_moved(*document.last, *request.snapshot);
  document.rejections.judge(*document.last, *request.snapshot, cursor);
  document.last->serial = request.snapshot->serial();
  document.last->cursor = cursor;

  if (request.selected && !can_go_on_from(*request.selected, *request.snapshot, cursor))
    return tl::unexpected(Nothing{false, {silence::kSelectedElse, {}}});
  Or<prompt::Candidate> planned = plan(request, cursor, document);
  if (!planned) return tl::unexpected(planned.error());
  ++(planned->remembered >= 0 ? document.hits : document.misses);
  const prompt::Plan& plan = planned->plan;
  KeptAnchor& kept = documents_.keep(document, plan, planned->remembered);
  if (auto held = hold(job, document.source, kept, plan, receipt); !held)
    return tl::unexpected(held.error());
  Or<std::vector<Generated>> generated = generate_text(job, kept, plan, receipt);
  if (!generated) return tl::unexpected(generated.error());
  return shape_all(request, document, plan, *generated, receipt);
}

Worker::Or<prompt::Candidate> Worker::plan(const Request& request, std::size_t cursor,
                                           DocumentState& document) const {
  const engine::Tokenizer& tokenizer = engine_->tokenizer();
  if (const Result<void> able = prompt::can_fill_in(tokenizer); !able)
    return tl::unexpected(Nothing{false, {silence::kCannotFillIn, ": " + able.error().message()}});
  const int window = engine_->window_tokens();
  const int budget =
      std::min(window - reserved(request.options, window), budgets_.prompt_tokens_max);
  const auto windows = prompt::Windows::of(budget, budgets_.near_tokens_max);
  const PlanPlace place{*request.snapshot, cursor, *engine_, windows, budgets_.costs};
  if (!treatment_.is_usual()) return compared_plan(place, document, treatment_.format);
  std::vector<prompt::Candidate> candidates = possible_plans(place, document);
  return std::move(candidates[prompt::choose(candidates)]);
}

tl::unexpected<Worker::Nothing> Worker::failed(KeptAnchor& kept, const Error& error) {
  if (error.fault == Fault::kStopped) return tl::unexpected(Nothing{true, {}});
  documents_.drop_sequence(kept);
  return tl::unexpected(Nothing{false, {silence::kEngineFailed, ": " + error.message()}});
}

Worker::Or<void> Worker::hold(const Job& job, engine::SourceId source, KeptAnchor& kept,
                              const prompt::Plan& plan, Receipt& receipt) {
  const Nothing no_room{false, {silence::kNoRoom, {}}};
  if (plan.tokens.size() > static_cast<std::size_t>(engine_->window_tokens()))
    return tl::unexpected(no_room);
  for (;;) {
    const engine::SequenceId sequence = documents_.sequence_of(kept);
    engine_->set_source(sequence, source);
    const auto cost =
        engine_->hold(sequence, plan.tokens,
                      {.stop = job.stop.get_token(),
                       .logits_rows = 1 + typed_tokens(job.request, kept.anchor)});
    if (cost) {
      receipt.source = "engine";
      receipt.prompt_tokens = static_cast<int>(plan.tokens.size());
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
  if (!treatment_.is_usual()) return 0;
  const Healing healing = request.options.healing;
  const bool wanted =
      healing == Healing::kAuto ? !engine_->fragment_trained() : healing == Healing::kOn;
  return wanted || request.selected ? typed_tail(anchor.increment, engine_->tokenizer()) : 0;
}

Worker::Or<std::vector<Generated>> Worker::generate_text(const Job& job, KeptAnchor& kept,
                                            const prompt::Plan& plan, Receipt& receipt) {
  const Request& request = job.request;
  StopRules rules(request.options.stop, stop_place(place_of(request, plan)));
  Options options = request.options;
  // The last token is not evaluated.
  const int room = engine_->window_tokens() - static_cast<int>(plan.tokens.size()) + 1;
  options.tokens_max = std::min(options.tokens_max, room);
  GenerationSetting setting{*engine_, *kept.sequence, job.stop.get_token()};
  setting.make_room = [&] { return documents_.make_room(kept); };
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
  if (first.end == End::kStopped) return tl::unexpected(Nothing{true, {}});
  return std::move(*all);
}

Worker::Or<std::vector<Item>> Worker::shape_all(const Request& request,
                                                const DocumentState& document,
                                                const prompt::Plan& plan,
                                                const std::vector<Generated>& generated,
                                                Receipt& receipt) const {
  std::vector<Item> items;
  std::optional<Nothing> why;
  for (const Generated& each : generated) {
    std::optional<double> confidence;
    Or<Item> item = shape(request, plan, each, confidence);
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

Worker::Or<Item> Worker::shape(const Request& request, const prompt::Plan& plan,
                               const Generated& generated,
                               std::optional<double>& confidence) const {
  const auto nothing = [](std::string_view reason) {
    return tl::unexpected(Nothing{false, {reason, {}}});
  };
  if (generated.new_tokens == 0)
    return nothing(generated.first_token ? silence::kNothing : silence::kNoBudget);
  if (generated.blank_line) return nothing(silence::kNothingOnLine);
  const Place place = place_of(request, plan);
  const Confident sure =
      confident_part(generated.text, generated.chances, place, least_confidence(request.options));
  const bool unsure = sure.size == 0 && (generated.end == End::kUnsure || !generated.text.empty());
  confidence = generated.text.empty() ? generated.confidence : sure.confidence;
  if (unsure) return nothing(silence::kUnsure);
  Fitted fitted = fit(std::string_view(generated.text).substr(0, sure.size), place);
  if (fitted.text.empty()) return nothing(fitted.silence);
  if (!request.selected) return Item{std::move(fitted.text), plan.cursor, fitted.replace_end};
  return Item{request.selected->text + fitted.text, request.selected->begin, fitted.replace_end};
}

}  // namespace efimd::completion
