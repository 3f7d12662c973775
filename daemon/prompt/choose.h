#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "daemon/prompt/planner.h"

// The choice among several possible prompts. The rules in full: docs/efim.md.
//
//   the window moves only in large steps, so plans that keep an anchor are the cheap ones.
//   a first visit is answered from a cheap view; the full one takes over once it is whole.

namespace efimd::prompt {

/// The cost of the device's steps: measured points (tokens, milliseconds), by growing tokens.
struct StepCosts {
  struct Point {
    int tokens = 0;
    double ms = 0;
  };
  std::vector<Point> points;

  /// Between points and past the last one the cost is a straight line. Without points it is that of
  /// 4,000 tokens/s, a fast device, so that fewer tokens are still better.
  double ms(int tokens) const;
  /// Most tokens whose step takes at most `ms`; 1 at least.
  int tokens_within(double ms) const;
  /// A step of `tokens` tokens took `ms`. So no smaller step costs more, and no larger one costs
  /// more than several such steps. This corrects a table that was measured on a busy machine.
  void learn(int tokens, double ms);
};

/// A plan that could serve a request, and what it would cost.
struct Candidate {
  Plan plan;
  int remembered = -1;  ///< index of the anchor that it keeps; -1: a new one
  int evaluated = 0;    ///< tokens that are not in KV
  double ms = 0;        ///< expected for them
};

/// How long a first answer may take to come for a fuller view of the text.
inline constexpr double kFirstAnswerMs = 150;
/// The most that a fuller view may cost over an anchor that serves already.
inline constexpr double kFullerMs = 15;

/// The index of the candidate to take; there is at least one. It is the fullest view within a
/// limit, and of several such the cheapest. If none is within it, the cheapest. The limit is
/// kFirstAnswerMs, or kFullerMs over the cheapest kept anchor if that is less. So a keystroke never
/// pays for work that idle time will do.
std::size_t choose(std::span<const Candidate> candidates);

/// The rank of what an anchor shows, by its view: 0 for the fullest. A full view or the first
/// window's comes later if its increment has grown; a full view also if it lacks a head.
int view_rank(const Anchor& anchor);
/// The same of a view without a grown increment.
constexpr int view_rank_of(View view) { return 2 * static_cast<int>(view); }
/// Whether its increment is so long that a new anchor is worth its evaluation: kGrownTokens, and an
/// eighth of after, which a new anchor evaluates again.
bool has_grown(const Anchor& anchor);
/// Whether it may double before it has grown: then a fuller view of the same hole lasts.
bool has_room(const Anchor& anchor);

/// "full, kept: 2 of 361 tokens, 31 ms", for `efimd status --why`.
std::string describe(const Candidate& candidate);

}  // namespace efimd::prompt
