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
constexpr double kChanceMin = 0.1;
/// After look-ups that spared nothing, as many tokens pass, at most, before the next one.
constexpr int kSkipMax = 8;
/// Look-ups left out in a row, while they do not pay.
constexpr int kLookUpsSkippedMax = 24;
/// Evidence that a rate keeps: beyond it the older half is forgotten.
constexpr double kJudgedMax = 200;
/// Weight of the newest in the means of costs and gains.
constexpr double kNewest = 0.05;

std::size_t bucket_of(double chance, std::size_t buckets) {
  const double at = std::clamp(chance, 0.0, 1.0) * static_cast<double>(buckets);
  return std::min(static_cast<std::size_t>(at), buckets - 1);
}

}  // namespace

void DraftOdds::Rate::add(bool is_accepted) {
  accepted += is_accepted ? 1 : 0;
  judged += 1;
  if (judged <= kJudgedMax) return;
  accepted /= 2;
  judged /= 2;
}

double DraftOdds::first(double chance) const { return first_[bucket_of(chance, kBuckets)].rate(); }

void DraftOdds::learn(Rates& rates, double chance, int drafted, int accepted) {
  if (drafted <= 0) return;
  rates[bucket_of(chance, kBuckets)].add(accepted > 0);
  for (int at = 1; at < std::min(drafted, accepted + 1); ++at) further_.add(at < accepted);
}

void DraftOdds::judged(double chance, int drafted, int accepted) {
  learn(first_, chance, drafted, accepted);
}

void DraftOdds::judged_with_prompt(double chance, std::span<const engine::TokenId> draft,
                                   std::span<const prompt::CoveredToken> generated) {
  if (chance >= 1) return;
  const auto parting =
      std::ranges::mismatch(draft, generated, {}, {}, &prompt::CoveredToken::id).in1;
  learn(first_of_prompt_, chance, static_cast<int>(draft.size()),
        static_cast<int>(parting - draft.begin()));
}

std::size_t DraftOdds::worthwhile_with_prompt(const prompt::StepCosts& costs, double chance,
                                              std::size_t most) const {
  if (chance >= 1) return most;
  return worthwhile(costs, first_of_prompt_[bucket_of(chance, kBuckets)].rate(), most);
}

bool DraftOdds::is_look_up_worthwhile(const prompt::StepCosts& costs, std::size_t most) {
  // At first a look-up is taken to find a draft that is as often right as wrong.
  constexpr double kEven = 0.5;
  if (gain_ms_.value_or(worth_of(costs, kEven, most).gain_ms) > cost_ms_ ||
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
  if (!added_ms_[count]) added_ms_[count] = *token_ms_ * drafted;
  learn(added_ms_[count], added);
}

double DraftOdds::added_ms(const prompt::StepCosts& costs, std::size_t drafted) const {
  if (drafted < added_ms_.size() && added_ms_[drafted]) return *added_ms_[drafted];
  constexpr int kMeasured = 8;
  return static_cast<double>(drafted) *
         token_ms_.value_or((costs.ms(1 + kMeasured) - costs.ms(1)) / kMeasured);
}

DraftOdds::Worth DraftOdds::worth_of(const prompt::StepCosts& costs, double first,
                                     std::size_t most) const {
  const double step = step_ms(costs);
  double accepted = first, spared = 0;
  Worth best;
  for (std::size_t count = 1; count <= most; ++count, accepted *= further()) {
    spared += accepted * step;
    const double gain = spared - added_ms(costs, count);
    if (gain > best.gain_ms) best = {count, gain};
  }
  return best;
}

std::size_t DraftOdds::worthwhile(const prompt::StepCosts& costs, double first,
                                  std::size_t most) const {
  return worth_of(costs, first, most).tokens;
}

void Drafter::expect(std::string text) {
  expected_ = std::move(text);
  from_ = 0;
  is_begun_ = true;
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
    if (uses_.odds.worthwhile(uses_.costs, 1, most) == 0) return {};
    if (!look_up(written, most)) return {};
    rest = expected_;
  } else if (written.size() > from_) {
    is_begun_ = true;
  }
  const double first = is_begun_ ? uses_.odds.further() : uses_.odds.first(chance_);
  const std::size_t count = uses_.odds.worthwhile(uses_.costs, first, most);
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
  if (found.text.empty() || found.chance < kChanceMin) {
    uses_.odds.looked_up(ms, 0);
    skip_ = std::min(++misses_, kSkipMax);
    expected_.clear();
    return false;
  }
  expected_ = std::move(found.text);
  chance_ = found.chance;
  from_ = written.size();
  is_begun_ = false;
  look_up_ms_ = ms;
  return true;
}

void Drafter::stepped(int drafted, int accepted, double ms) {
  if (uses_.learns_costs) uses_.odds.stepped(drafted, ms);
  if (drafted == 0) return;
  if (!is_begun_) uses_.odds.judged(chance_, drafted, accepted);
  const double gain_ms = accepted * uses_.odds.step_ms(uses_.costs) -
                         uses_.odds.added_ms(uses_.costs, static_cast<std::size_t>(drafted));
  if (look_up_ms_ > 0) uses_.odds.looked_up(std::exchange(look_up_ms_, 0), gain_ms);
  misses_ = accepted > 0 ? 0 : misses_ + 1;
  skip_ = std::min(misses_, kSkipMax);
}

}  // namespace efimd::completion
