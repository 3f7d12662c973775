#include "daemon/completion/answer/packed.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace efimd::completion {

namespace {

using Clock = std::chrono::steady_clock;
using State = PackedPrompt::State;

std::span<const engine::TokenId> rest_of(const PackedPrompt& prompt, int held, int most) {
  const std::span<const engine::TokenId> rest =
      std::span(prompt.tokens).subspan(static_cast<std::size_t>(held));
  return rest.first(std::min(rest.size(), static_cast<std::size_t>(most)));
}

/// Whether a prompt before this one evaluates a page or more that this one lacks.
bool waits(const engine::Engine& engine, std::span<const PackedPrompt> before,
           const PackedPrompt& prompt, int held) {
  return std::ranges::any_of(before, [&](const PackedPrompt& other) {
    if (other.state != State::kWaiting) return false;
    const auto shared = std::ranges::mismatch(other.tokens, prompt.tokens).in1;
    const auto pages = (shared - other.tokens.begin()) / engine::kPageTokens;
    const std::ptrdiff_t there = std::ssize(engine.held(other.sequence));
    return pages * engine::kPageTokens > std::max<std::ptrdiff_t>(held, there);
  });
}

/// One step's share of each prompt that need not wait; marks those that are whole.
Result<std::vector<engine::BatchItem>> next_step(engine::Engine& engine,
                                                 std::span<PackedPrompt> prompts, int tokens) {
  std::vector<engine::BatchItem> items;
  for (std::size_t at = 0; at < prompts.size() && tokens > 0; ++at) {
    PackedPrompt& prompt = prompts[at];
    if (prompt.state != State::kWaiting) continue;
    const Result<int> held = engine.rewind(prompt.sequence, prompt.tokens);
    if (!held) return tl::unexpected(held.error());
    if (*held == static_cast<int>(prompt.tokens.size())) {
      prompt.state = State::kWhole;
    } else if (!waits(engine, prompts.first(at), prompt, *held)) {
      items.push_back({.sequence = prompt.sequence, .tokens = rest_of(prompt, *held, tokens)});
      tokens -= static_cast<int>(items.back().tokens.size());
    }
  }
  return items;
}

}  // namespace

bool evaluate_packed(engine::Engine& engine, std::span<PackedPrompt> prompts,
                     const Packing& packing, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto items = next_step(engine, prompts, std::max(packing.step_tokens(), 1));
    if (!items) return false;
    if (items->empty()) return true;
    int tokens = 0;
    for (const engine::BatchItem& item : *items) tokens += static_cast<int>(item.tokens.size());
    const Clock::time_point begin = Clock::now();
    const Result<void> done = engine.step(*items, stop);
    if (done) {
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      packing.learned(tokens, ms);
      continue;
    }
    if (done.error().fault != Fault::kWindowFull) return false;
    // The last one may be what is too much for the others.
    const engine::SequenceId last = items->back().sequence;
    std::ranges::find(prompts, last, &PackedPrompt::sequence)->state = State::kNoRoom;
  }
  return false;
}

}  // namespace efimd::completion
