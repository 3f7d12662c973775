#include "engine/forward.h"

namespace efimd::engine {

Result<std::span<const float>> forward(Backend& backend, int layers, const Step& step,
                                       const std::stop_token& stop) {
  Result<void> done = backend.begin(step);
  for (int layer = 0; done && layer < layers; ++layer) {
    if (stop.stop_requested()) return fail(Fault::kStopped, "stopped within a step");
    done = run_layer(backend, layer);
  }
  if (!done) return tl::unexpected(std::move(done).error());
  if (step.logits_rows.empty()) return std::span<const float>();
  return backend.logits();
}

}  // namespace efimd::engine
