#include "daemon/completion/generate.h"

#include <algorithm>
#include <limits>
#include <span>

#include "engine/decode/sampler.h"

namespace efimd::completion {

namespace {

using engine::TokenId;

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

/// Evaluates `token`; false where no KV memory is left for it.
Result<bool> append(const GenerationSetting& setting, TokenId token) {
  for (;;) {
    const Result<void> appended = setting.engine.append(setting.sequence, token);
    if (appended) return true;
    if (appended.error().fault != Fault::kWindowFull) return tl::unexpected(appended.error());
    if (!setting.make_room()) return false;
  }
}

Result<End> run(const GenerationSetting& setting, const Options& options, StopRules& rules,
                Generated& generated) {
  const engine::Tokenizer& tokenizer = setting.engine.tokenizer();
  engine::Sampler sampler({options.temperature, options.top_p, options.top_k, options.seed});
  const auto deadline = setting.now() + std::chrono::milliseconds(options.time_max_ms);
  for (int count = 0; count < options.tokens_max; ++count) {
    if (setting.stop.stop_requested()) return End::kStopped;
    if (count > 0) {
      if (setting.now() >= deadline) return End::kTime;
      const Result<bool> appended = append(setting, generated.tokens.back().id);
      if (!appended) return tl::unexpected(appended.error());
      if (!*appended) return End::kNoRoom;
    }
    const TokenId token = choose(sampler, setting.engine.logits(setting.sequence), tokenizer);
    if (!generated.first_token) generated.first_token = setting.now();
    if (!is_text(token, tokenizer)) return End::kModel;
    const std::string_view bytes = tokenizer.bytes(token);
    generated.tokens.push_back({token, bytes.size(), true});
    if (rules.feed(bytes)) return End::kRule;
  }
  return End::kTokens;
}

}  // namespace

Result<Generated> generate(const GenerationSetting& setting, const Options& options,
                           StopRules& rules) {
  Generated generated;
  const Result<End> end = run(setting, options, rules, generated);
  if (!end) return tl::unexpected(end.error());
  generated.end = *end;
  const auto blank = [](const std::string& text) {
    return text.find_first_not_of(" \t\r\n") == std::string::npos;
  };
  generated.text = rules.finish();
  generated.blank_line = blank(generated.text) && (*end == End::kRule || !blank(rules.text()));
  return generated;
}

}  // namespace efimd::completion
