#include "daemon/completion/worker.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "daemon/completion/fit.h"
#include "daemon/completion/healing.h"
#include "daemon/completion/plans.h"
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
  return place_at(*request.snapshot, language, plan.cursor, plan.tail_end);
}

/// Tokens kept free behind the prompt, so that there is room to generate.
int reserved(const Options& options, int window_tokens) {
  return std::clamp(options.tokens_max, 0, window_tokens / 4);
}

}  // namespace

Worker::Worker(std::unique_ptr<engine::Engine> engine, Budgets budgets, std::size_t documents_max)
    : engine_(std::move(engine)),
      budgets_(std::move(budgets)),
      documents_(*engine_, documents_max) {
  // Where healing is the rule, the first keystroke does not wait for it.
  if (!engine_->fragment_trained()) byte_order_.emplace(engine_->tokenizer());
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
    Or<Item> item = complete(job, document, receipt);
    if (item) {
      document.last->shown = Shown{item->text, item->replace_begin};
      answer.outcome.item = std::move(*item);
    } else if (item.error().superseded) {
      answer.outcome.superseded = true;
    } else {
      document.last->shown.reset();
      answer.silence = item.error().silence.reason;
      receipt.reason = item.error().silence.message();
    }
  }
  receipt.total_ms = ms_between(request.arrived, Clock::now());
  return answer;
}

Worker::Or<Item> Worker::complete(const Job& job, DocumentState& document, Receipt& receipt) {
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

  Or<prompt::Candidate> planned = plan(request, cursor, document);
  if (!planned) return tl::unexpected(planned.error());
  ++(planned->remembered >= 0 ? document.hits : document.misses);
  const prompt::Plan& plan = planned->plan;
  KeptAnchor& kept = documents_.keep(document, plan, planned->remembered);
  if (auto held = hold(job, kept, plan, receipt); !held) return tl::unexpected(held.error());
  Or<Generated> generated = generate_text(job, kept, plan, receipt);
  if (!generated) return tl::unexpected(generated.error());
  Or<Item> item = shape(request, plan, *generated, receipt);
  if (item && document.rejections.turned_down(*request.snapshot, item->replace_begin, item->text))
    return tl::unexpected(Nothing{false, {silence::kRejected, {}}});
  return item;
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
  std::vector<prompt::Candidate> candidates =
      possible_plans({*request.snapshot, cursor, *engine_, windows, budgets_.costs}, document);
  return std::move(candidates[prompt::choose(candidates)]);
}

tl::unexpected<Worker::Nothing> Worker::failed(KeptAnchor& kept, const Error& error) {
  if (error.fault == Fault::kStopped) return tl::unexpected(Nothing{true, {}});
  documents_.drop_sequence(kept);
  return tl::unexpected(Nothing{false, {silence::kEngineFailed, ": " + error.message()}});
}

Worker::Or<void> Worker::hold(const Job& job, KeptAnchor& kept, const prompt::Plan& plan,
                              Receipt& receipt) {
  const Nothing no_room{false, {silence::kNoRoom, {}}};
  if (plan.tokens.size() > static_cast<std::size_t>(engine_->window_tokens()))
    return tl::unexpected(no_room);
  for (;;) {
    const auto cost =
        engine_->hold(documents_.sequence_of(kept), plan.tokens,
                      {.stop = job.stop.get_token(),
                       .logits_rows = 1 + typed_tokens(job.request.options, kept.anchor)});
    if (cost) {
      receipt.source = "engine";
      receipt.prompt_tokens = static_cast<int>(plan.tokens.size());
      receipt.reused_tokens = cost->reused;
      receipt.evaluated_tokens = cost->evaluated;
      return {};
    }
    if (cost.error().fault != Fault::kWindowFull) return failed(kept, cost.error());
    if (!documents_.make_room(kept)) return tl::unexpected(no_room);
  }
}

int Worker::typed_tokens(const Options& options, const prompt::Anchor& anchor) const {
  const bool wanted = options.healing == Healing::kAuto ? !engine_->fragment_trained()
                                                        : options.healing == Healing::kOn;
  return wanted ? typed_tail(anchor.increment, engine_->tokenizer()) : 0;
}

Worker::Or<Generated> Worker::generate_text(const Job& job, KeptAnchor& kept,
                                            const prompt::Plan& plan, Receipt& receipt) {
  const Request& request = job.request;
  StopRules rules(request.options.stop, stop_place(place_of(request, plan)));
  Options options = request.options;
  // The last token is not evaluated.
  const int room = engine_->window_tokens() - static_cast<int>(plan.tokens.size()) + 1;
  options.tokens_max = std::min(options.tokens_max, room);
  GenerationSetting setting{*engine_, *kept.sequence, job.stop.get_token()};
  setting.make_room = [&] { return documents_.make_room(kept); };
  if (const int typed = typed_tokens(options, kept.anchor); typed > 0) {
    if (!byte_order_) byte_order_.emplace(engine_->tokenizer());
    setting.typed.emplace(TypedEnd{*byte_order_, typed});
  }
  Result<Generated> generated = generate(setting, options, rules);
  if (!generated) return failed(kept, generated.error());
  receipt.generated_tokens = generated->new_tokens;
  receipt.healed_tokens = generated->healed;
  if (generated->first_token)
    receipt.first_token_ms = ms_between(request.arrived, *generated->first_token);
  // also when superseded, for the KV of these tokens is there.
  if (!generated->tokens.empty())
    prompt::offer(kept.anchor, generated->tokens, generated->healed);
  if (generated->end == End::kStopped) return tl::unexpected(Nothing{true, {}});
  return std::move(*generated);
}

Worker::Or<Item> Worker::shape(const Request& request, const prompt::Plan& plan,
                               const Generated& generated, Receipt& receipt) const {
  const auto nothing = [](std::string_view reason) {
    return tl::unexpected(Nothing{false, {reason, {}}});
  };
  if (generated.new_tokens == 0)
    return nothing(generated.first_token ? silence::kNothing : silence::kNoBudget);
  if (generated.blank_line) return nothing(silence::kNothingOnLine);
  const Place place = place_of(request, plan);
  const Confident sure = confident_part(generated.text, generated.chances, place,
                                        least_confidence(request.options));
  const bool unsure = sure.size == 0 && (generated.end == End::kUnsure || !generated.text.empty());
  receipt.confidence = generated.text.empty() ? generated.confidence : sure.confidence;
  if (unsure) return nothing(silence::kUnsure);
  Fitted fitted = fit(std::string_view(generated.text).substr(0, sure.size), place);
  if (fitted.text.empty()) return nothing(fitted.silence);
  return Item{std::move(fitted.text), plan.cursor, fitted.replace_end};
}

}  // namespace efimd::completion
