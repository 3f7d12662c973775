#include "engine/engine.h"

#include "engine/backend/backend.h"
#include "engine/kv/kv_fingerprint.h"
#include "engine/local_engine.h"
#include "engine/model/model.h"

namespace efimd::engine {

Result<std::unique_ptr<Engine>> make_engine(std::shared_ptr<const Model> model,
                                            std::unique_ptr<Backend> backend,
                                            const EngineOptions& options) {
  ModelFacts facts{.digest = model->digest(),
                   .layers = model->shape().layers,
                   .vocabulary = model->shape().vocabulary,
                   .context_tokens = model->shape().context_tokens,
                   .fragment_trained = model->fragment_trained()};
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
