#include "engine/engine.h"

#include <algorithm>

#include "engine/backend/backend.h"
#include "engine/kv/kv_fingerprint.h"
#include "engine/local_engine.h"
#include "engine/model/model.h"

namespace efimd::engine {

namespace {

/// Tokens after which a step of one token costs kGrowth times what it costs after kTokensBefore, by what
/// it reads and computes. No measurement decides, so that it is the same on every start.
int soon_tokens(const Model& model, const Backend& backend) {
  constexpr double kGrowth = 1.3;
  constexpr int kTokensBefore = 512;
  /// Small models' steps are short at any length.
  constexpr int kAlways = 2048;
  /// Attention on the CPU computes longer than it reads: an element of a head takes as long as so
  /// many bytes of weights. Of a 0.5B model in Q8_0 on two cores of a Xeon a step takes 20.2 ms after
  /// 512 tokens, 22.7 after 4,096 and 25.9 after 8,192.
  constexpr double kElementBytes = 0.45;
  const ModelShape& shape = model.shape();
  const double elements = 2.0 * shape.layers * shape.heads * shape.head_width;
  double token_bytes = static_cast<double>(backend.page_bytes()) / kPageTokens;
  if (backend.kind() == "cpu") token_bytes = std::max(token_bytes, kElementBytes * elements);
  // Of a mixture only the experts that one token uses are read.
  const double active = static_cast<double>(model.active_parameters()) /
                        static_cast<double>(std::max<std::uint64_t>(1, model.parameters()));
  const double step_bytes =
      static_cast<double>(model.weight_bytes()) * active + kTokensBefore * token_bytes;
  const double tokens = kTokensBefore + (kGrowth - 1) * step_bytes / std::max(1.0, token_bytes);
  return static_cast<int>(std::clamp<double>(tokens, kAlways, 1 << 20));
}

}  // namespace

Result<std::unique_ptr<Engine>> make_engine(std::shared_ptr<const Model> model,
                                            std::unique_ptr<Backend> backend,
                                            const EngineOptions& options) {
  return make_engine(std::move(model), std::move(backend), options, std::nullopt);
}

Result<std::unique_ptr<Engine>> make_engine(std::shared_ptr<const Model> model,
                                            std::unique_ptr<Backend> backend,
                                            const EngineOptions& options,
                                            const std::optional<PageKey>& key) {
  ModelFacts facts{.digest = options.model_identity.value_or(model->digest()),
                   .layers = model->shape().layers,
                   .vocabulary = model->shape().vocabulary,
                   .context_tokens = model->shape().context_tokens,
                   .fragment_trained = model->fragment_trained()};
  facts.page_key = key;
  facts.soon_tokens = soon_tokens(*model, *backend);
  if (options.store) {
    const auto made = kv_fingerprint(*backend, facts.layers, facts.vocabulary);
    if (!made) return tl::unexpected(made.error());
    facts.digest = digest_of(std::as_bytes(std::span(&*made, 1)), facts.digest);
  }
  const Tokenizer* tokenizer = &model->tokenizer();
  return LocalEngine::make(facts, {std::move(model), tokenizer}, std::move(backend), options)
      .map([](std::unique_ptr<LocalEngine> engine) -> std::unique_ptr<Engine> { return engine; });
}

}  // namespace efimd::engine
