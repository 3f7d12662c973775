#include "daemon/completion/generate/confidence.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "daemon/completion/fit/fit_lines.h"

// A function that is compiled for several kinds of CPU, the best of which is taken when the program
// starts. Not under sanitizers, which are not ready that early.
#if defined(__x86_64__) && defined(__linux__) && !defined(EFIMD_SANITIZED)
#define EFIMD_FOR_EACH_CPU __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define EFIMD_FOR_EACH_CPU
#endif

namespace efimd::completion {

namespace {

// exp() below this is 0 for every sum that can be stored as a float.
constexpr float kExponentMin = -80.0F;

/// exp(x) for kExponentMin <= x <= 0, within 1e-5 of it relatively: a power of 2, whose whole part
/// goes into the exponent's bits and whose rest in [-0.5, 0.5] into a polynomial. No call and no
/// branch, so that compilers work on several at once.
inline float exp_of(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: what is added to it loses its fraction
  const float power = x * 1.44269504F;
  const float rounded = power + kRound;
  const float rest = power - (rounded - kRound);
  const float series =
      1.0F + rest * (0.6931472F + rest * (0.2402265F + rest * (0.0555041F + rest * 0.0096181F)));
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(series) +
                              (std::bit_cast<std::int32_t>(rounded) << 23));
}

// Compilers keep the order of a sum: one sum a lane lets them work on several lanes at once. Blocks
// keep the lanes' loop innermost.
constexpr std::size_t kLanes = 16;
using Lanes = std::array<float, kLanes>;

float greatest(std::span<const float> logits) {
  Lanes best;
  best.fill(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      best[lane] = logits[i + lane] > best[lane] ? logits[i + lane] : best[lane];
  for (; i < logits.size(); ++i) best[0] = logits[i] > best[0] ? logits[i] : best[0];
  return *std::ranges::max_element(best);
}

/// Of `shift` below `logit`, but never too far below.
inline float exponential(float logit, float shift) {
  const float x = logit - shift;
  return exp_of(x > kExponentMin ? x : kExponentMin);
}

// Of 151,936 logits, on a Xeon at 2.7 GHz: 0.02 ms with AVX-512, 0.18 with AVX2, 0.26 with neither.
EFIMD_FOR_EACH_CPU float sum_of_exponentials(std::span<const float> logits, float shift) {
  Lanes sums{};
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    Lanes terms;
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      terms[lane] = exponential(logits[i + lane], shift);
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += terms[lane];
  }
  for (; i < logits.size(); ++i) sums[0] += exponential(logits[i], shift);
  float sum = 0;
  for (const float each : sums) sum += each;
  return sum;
}

/// The product over the tokens that have bytes before `size`.
double product_up_to(std::span<const TokenChance> chances, std::size_t size) {
  double product = 1;
  for (const TokenChance& chance : chances)
    if (chance.begin < size) product *= chance.probability;
  return product;
}

/// Brackets that the text opened and has not closed; those that end a line are no hindrance.
class OwnBrackets {
 public:
  void take(const Bracket& bracket, bool ends_line) {
    if (is_opener(bracket.c)) {
      open_.push_back(ends_line);
    } else if (!open_.empty()) {
      open_.pop_back();
    }
    if (ends_line && !open_.empty() && open_.back()) open_.assign(open_.size(), true);
  }
  bool hinder() const { return std::ranges::find(open_, false) != open_.end(); }

 private:
  std::vector<bool> open_;
};

bool ends_line(std::string_view text, std::size_t at) {
  const std::size_t next = text.find_first_not_of(" \t\r", at + 1);
  return next == std::string_view::npos || text[next] == '\n';
}

/// Behind sentences, clauses and lines.
std::vector<std::size_t> clause_ends(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 1; at < text.size(); ++at) {
    const bool line_ends = text[at] == '\n';
    const bool clause_ends =
        (text[at] == ' ' || line_ends) &&
        std::string_view(".,;:!?").find(text[at - 1]) != std::string_view::npos;
    if (line_ends || clause_ends) ends.push_back(at);
  }
  return ends;
}

}  // namespace

