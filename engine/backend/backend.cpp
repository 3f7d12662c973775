#include "engine/backend/backend.h"

#include <algorithm>
#include <string>

namespace efimd::engine {

bool well_formed(const Step& step, const Backend& backend) {
  const int rows = static_cast<int>(step.tokens.size());
  const auto fits = [&](const StepSequence& sequence) {
    const auto here = [&](PageIndex page) { return page >= 0 && page < backend.page_count(); };
    const auto end = static_cast<std::size_t>(sequence.position + sequence.count);
    return sequence.first >= 0 && sequence.count >= 1 && sequence.position >= 0 &&
           sequence.first + sequence.count <= rows &&
           sequence.page_table.size() * kPageTokens >= end &&
           std::ranges::all_of(sequence.page_table, here);
  };
  const auto is_row = [&](int row) { return row >= 0 && row < rows; };
  return rows >= 1 && rows <= backend.step_tokens_max() &&
         std::ranges::all_of(step.sequences, fits) && std::ranges::all_of(step.logits_rows, is_row);
}

Result<void> check_tokens(const Step& step, int vocabulary) {
  for (const TokenId token : step.tokens)
    if (token < 0 || token >= vocabulary)
      return fail(Fault::kBadInput, "token " + std::to_string(token) +
                                        " is outside the vocabulary of " +
                                        std::to_string(vocabulary));
  return {};
}

namespace {

Result<void> keep_residual(Backend& backend, int layer, StoppedStep& stopped) {
  const auto x = backend.residual();
  if (!x) return tl::unexpected(x.error());
  stopped.layer = layer;
  stopped.x.assign(x->begin(), x->end());  // over what it held: nothing is freed unwiped
  return {};
}

}  // namespace

Result<std::span<const float>> forward(Backend& backend, int layers, const Step& step,
                                       const std::stop_token& stop, StoppedStep* stopped) {
  const int first = stopped != nullptr ? stopped->layer : 0;
  Result<void> done = first > 0 ? backend.begin_behind(step, stopped->x) : backend.begin(step);
  if (stop.stop_possible()) backend.leave_off_at(&stop);
  for (int layer = first; done && layer < layers; ++layer) {
    // A layer that is stopped leaves x half changed, so what it began with is kept.
    if (stopped != nullptr && layer > first) done = keep_residual(backend, layer, *stopped);
    if (done && !stop.stop_requested()) done = run_layer(backend, layer);
    const bool is_whole = layer + 1 == layers && !backend.goes_on_behind_layers();
    if (done && stop.stop_requested() && !is_whole)
      done = fail(Fault::kStopped, "stopped within a step");
  }
  backend.leave_off_at(nullptr);
  if (!done) return tl::unexpected(std::move(done).error());
  if (step.logits_rows.empty()) return std::span<const float>();
  return backend.logits();
}

}  // namespace efimd::engine
