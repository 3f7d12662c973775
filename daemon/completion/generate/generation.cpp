#include "daemon/completion/generate/generation.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "daemon/completion/generate/judging.h"

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

/// The sampler's choice among tokens that mean something. That the first choice does not is so rare
/// with a trained model that nothing is done about it beforehand.
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

bool begins_with_other(std::string_view a, std::string_view b) {
  return a.starts_with(b) || b.starts_with(a);
}

}  // namespace

Generation::Generation(const GenerationSetting& setting, engine::SequenceId sequence,
                       const Options& options, StopRules& rules)
    : setting_(setting),
      sequence_(sequence),
      options_(options),
      rules_(rules),
      tokenizer_(setting.engine.tokenizer()),
      sampler_({options.temperature, options.top_p, options.top_k, options.seed}),
      deadline_(setting.now() + std::chrono::milliseconds(options.time_max_ms)) {}

Result<void> Generation::begin() {
  if (setting_.begun) {
    result_ = *setting_.begun;
    result_.first_token.reset();
    result_.judged.clear();
    result_.work = {};
    if (rules_.feed(result_.all_text)) end_ = End::kRule;
  }
  if (end_) return {};
  if (setting_.stop.stop_requested()) {
    end_ = End::kStopped;
  } else if (options_.tokens_max <= 0) {
    end_ = End::kTokens;
  } else {
    result_.work.drafted = setting_.drafted;
    result_.judged = judge_candidates(setting_, sequence_);
    return setting_.typed && !setting_.begun ? heal() : judge(setting_.drafted);
  }
  return {};
}

/// Checks the typed end against what the model would choose; goes back to where they part.
Result<void> Generation::heal() {
  const int drafted = setting_.drafted;
  const std::span<const TokenId> held = setting_.engine.held(sequence_);
  prompt_.assign(held.begin(), held.end() - drafted);
  const auto draft = std::span(prompt_).last(static_cast<std::size_t>(setting_.typed->tokens));
  std::string typed;
  for (const TokenId token : draft) typed += tokenizer_.bytes(token);
  const std::string wanted = setting_.typed->spells.empty() ? typed : setting_.typed->spells;
  if (!wanted.empty()) spelling_.emplace(setting_.typed->order, wanted);
  const auto mismatch =
      spelling_ ? find_mismatch({setting_.engine, sequence_, drafted}, draft, sampler_, *spelling_)
                : std::nullopt;
  if (!mismatch || mismatch->token == engine::kNoToken) {
    // The draft stands; what is wanted may go on after it.
    spelling_.reset();
    if (wanted.size() > typed.size() && wanted.starts_with(typed))
      spelling_.emplace(setting_.typed->order, wanted.substr(typed.size()));
    else if (!wanted.starts_with(typed))
      end_ = End::kModel;
    return end_ ? Result<void>() : judge(drafted);
  }
  result_.healed = setting_.typed->tokens - mismatch->kept;
  const int back = result_.healed;
  remember_first(setting_.engine.logits(sequence_, back + drafted));
  const std::size_t kept = prompt_.size() - static_cast<std::size_t>(back);
  if (auto gone = setting_.engine.rewind(sequence_, std::span(prompt_).first(kept)); !gone)
    return tl::unexpected(std::move(gone).error());
  take(mismatch->token, mismatch->probability);
  return {};
}

void Generation::begin_beside(const Generation& other, const Choice& first) {
  prompt_ = other.prompt_;
  result_.healed = other.result_.healed;
  if (other.first_spelling_) spelling_.emplace(*other.first_spelling_);
  take(first.token, first.probability);
}

void Generation::remember_first(std::span<const float> logits) {
  if (!keeps_alternatives_ || !result_.tokens.empty()) return;
  first_logits_.assign(logits.begin(), logits.end());
  if (spelling_) first_spelling_.emplace(*spelling_);
}

std::vector<Generation::Choice> Generation::alternatives(int count) const {
  std::vector<TokenId> ids = first_spelling_ ? first_spelling_->fitting() : std::vector<TokenId>();
  if (!first_spelling_)
    for (std::size_t id = 0; id < first_logits_.size(); ++id)
      ids.push_back(static_cast<TokenId>(id));
  const auto logit = [&](TokenId id) { return first_logits_[static_cast<std::size_t>(id)]; };
  std::erase_if(ids, [&](TokenId id) {
    const bool known = id >= 0 && static_cast<std::size_t>(id) < first_logits_.size();
    return !known || !is_text(id, tokenizer_) ||
           !(logit(id) > -std::numeric_limits<float>::infinity());
  });
  std::vector<std::string_view> chosen;
  if (!result_.tokens.empty()) chosen.push_back(tokenizer_.bytes(result_.tokens[0].id));
  std::vector<Choice> choices;
  while (choices.size() < static_cast<std::size_t>(count)) {
    std::erase_if(ids, [&](TokenId id) {
      return std::ranges::any_of(chosen, [&](std::string_view other) {
        return begins_with_other(tokenizer_.bytes(id), other);
      });
    });
    const auto best = std::ranges::max_element(ids, {}, logit);
    if (best == ids.end()) break;
    // The choice was ours, not the model's: its probability says nothing of what follows.
    choices.push_back({*best, 1});
    chosen.push_back(tokenizer_.bytes(*best));
  }
  return choices;
}