double probability_of(engine::TokenId chosen, std::span<const float> logits) {
  if (chosen < 0 || static_cast<std::size_t>(chosen) >= logits.size()) return 0;
  const float best = greatest(logits);
  const float own = logits[static_cast<std::size_t>(chosen)] - best;
  if (!(own > kExponentMin)) return 0;
  return static_cast<double>(exp_of(own)) / static_cast<double>(sum_of_exponentials(logits, best));
}

double probability_among(engine::TokenId chosen, std::span<const float> logits,
                         std::span<const engine::TokenId> allowed) {
  const auto at = std::ranges::find(allowed, chosen);
  if (at == allowed.end()) return 0;
  std::vector<float> own;
  own.reserve(allowed.size());
  for (const engine::TokenId token : allowed) {
    const auto index = static_cast<std::size_t>(token);
    own.push_back(index < logits.size() ? logits[index] : -std::numeric_limits<float>::infinity());
  }
  return probability_of(static_cast<engine::TokenId>(at - allowed.begin()), own);
}

// The default, kConfidenceDefault, was chosen with the bundled model at 596 random places of 30
// files of Go, C++ and Python that it was not trained on; asked for was the rest of the line.
// "Right" is a suggestion that the line begins with, "whole" one that is all of it.
//
//   least  shown    right, whole    right and wrong bytes a place
//   0       85 %     6 %   3 %          0.24    18.7
//   0.05    30 %    24 %   8 %          0.34     1.4
//   0.1     24 %    28 %  10 %          0.30     0.8
//   0.2     16 %    37 %  10 %          0.24     0.4
//   0.3     11 %    42 %  11 %          0.18     0.2
//
// 0.1 keeps nearly all that is right; what it costs in wrong text halves with 0.2, and so would a
// third of the whole lines go. A larger model is surer, and more often right, at the same product.
double least_confidence(const Options& options) {
  return options.stop == StopRule::kNone ? 0 : static_cast<double>(options.confidence);
}

std::vector<std::size_t> unit_ends(std::string_view text, const Place& place) {
  const std::size_t begin = place.line_before.size();
  const std::string whole = std::string(place.line_before) + std::string(text);
  Scan read = scan(whole, place.language, place.state, Also::kSeparators);
  const Lexical at_cursor = scan(place.line_before, place.language, place.state).end;
  if (place.language.prose || at_cursor.in == Lexical::In::kComment) return clause_ends(text);

  constexpr char kStringEnd = '"';
  std::vector<Bracket> marks = std::move(read.brackets);
  for (const std::size_t at : read.closed) marks.push_back({at, kStringEnd});
  std::ranges::stable_sort(marks, {}, &Bracket::at);

  std::vector<std::size_t> ends;
  OwnBrackets own;
  for (const auto& [at, c] : marks) {
    if (at < begin) continue;
    const bool bracket = is_opener(c) || is_closer(c);
    if (bracket) own.take({at, c}, ends_line(whole, at));
    if (own.hinder() || is_opener(c)) continue;
    ends.push_back(at - begin + (is_closer(c) || c == ';' ? 1 : 0));
  }
  return ends;
}

Confident confident_part(std::string_view text, std::span<const TokenChance> chances,
                         const Place& place, double least) {
  const double whole = product_up_to(chances, text.size());
  if (!(whole < least)) return {text.size(), whole};
  Confident kept{0, whole};
  bool first = true;
  for (const std::size_t end : unit_ends(text, place)) {
    if (is_blank(text.substr(0, end))) continue;
    const double product = product_up_to(chances, end);
    if (product < least) {
      if (first) kept.confidence = product;
      break;
    }
    kept = {end, product};
    first = false;
  }
  return kept;
}

}  // namespace efimd::completion
