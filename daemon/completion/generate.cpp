#include "daemon/completion/generate.h"

#include <algorithm>
#include <limits>
#include <span>

#include "daemon/completion/healing.h"
#include "engine/decode/sampler.h"

namespace efimd::completion {

namespace {

using engine::TokenId;

/// Tokens in which a healed end is spelled again; a model that wants more of them has no better way
/// to spell it than the draft.
constexpr std::size_t kSpellingTokensMax = 2 * kHealedTokensMax;

bool is_text(TokenId token, const engine::Tokenizer& tokenizer) {
  return token >= 0 && token < tokenizer.size() && !tokenizer.ends_generation(token) &&
         !tokenizer.is_control(token);
}

/// Unused, unknown and padding tokens: they spell nothing and end nothing.
bool means_nothing(TokenId token, const engine::Tokenizer& tokenizer) {
  return tokenizer.is_control(token) && !tokenizer.ends_generation(token);
}

/// The sampler's choice among tokens that mean something. That the first choice does not is so rare with a trained
/// model that nothing is done about it beforehand.
TokenId choose(engine::Sampler& sampler, std::span<const float> logits,
               const engine::Tokenizer& tokenizer) {
  const TokenId token = sampler.choose(logits);
  if (!means_nothing(token, tokenizer)) return token;
  std::vector<float> allowed(logits.begin(), logits.end());
  for (std::size_t id = 0; id < allowed.size(); ++id)
    if (means_nothing(static_cast<TokenId>(id), tokenizer))
      allowed[id] = -std::numeric_limits<float>::infinity();
  return sampler.choose(allowed);
}

/// One generation: the healed end first, where there is one, then token by token.
class Generation {
 public:
  Generation(const GenerationSetting& setting, const Options& options, StopRules& rules)
      : setting_(setting),
        options_(options),
        rules_(rules),
        tokenizer_(setting.engine.tokenizer()),
        sampler_({options.temperature, options.top_p, options.top_k, options.seed}),
        deadline_(setting.now() + std::chrono::milliseconds(options.time_max_ms)) {}

  Result<End> run() {
    if (setting_.stop.stop_requested()) return End::kStopped;
    Result<std::optional<End>> ended = heal();
    while (ended && !*ended) ended = next_token();
    if (!ended) return tl::unexpected(std::move(ended).error());
    return **ended;
  }

  Generated result;

 private:
  /// Checks the typed end against what the model would choose; goes back to where they part.
  Result<std::optional<End>> heal() {
    if (!setting_.typed || options_.tokens_max <= 0) return std::nullopt;
    const std::span<const TokenId> held = setting_.engine.held(setting_.sequence);
    prompt_.assign(held.begin(), held.end());
    const auto draft = std::span(prompt_).last(static_cast<std::size_t>(setting_.typed->tokens));
    std::string typed;
    for (const TokenId token : draft) typed += tokenizer_.bytes(token);
    spelling_.emplace(setting_.typed->order, std::move(typed));
    const auto departure =
        find_departure(setting_.engine, setting_.sequence, draft, sampler_, *spelling_);
    if (!departure || departure->token == engine::kNoToken) {
      spelling_.reset();
      return std::nullopt;
    }
    result.healed = setting_.typed->tokens - departure->kept;
    const std::size_t kept = prompt_.size() - static_cast<std::size_t>(result.healed);
    if (auto back = setting_.engine.adopt(setting_.sequence, std::span(prompt_).first(kept)); !back)
      return tl::unexpected(std::move(back).error());
    return take(departure->token, departure->probability);
  }

  Result<std::optional<End>> next_token() {
    if (result.new_tokens >= options_.tokens_max) return End::kTokens;
    if (setting_.stop.stop_requested()) return End::kStopped;
    if (!result.tokens.empty()) {
      if (result.new_tokens > 0 && setting_.now() >= deadline_) return End::kTime;
      const Result<bool> appended = append(result.tokens.back().id);
      if (!appended) return tl::unexpected(appended.error());
      if (!*appended) return End::kNoRoom;
    }
    const std::span<const float> logits = setting_.engine.logits(setting_.sequence);
    if (!spelling_) {
      const TokenId token = choose(sampler_, logits, tokenizer_);
      return take(token, probability_of(token, logits));
    }
    const TokenId token = spelling_->choose(sampler_, logits);
    if (token == engine::kNoToken || result.tokens.size() >= kSpellingTokensMax)
      return keep_draft();
    return take(token, spelling_->chance(token, logits));
  }

  std::optional<End> take(TokenId token, double probability) {
    std::string_view bytes = tokenizer_.bytes(token);
    const std::size_t whole = bytes.size();
    if (spelling_) bytes = spelling_->take(bytes);
    if (spelling_ && spelling_->done()) spelling_.reset();
    const bool spelled_only = bytes.empty() && whole > 0;
    if (!spelled_only && !result.first_token) result.first_token = setting_.now();
    if (!is_text(token, tokenizer_)) return End::kModel;
    result.tokens.push_back({token, whole, true});
    if (spelled_only) return std::nullopt;
    ++result.new_tokens;
    result.chances.push_back({probability, rules_.text().size()});
    result.confidence *= probability;
    if (rules_.feed(bytes)) return End::kRule;
    return result.confidence < least_confidence(options_) ? std::optional(End::kUnsure)
                                                          : std::nullopt;
  }

  /// The prompt as it was typed, when the model finds no way to spell it that is worth its time.
  Result<std::optional<End>> keep_draft() {
    spelling_.reset();
    result.tokens.clear();
    result.healed = 0;
    const auto held = setting_.engine.hold(setting_.sequence, prompt_, {.stop = setting_.stop});
    if (held) return std::nullopt;
    if (held.error().fault == Fault::kStopped) return End::kStopped;
    return tl::unexpected(held.error());
  }

  /// Evaluates `token`; false where no KV memory is left for it.
  Result<bool> append(TokenId token) {
    for (;;) {
      const Result<void> appended = setting_.engine.append(setting_.sequence, token);
      if (appended) return true;
      if (appended.error().fault != Fault::kWindowFull) return tl::unexpected(appended.error());
      if (!setting_.make_room()) return false;
    }
  }

  const GenerationSetting& setting_;
  const Options& options_;
  StopRules& rules_;
  const engine::Tokenizer& tokenizer_;
  engine::Sampler sampler_;
  const std::chrono::steady_clock::time_point deadline_;
  std::vector<TokenId> prompt_;       ///< as it was typed; empty without a typed end
  std::optional<Spelling> spelling_;  ///< while typed bytes are still to be spelled
};

}  // namespace

Result<Generated> generate(const GenerationSetting& setting, const Options& options,
                           StopRules& rules) {
  Generation generation(setting, options, rules);
  const Result<End> end = generation.run();
  if (!end) return tl::unexpected(end.error());
  Generated generated = std::move(generation.result);
  generated.end = *end;
  const auto blank = [](const std::string& text) {
    return text.find_first_not_of(" \t\r\n") == std::string::npos;
  };
  generated.text = rules.finish();
  if (generated.text.empty() && blank(rules.text())) generated.text = rules.text();
  generated.blank_line = blank(generated.text) && (*end == End::kRule || !blank(rules.text()));
  return generated;
}

}  // namespace efimd::completion
