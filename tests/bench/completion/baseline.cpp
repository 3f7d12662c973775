#include "tests/bench/completion/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/completion/pace.h"
#include "daemon/models/chosen_model.h"
#include "engine/decode/sampler.h"
#include "tests/bench/completion/configured_model.h"
#include "tests/bench/completion/samples.h"

namespace efimd::bench {

using Clock = std::chrono::steady_clock;
using engine::TokenId;

namespace {

/// What the user set, else what the device's speed allows.
Result<int> prompt_tokens_for(engine::Engine& engine, const Baseline::Setup& setup) {
  const int window = engine.window_tokens();
  if (setup.prompt_tokens_max > 0) return std::min(setup.prompt_tokens_max, window);
  const auto costs = completion::measure_step_costs(engine, {});
  if (!costs) return tl::unexpected(costs.error());
  // A client without idle time waits for its window: it has what it would wait so long for.
  constexpr double kStep = 64;
  const double affordable = completion::prompt_tokens_per_s(*costs) * setup.cold_prompt_ms / 1000;
  const double most = std::min(affordable, static_cast<double>(window));
  return std::clamp(static_cast<int>(most / kStep) * static_cast<int>(kStep), std::min(256, window),
                    window);
}

}  // namespace

std::string treatment_name(Treatment treatment) {
  const bool efim = treatment.format == Treatment::Format::kEfim;
  const bool all = treatment.reuse == Treatment::Reuse::kAll;
  const bool prefix = treatment.reuse == Treatment::Reuse::kPrefix;
  return fmt::format("{}/{}", efim ? "efim" : "fim", all ? "all" : prefix ? "prefix" : "none");
}

Baseline::Baseline(std::unique_ptr<engine::Engine> engine, const Setup& setup,
                   int prompt_tokens_max)
    : engine_(std::move(engine)), setup_(setup), prompt_tokens_max_(prompt_tokens_max) {}

Result<std::unique_ptr<Baseline>> Baseline::make(std::unique_ptr<engine::Engine> engine,
                                                 const Setup& setup) {
  if (auto able = prompt::can_fill_in(engine->tokenizer()); !able)
    return tl::unexpected(able.error());
  const auto prompt_tokens_max = prompt_tokens_for(*engine, setup);
  if (!prompt_tokens_max) return tl::unexpected(prompt_tokens_max.error());
  return std::unique_ptr<Baseline>(new Baseline(std::move(engine), setup, *prompt_tokens_max));
}

Result<completion::Receipt> Baseline::ask(const completion::Request& request) {
  const double queue_ms = ms_since(request.arrived);
  Document& document = document_of(request.document);
  const prompt::Plan plan = plan_for(document, request);
  document.anchor = plan.anchor;
  document.asked = true;
  auto held = hold(document, plan.tokens);
  if (!held) return tl::unexpected(held.error());
  auto receipt = generate(document, request, plan);
  if (!receipt) return receipt;
  if (setup_.treatment.reuse == Treatment::Reuse::kNone) forget(document);
  receipt->source = "engine";
  receipt->queue_ms = queue_ms;
  receipt->prompt_tokens = static_cast<int>(plan.tokens.size());
  receipt->reused_tokens = held->reused;
  receipt->evaluated_tokens = held->evaluated;
  receipt->total_ms = ms_since(request.arrived);
  return receipt;
}

Baseline::Document& Baseline::document_of(const completion::DocumentKey& key) {
  auto found = documents_.find(key);
  if (found == documents_.end())
    found = documents_.try_emplace(key, engine_->tokenizer(), engine_->open_sequence()).first;
  found->second.used = ++uses_;
  return found->second;
}

/// The daemon's own shares, so that prompts are of the same size.
prompt::Windows Baseline::windows_for(int tokens_max) const {
  const int window = engine_->window_tokens();
  const int reserved = std::clamp(tokens_max, 0, window / 4);
  const int prompt_tokens = std::min(window - reserved, prompt_tokens_max_);
  return prompt::Windows::of(prompt_tokens, prompt_tokens);
}

prompt::Plan Baseline::plan_for(Document& document, const completion::Request& request) const {
  const engine::Tokenizer& tokenizer = engine_->tokenizer();
  const text::Snapshot& snapshot = *request.snapshot;
  const prompt::Windows windows = windows_for(request.options.tokens_max);
  if (setup_.treatment.format == Treatment::Format::kPlainFim)
    return prompt::plain(snapshot, request.cursor, document.spine, tokenizer, windows);
  if (document.asked) {
    prompt::follow(document.anchor, snapshot, tokenizer);
    if (auto kept =
            prompt::continued(document.anchor, snapshot, request.cursor, tokenizer, windows))
      return std::move(*kept);
  }
  return prompt::anchored(prompt::View::kFull, snapshot, request.cursor, document.spine, tokenizer,
                          windows);
}

Result<engine::PromptCost> Baseline::hold(Document& document, const std::vector<TokenId>& tokens) {
  for (;;) {
    auto cost = engine_->prefill(document.sequence, tokens, {});
    if (cost || cost.error().fault != Fault::kWindowFull || !make_room(document)) return cost;
  }
}

Result<completion::Receipt> Baseline::generate(Document& document,
                                               const completion::Request& request,
                                               const prompt::Plan& plan) {
  const engine::Tokenizer& tokenizer = engine_->tokenizer();
  // The last token is not evaluated.
  const int room = engine_->window_tokens() - static_cast<int>(plan.tokens.size()) + 1;
  const int tokens_max = std::min(request.options.tokens_max, room);
  engine::Sampler sampler({});
  completion::Receipt receipt;
  std::vector<prompt::CoveredToken> generated;
  for (TokenId token = engine::kNoToken; receipt.generated_tokens < tokens_max;) {
    if (receipt.generated_tokens > 0)
      if (auto done = append(document, token); !done) return tl::unexpected(done.error());
    token = sampler.choose(engine_->logits(document.sequence));
    if (receipt.generated_tokens == 0) receipt.first_token_ms = ms_since(request.arrived);
    const bool ends = tokenizer.ends_generation(token) || tokenizer.is_control(token);
    if (token == engine::kNoToken || (ends && !setup_.past_end)) break;
    generated.push_back({token, tokenizer.bytes(token).size(), true});
    ++receipt.generated_tokens;
  }
  if (!generated.empty()) prompt::offer(document.anchor, std::move(generated));
  return receipt;
}

Result<void> Baseline::append(Document& document, TokenId token) {
  for (;;) {
    auto done = engine_->append(document.sequence, token);
    if (done || done.error().fault != Fault::kWindowFull || !make_room(document)) return done;
  }
}

bool Baseline::make_room(const Document& but) {
  const auto oldest = std::ranges::min_element(documents_, {}, [&](const auto& entry) {
    return &entry.second == &but ? UINT64_MAX : entry.second.used;
  });
  if (&oldest->second == &but) return false;
  engine_->close_sequence(oldest->second.sequence);
  documents_.erase(oldest);
  return true;
}

void Baseline::forget(Document& document) {
  // Pages are dropped by whose text they hold. No store stands behind a baseline, so that any name
  // will do.
  constexpr engine::SourceId kMeasured{1};
  engine_->set_source(document.sequence, kMeasured);
  engine_->close_sequence(document.sequence);
  engine_->forget(kMeasured);
  document.sequence = engine_->open_sequence();
}

Result<OpenedBaseline> open_baseline(const service::Paths& paths, Baseline::Setup setup) {
  const service::Config config = service::config_in_force(paths);
  auto configured = configured_engine(config);
  if (!configured) return tl::unexpected(configured.error());
  const auto opened = std::make_shared<service::OpenedModel>();
  auto engine = service::make_engine_factory(std::move(*configured), opened)([](double) {}, {});
  if (!engine) return tl::unexpected(engine.error());
  std::string description =
      model_on_device(*opened, (*engine)->device_kind(), (*engine)->device_name());
  auto baseline = Baseline::make(std::move(*engine), setup);
  if (!baseline) return tl::unexpected(baseline.error());
  return OpenedBaseline{std::move(*baseline), std::move(description)};
}

}  // namespace efimd::bench
