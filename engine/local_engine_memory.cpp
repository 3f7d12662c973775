// What LocalEngine does with KV that nobody needs: it overwrites what was forgotten, and gives memory back.

#include "engine/backend/backend.h"
#include "engine/local_engine.h"

namespace efimd::engine {

bool LocalEngine::overwrite_some() {
  if (forgot_) {
    zeros_.resize(backend_->page_bytes());
    backend_->overwrite_activations();
    give_up_stopped();
    for (auto& [id, sequence] : sequences_) sequence.leave_leftovers();
    pool_.set_stale_apart();
    forgot_ = false;
  }
  for (std::size_t bytes = 0; bytes < kOverwrittenBytes; bytes += backend_->page_bytes())
    if (!pool_.overwrite_one()) return store_ && store_->overwrite_some();
  return true;
}

bool LocalEngine::gives_back() const { return backend_->gives_pages_back(); }

bool LocalEngine::give_back_some(std::span<const SourceId> but) {
  return pool_.give_back_some(but,
                              1 + static_cast<int>(kOverwrittenBytes / backend_->page_bytes()));
}

}  // namespace efimd::engine
