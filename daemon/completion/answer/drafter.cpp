#include "daemon/completion/answer/drafter.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace efimd::completion {

namespace {

using Clock = std::chrono::steady_clock;

/// Text around the cursor that a look-up sees; recall scans no more of its own document.
constexpr std::size_t kAroundBytesMax = std::size_t{96} * 1024;
/// Of a draft: more than the tokens of one step is never used.
constexpr std::size_t kDraftBytesMax = 160;
/// A match that fewer others support says too little.
constexpr double kShareMin = 0.1;
/// After look-ups that spared nothing, as many tokens pass, at most, before the next one.
constexpr int kSkipMax = 8;
/// Look-ups left out in a row, while they do not pay.
constexpr int kLookUpsSkippedMax = 24;
/// Drafts left out in a row, while even sure ones would not pay.
constexpr int kUnpaidMax = 64;
/// Tokens that a correction remembers: beyond it the older half is forgotten.
constexpr double kExpectedMax = 200;
/// Steps that the cost of other drafts counts for, where a count of tokens is new.
constexpr double kTrusted = 2;
/// Weight of the newest in the means of costs and gains.
constexpr double kNewest = 0.05;

}  // namespace

double DraftOdds::Correction::of(double chance) const {
  // Nothing is as sure as that it needs no judging.
  constexpr double kChanceMax = 0.98;
  return std::min(kChanceMax, chance * accepted / expected);
}

void DraftOdds::Correction::add(bool is_accepted, double chance) {
  accepted += is_accepted ? 1 : 0;
  expected += chance;
  if (expected <= kExpectedMax) return;
  accepted /= 2;
  expected /= 2;
}

double DraftOdds::chance(const DraftEvidence& evidence, std::size_t position,
                         std::size_t at) const {
  return looked_up_[which(position)].of(drafted_chance(evidence, position + at));
}

template <class Chance>
void DraftOdds::learn(Correction& correction, const Chance& chance, int drafted, int accepted) {
  for (int at = 0; at < std::min(drafted, accepted + 1); ++at)
    correction.add(at < accepted, chance(static_cast<std::size_t>(at)));
}

void DraftOdds::judged(const DraftEvidence& evidence, std::size_t position, int drafted,
                       int accepted) {
  const auto fitted = [&](std::size_t at) { return drafted_chance(evidence, position + at); };
  learn(looked_up_[which(position)], fitted, drafted, accepted);
}

void DraftOdds::judged(double chance, std::size_t position, int drafted, int accepted) {
  if (chance >= 1) return;
  const auto fitted = [&](std::size_t at) { return drafted_chance(chance, position + at); };
  learn(of_prompt_[which(position)], fitted, drafted, accepted);
}

void DraftOdds::judged_with_prompt(double chance, std::span<const engine::TokenId> draft,
                                   std::span<const prompt::CoveredToken> generated) {
  const auto parting =
      std::ranges::mismatch(draft, generated, {}, {}, &prompt::CoveredToken::id).in1;
  judged(chance, 0, static_cast<int>(draft.size()), static_cast<int>(parting - draft.begin()));
}

bool DraftOdds::is_look_up_worthwhile(const prompt::StepCosts& costs, std::size_t most) {
  // At first a look-up is taken to find a draft of this evidence.
  constexpr DraftEvidence kUsual{.agreed = 16, .votes = 2, .share = 0.5};
  if (gain_ms_.value_or(look_up_gain_ms(costs, kUsual, most)) > cost_ms_ ||
      ++skipped_ > kLookUpsSkippedMax) {
    skipped_ = 0;
    return true;
  }
  return false;
}

void DraftOdds::looked_up(double ms, double gain_ms) {
  cost_ms_ += kNewest * (ms - cost_ms_);
  const double mean = gain_ms_.value_or(gain_ms);
  gain_ms_ = mean + kNewest * (gain_ms - mean);
}

void DraftOdds::stepped(int drafted, double ms) {
  const auto learn = [](std::optional<double>& mean, double value) {
    mean = mean ? *mean + kNewest * (value - *mean) : value;
  };
  if (drafted == 0) return learn(step_ms_, ms);
  if (!step_ms_) return;
  const double added = std::max(0.0, ms - *step_ms_);
  learn(token_ms_, added / drafted);
  const auto count = static_cast<std::size_t>(drafted);
  if (count >= added_ms_.size()) return;
  // One step that was held up says little: a count begins with what the others cost.
  Added& of = added_ms_[count];
  if (of.steps == 0) of.ms = *token_ms_ * drafted;
  of.ms += std::max(kNewest, 1.0 / (++of.steps + kTrusted)) * (added - of.ms);
}

double DraftOdds::added_ms(const prompt::StepCosts& costs, std::size_t drafted) const {
  if (drafted < added_ms_.size() && added_ms_[drafted].steps > 0) return added_ms_[drafted].ms;
  constexpr int kMeasured = 8;
  return static_cast<double>(drafted) *
         token_ms_.value_or((costs.ms(1 + kMeasured) - costs.ms(1)) / kMeasured);
}

template <class Chance>
DraftOdds::Worth DraftOdds::worth_of(const prompt::StepCosts& costs, const Chance& chance,
                                     std::size_t most) const {
  const double step = step_ms(costs);
  double accepted = 1, spared = 0;
  Worth best;
  for (std::size_t count = 1; count <= most; ++count) {
    accepted *= chance(count - 1);
    spared += accepted * step;
    const double gain = spared - added_ms(costs, count);
    if (gain > best.gain_ms) best = {count, gain};
  }
  return best;
}