bool Generation::has_ended() {
  if (end_) return true;
  if (result_.new_tokens >= options_.tokens_max) {
    end_ = End::kTokens;
  } else if (setting_.stop.stop_requested()) {
    end_ = End::kStopped;
  } else if (result_.new_tokens > 0 && setting_.now() >= deadline_) {
    end_ = End::kTime;
  }
  return end_.has_value();
}

std::span<const TokenId> Generation::pending() {
  pending_.clear();
  if (has_ended()) return {};
  pending_.push_back(result_.tokens.back().id);
  if (setting_.drafts == nullptr || spelling_) return pending_;
  const engine::Engine& engine = setting_.engine;
  const int held = static_cast<int>(engine.held(sequence_).size());
  // One token more than is drafted is chosen.
  const int room =
      std::min({options_.tokens_max - result_.new_tokens, engine.window_tokens() - held,
                engine.step_tokens(), engine::Engine::kLogitsRowsMax}) -
      1;
  if (room <= 0) return pending_;
  const auto most = static_cast<std::size_t>(room);
  const std::vector<TokenId> draft = setting_.drafts->propose(rules_.text(), most);
  pending_.insert(pending_.end(), draft.begin(),
                  draft.begin() + static_cast<std::ptrdiff_t>(std::min(draft.size(), most)));
  return pending_;
}

Result<void> Generation::go_on() {
  ++result_.work.steps;
  const int drafted = static_cast<int>(pending_.size()) - 1;
  const int accepted_before = result_.work.accepted;
  result_.work.drafted += drafted;
  Result<void> done = judge(drafted);
  accepted_last_ = result_.work.accepted - accepted_before;
  return done;
}

void Generation::stepped(double ms) {
  if (setting_.drafts != nullptr)
    setting_.drafts->stepped(static_cast<int>(pending_.size()) - 1, accepted_last_, ms);
}

Result<void> Generation::judge(int drafted) {
  for (int back = drafted;; --back) {
    if (auto chosen = choose_next(back); !chosen || back == 0) return chosen;
    const std::span<const TokenId> held = setting_.engine.held(sequence_);
    const std::size_t place = held.size() - static_cast<std::size_t>(back);
    const bool accepted = !has_ended() && result_.tokens.back().id == held[place];
    if (accepted) {
      ++result_.work.accepted;
      continue;
    }
    const std::vector<TokenId> kept(held.begin(),
                                    held.begin() + static_cast<std::ptrdiff_t>(place));
    if (auto back_there = setting_.engine.rewind(sequence_, kept); !back_there)
      return tl::unexpected(std::move(back_there).error());
    return {};
  }
}

Result<void> Generation::choose_next(int back) {
  const std::span<const float> logits = setting_.engine.logits(sequence_, back);
  remember_first(logits);
  if (!spelling_) {
    const TokenId token = choose(sampler_, logits, tokenizer_);
    take(token, probability_of(token, logits));
    return {};
  }
  const TokenId token = spelling_->choose(sampler_, logits);
  const std::size_t most = kSpellingTokensMax + setting_.typed->spells.size();
  if (token == engine::kNoToken || result_.tokens.size() >= most) return keep_typed();
  take(token, spelling_->chance(token, logits));
  return {};
}

void Generation::take(TokenId token, double probability) {
  std::string_view bytes = tokenizer_.bytes(token);
  const std::size_t whole = bytes.size();
  if (spelling_) bytes = spelling_->take(bytes);
  if (spelling_ && spelling_->done()) spelling_.reset();
  const bool spelled_only = bytes.empty() && whole > 0;
  if (!spelled_only && !result_.first_token) result_.first_token = setting_.now();
  if (!is_text(token, tokenizer_)) {
    end_ = End::kModel;
    return;
  }
  result_.tokens.push_back({token, whole, true});
  if (spelled_only) return;
  ++result_.new_tokens;
  result_.chances.push_back({probability, rules_.text().size()});
  result_.confidence *= probability;
  if (rules_.feed(bytes)) {
    end_ = End::kRule;
  } else if (result_.confidence < least_confidence(options_)) {
    end_ = End::kUnsure;
  } else if (setting_.heard) {
    setting_.heard(rules_, result_);
  }
}

/// The prompt as it was typed, when the model finds no way to spell it that is worth its time.
/// Other text than was typed has no such way out.
Result<void> Generation::keep_typed() {
  spelling_.reset();
  result_.tokens.clear();
  result_.healed = 0;
  const auto held = setting_.engine.prefill(sequence_, prompt_, {.stop = setting_.stop});
  if (!held && held.error().fault != Fault::kStopped) return tl::unexpected(held.error());
  if (!held || !setting_.typed->spells.empty()) {
    end_ = held ? End::kModel : End::kStopped;
    return {};
  }
  return choose_next();
}

Generated Generation::finish() {
  Generated generated = std::move(result_);
  generated.end = end_.value_or(End::kModel);
  const auto blank = [](const std::string& text) {
    return text.find_first_not_of(" \t\r\n") == std::string::npos;
  };
  generated.all_text = rules_.text();
  generated.text = rules_.finish();
  if (generated.text.empty() && blank(rules_.text())) generated.text = rules_.text();
  generated.blank_line =
      blank(generated.text) && (generated.end == End::kRule || !blank(rules_.text()));
  return generated;
}

}  // namespace efimd::completion
