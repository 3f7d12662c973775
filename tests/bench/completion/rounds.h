#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "daemon/text/document.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/bench/completion/baseline.h"
#include "tests/bench/completion/samples.h"

// The EFIM paper's workload (arXiv 2505.21889). Users have a prompt of about 2,355 tokens split
// around a hole and ask for 128 tokens, round by round. Between rounds, text is typed into the
// hole.

namespace efimd::bench {

/// Tokens of each answer.
inline constexpr int kRoundTokens = 128;
/// Typed between two rounds, and from there to the end of the line: about 20 tokens of code, at most
/// kRoundTypedTokens as a rule. The paper does not say how much.
inline constexpr std::size_t kRoundTypedBytes = 40;
inline constexpr int kRoundTypedTokens = 48;

/// How prompts are made to fit a model.
struct RoundsWindow {
  int prompt_tokens_max = 0;  ///< for Baseline::Setup
  int before = 0, after = 0;  ///< tokens of text on both sides of the hole

  /// Halves of `prompt_tokens`, as far as the windows that a model with `window_tokens` has allow:
  /// what is typed must find room in before, or plain FIM's window would move.
  static RoundsWindow of(int prompt_tokens, int rounds, int window_tokens);
};

/// What one user has: a text with a hole, and what is typed there before each round but the first.
struct RoundsUser {
  std::string uri;
  std::string text;
  std::size_t cursor = 0;
  std::vector<std::string> typed;
};
/// Users with parts of `sources`, one after the other and again from the first; each text begins
/// with a line of its own, so that users share no KV. kBadInput when the sources are too short.
Result<std::vector<RoundsUser>> rounds_users(const std::vector<std::string>& sources, int users,
                                             int rounds, const RoundsWindow& window,
                                             const engine::Tokenizer& tokenizer);

struct RoundsResult {
  Samples prompt, evaluated, reused, generated, first, latency;  ///< one value for each request
  double wall_s = 0;
};

/// The users at one baseline, which goes on past a model's end. In a round all ask at once and are
/// answered one after another, so latency includes the waiting. Compared baselines take their
/// rounds in turn, so that all see the same machine.
///
/// Borrows both.
class Rounds {
 public:
  Rounds(Baseline& baseline, const std::vector<RoundsUser>& users);

  /// One round of all users, who have typed since the last one.
  Result<void> run();
  const RoundsResult& result() const { return result_; }

 private:
  struct Desk {
    text::Document document;
    std::size_t cursor = 0;
  };
  /// Before each round but the first.
  void type();
  using Clock = std::chrono::steady_clock;
  Result<void> ask(std::size_t user, Clock::time_point arrived);
  void count(const completion::Receipt& receipt);

  Baseline& baseline_;
  const std::vector<RoundsUser>& users_;
  std::vector<Desk> desks_;
  std::size_t round_ = 0;
  RoundsResult result_;
};

}  // namespace efimd::bench
