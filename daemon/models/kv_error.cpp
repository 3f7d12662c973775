#include "daemon/models/kv_error.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/backend/backend.h"
#include "engine/decode/sampler.h"
#include "engine/tokenizer/tokenizer.h"

namespace efimd::service {

using namespace engine;
namespace {

/// Distributions are compared every so many tokens, because the logits of all would cost as much as
/// the prompt.
constexpr int kPlaceStep = 4;

/// One device with one sequence, in pages 0, 1, ...
class Teller {
 public:
  Teller(Backend& backend, int layers)
      : backend_(backend), layers_(layers), pages_(static_cast<std::size_t>(backend.page_count())) {
    std::iota(pages_.begin(), pages_.end(), 0);
  }
  void rewind() { position_ = 0; }
  Result<std::span<const float>> tell(std::span<const TokenId> tokens, std::span<const int> rows,
                                      const std::stop_token& stop) {
    const StepSequence part{
        .count = static_cast<int>(tokens.size()), .position = position_, .page_table = pages_};
    position_ += part.count;
    return forward(backend_, layers_,
                   {.tokens = tokens, .sequences = {&part, 1}, .logits_rows = rows}, stop);
  }
  int step_tokens_max() const { return backend_.step_tokens_max(); }

 private:
  Backend& backend_;
  int layers_;
  std::vector<PageIndex> pages_;
  int position_ = 0;
};

TokenId likeliest(std::span<const float> logits) { return Sampler({}).choose(logits); }

double log_sum(std::span<const float> logits) {
  const float largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += static_cast<double>(std::exp(logit - largest));
  return static_cast<double>(largest) + std::log(sum);
}

double divergence(std::span<const float> exact, std::span<const float> other) {
  const double of_exact = log_sum(exact), of_other = log_sum(other);
  double sum = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double log_exact = static_cast<double>(exact[i]) - of_exact;
    const double log_other = static_cast<double>(other[i]) - of_other;
    sum += static_cast<double>(std::exp(static_cast<float>(log_exact))) * (log_exact - log_other);
  }
  return std::max(0.0, sum);
}

class Comparison {
 public:
  Comparison(Backend& exact, Backend& other, int layers, const Tokenizer& tokenizer,
             const std::stop_token& stop)
      : exact_(exact, layers), other_(other, layers), tokenizer_(tokenizer), stop_(stop) {}

  Result<void> prompt(std::span<const TokenId> tokens) {
    exact_.rewind();
    other_.rewind();
    while (!tokens.empty()) {
      const auto step = static_cast<std::size_t>(std::min(
          {exact_.step_tokens_max(), other_.step_tokens_max(), static_cast<int>(tokens.size())}));
      if (Result<void> told = part(tokens.first(step)); !told) return told;
      tokens = tokens.subspan(step);
    }
    return complete();
  }
  KvError error() const {
    KvError error = error_;
    error.divergence /= std::max(1, error.places);
    return error;
  }

 private:
  struct Both {
    std::span<const float> exact, other;
  };
  Result<Both> tell(std::span<const TokenId> tokens, std::span<const int> rows) {
    const auto exact = exact_.tell(tokens, rows, stop_);
    if (!exact) return tl::unexpected(exact.error());
    const auto other = other_.tell(tokens, rows, stop_);
    if (!other) return tl::unexpected(other.error());
    return Both{*exact, *other};
  }

  /// Tokens of the prompt; every kPlaceStep-th and the last are compared.
  Result<void> part(std::span<const TokenId> tokens) {
    std::vector<int> rows;
    const int last = static_cast<int>(tokens.size()) - 1;
    for (int row = kPlaceStep - 1; row < last; row += kPlaceStep) rows.push_back(row);
    rows.push_back(last);
    const Result<Both> told = tell(tokens, rows);
    if (!told) return tl::unexpected(told.error());
    const std::size_t width = told->exact.size() / rows.size();
    for (std::size_t row = 0; row < rows.size(); ++row)
      compare(told->exact.subspan(row * width, width), told->other.subspan(row * width, width));
    return {};
  }
  void compare(std::span<const float> exact, std::span<const float> other) {
    ++error_.places;
    next_exact_ = likeliest(exact);
    next_other_ = likeliest(other);
    if (next_exact_ == next_other_) ++error_.same_next;
    error_.divergence += divergence(exact, other);
  }

  /// Both are the same until one of them chooses otherwise.
  Result<void> complete() {
    ++error_.completions;
    for (int count = 0; next_exact_ == next_other_; ++count) {
      if (count == KvError::kTokens - 1 || next_exact_ == kNoToken ||
          tokenizer_.ends_generation(next_exact_)) {
        ++error_.same_completions;
        break;
      }
      const TokenId token = next_exact_;
      const int row = 0;
      const Result<Both> told = tell({&token, 1}, {&row, 1});
      if (!told) return tl::unexpected(told.error());
      next_exact_ = likeliest(told->exact);
      next_other_ = likeliest(told->other);
    }
    return {};
  }

  Teller exact_, other_;
  const Tokenizer& tokenizer_;
  const std::stop_token& stop_;
  KvError error_;
  TokenId next_exact_ = kNoToken, next_other_ = kNoToken;
};

}  // namespace

bool KvError::is_small() const {
  return places > 0 && completions > 0 && same_next >= kSameNextMin * places &&
         divergence <= kDivergenceMax && same_completions >= kSameCompletionsMin * completions;
}

Result<KvError> measure_kv_error(Backend& exact, Backend& other, int layers,
                                 const Tokenizer& tokenizer,
                                 std::span<const std::vector<TokenId>> prompts,
                                 const KvErrorLimits& limits) {
  Comparison comparison(exact, other, layers, tokenizer, limits.stop);
  bool first = true;
  for (const std::vector<TokenId>& prompt : prompts) {
    if (!std::exchange(first, false) && std::chrono::steady_clock::now() > limits.deadline) break;
    if (Result<void> done = comparison.prompt(prompt); !done)
      return tl::unexpected(std::move(done).error());
  }
  return comparison.error();
}

}  // namespace efimd::service
