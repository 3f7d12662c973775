#include "engine/backend/gpu/gpu_warm_up.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "engine/backend/size.h"

namespace efimd::engine::gpu {

namespace {

/// Tokens of a step on any device, and from there on in powers of two.
constexpr int kStepTokensMin = 64;
/// Tokens of the first step that is timed. WarmUp::run() has had one.
constexpr int kFewTokens = 4;
/// Of the shortest step whose products are a prompt's: a third tile is begun (kPromptTilesMin in kernels/launch.cpp).
constexpr int kPromptTokens = 17;

}  // namespace

Result<void> WarmUp::step(int count, int position) {
  const std::vector<TokenId> tokens(size(count));
  const std::vector<PageIndex> pages(size((position + count + kPageTokens - 1) / kPageTokens), 0);
  const StepSequence sequence{0, count, position, pages};
  const int row = 0;
  Result<void> done = backend_.begin({tokens, {&sequence, 1}, {&row, 1}});
  for (int layer = 0; done && layer < layers_; ++layer) done = run_layer(backend_, layer);
  if (!done) return done;
  return (with_output_ == WithOutput::kYes ? backend_.logits() : backend_.residual()).map([](auto) {
  });
}

Result<void> WarmUp::run(int split_tokens) {
  const int most = backend_.step_tokens_max();
  Result<void> done;
  // Products of one, of up to 16 and of more tokens have kernels of their own.
  for (const int wanted : {1, kFewTokens, kPromptTokens})
    if (done) done = step(std::min(wanted, most));
  return done ? step(1, split_tokens) : done;
}

Result<bool> WarmUp::is_within(double ms, int count) {
  using Clock = std::chrono::steady_clock;
  double least = INFINITY;
  // A device that was asleep is given another chance, one that is slow is not.
  for (int run = 0; run < 3 && least > ms && (run == 0 || least < 4 * ms); ++run) {
    const auto begin = Clock::now();
    if (auto done = step(count); !done) return tl::unexpected(std::move(done).error());
    least =
        std::min(least, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return least <= ms;
}

Result<int> WarmUp::tokens_within(double ms) {
  const int most = backend_.step_tokens_max();
  // A slow device need not take a long step to show it.
  for (int count = kFewTokens; count < most; count = std::max(kStepTokensMin, 2 * count)) {
    const auto twice = is_within(ms / 2, count);  // then twice as many will do
    if (!twice) return tl::unexpected(twice.error());
    if (!*twice) return std::min(most, std::max(kStepTokensMin, count));
  }
  return most;
}

}  // namespace efimd::engine::gpu