std::size_t DraftOdds::worthwhile(const prompt::StepCosts& costs, const DraftEvidence& evidence,
                                  std::size_t position, std::size_t most) const {
  const auto of = [&](std::size_t at) { return chance(evidence, position, at); };
  return worth_of(costs, of, most).tokens;
}

double DraftOdds::look_up_gain_ms(const prompt::StepCosts& costs, const DraftEvidence& evidence,
                                  std::size_t most) const {
  const auto of = [&](std::size_t at) { return chance(evidence, 0, at); };
  return worth_of(costs, of, most).gain_ms;
}

bool DraftOdds::can_pay(const prompt::StepCosts& costs, std::size_t most) {
  const auto sure = [](std::size_t) { return 1.0; };
  const bool pays = worth_of(costs, sure, most).tokens > 0;
  unpaid_ = pays ? 0 : unpaid_ + 1;
  if (unpaid_ > kUnpaidMax) {
    unpaid_ = 0;
    token_ms_.reset();
    added_ms_ = {};
  }
  return pays;
}

std::size_t DraftOdds::worthwhile_with_prompt(const prompt::StepCosts& costs, double chance,
                                              std::size_t position, std::size_t most) const {
  if (chance >= 1) return most;
  const Correction& correction = of_prompt_[which(position)];
  const auto of = [&](std::size_t at) {
    return correction.of(drafted_chance(chance, position + at));
  };
  return worth_of(costs, of, most).tokens;
}

void Drafter::expect(std::string text, double chance, std::size_t drafted) {
  expected_ = std::move(text);
  from_ = 0;
  evidence_.reset();
  chance_ = chance;
  position_ = drafted + 1;  // the token after it is chosen without this draft
}

/// Empty if something else was written.
std::string_view Drafter::expected_after(std::string_view written) const {
  if (written.size() < from_) return {};
  const std::string_view since = written.substr(from_), expected = expected_;
  return expected.starts_with(since) ? expected.substr(since.size()) : std::string_view();
}

std::vector<engine::TokenId> Drafter::propose(std::string_view written, std::size_t most) {
  std::string_view rest = expected_after(written);
  if (rest.empty()) {
    // Where even a sure draft does not pay, nothing is looked up.
    if (!uses_.odds.can_pay(uses_.costs, most) || !look_up(written, most)) return {};
    rest = expected_;
  }
  const std::size_t count =
      evidence_ ? uses_.odds.worthwhile(uses_.costs, *evidence_, position_, most)
                : uses_.odds.worthwhile_with_prompt(uses_.costs, chance_, position_, most);
  if (count == 0) return {};
  std::vector<engine::TokenId> tokens =
      uses_.tokenizer.encode(rest.substr(0, kDraftBytesMax), engine::Fragment::kInside);
  if (tokens.size() > count) tokens.resize(count);
  return tokens;
}

/// Whether there is something to expect now.
bool Drafter::look_up(std::string_view written, std::size_t most) {
  if (uses_.index == nullptr || skip_-- > 0 || !uses_.odds.is_look_up_worthwhile(uses_.costs, most))
    return false;
  skip_ = 0;
  if (look_up_ms_ > 0) uses_.odds.looked_up(std::exchange(look_up_ms_, 0), 0);
  const auto begin = Clock::now();
  const std::string_view text = turn_.snapshot().bytes();
  const std::size_t before = std::min(turn_.cursor, kAroundBytesMax);
  std::string seen(text.substr(turn_.cursor - before, before));
  seen += written;
  const std::size_t cursor = seen.size();
  seen += text.substr(turn_.cursor, kAroundBytesMax);
  const TextHome& home = turn_.request().home;
  recall::Continuation found =
      uses_.index->draft({{home.project, home.path}, seen, cursor}, kDraftBytesMax);
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  if (found.text.empty() || found.share < kShareMin) {
    uses_.odds.looked_up(ms, 0);
    skip_ = std::min(++misses_, kSkipMax);
    expected_.clear();
    return false;
  }
  expected_ = std::move(found.text);
  evidence_ = {found.agreed, found.votes, found.share};
  position_ = 0;
  from_ = written.size();
  look_up_ms_ = ms;
  return true;
}

void Drafter::stepped(int drafted, int accepted, double ms) {
  if (uses_.learns_costs) uses_.odds.stepped(drafted, ms);
  if (drafted > 0 && evidence_) uses_.odds.judged(*evidence_, position_, drafted, accepted);
  if (drafted > 0 && !evidence_) uses_.odds.judged(chance_, position_, drafted, accepted);
  position_ += static_cast<std::size_t>(accepted) + 1;
  if (drafted == 0) return;
  const double gain_ms = accepted * uses_.odds.step_ms(uses_.costs) -
                         uses_.odds.added_ms(uses_.costs, static_cast<std::size_t>(drafted));
  if (look_up_ms_ > 0) uses_.odds.looked_up(std::exchange(look_up_ms_, 0), gain_ms);
  misses_ = accepted > 0 ? 0 : misses_ + 1;
  skip_ = std::min(misses_, kSkipMax);
}

}  // namespace efimd::completion
