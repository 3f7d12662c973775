#include "engine/lasting_engine.h"

#include <algorithm>
#include <utility>

namespace efimd::engine {

namespace {

/// A device fails so for good; every other failure is the request's.
bool is_devices(const Error& error) {
  return error.fault == Fault::kDeviceLost || error.fault == Fault::kNoMemory;
}

/// One after another, at most as many devices can fail as there are kinds.
constexpr int kDevicesMax = 4;

}  // namespace

Result<std::unique_ptr<LastingEngine>> LastingEngine::make(
    std::shared_ptr<const Tokenizer> tokenizer, Open open, std::shared_ptr<PageStore> store,
    std::chrono::seconds retry_after) {
  std::unique_ptr<LastingEngine> engine(
      new LastingEngine(std::move(tokenizer), std::move(open), std::move(store), retry_after));
  if (auto opened = engine->use_device(nullptr); !opened)
    return tl::unexpected(std::move(opened).error());
  return engine;
}

Result<void> LastingEngine::use_device(const Error* lost) {
  close_engine();
  auto opened = open_(lost);
  if (!opened) return tl::unexpected(std::move(opened).error());
  engine_ = *std::move(opened);
  fragment_trained_ = engine_->fragment_trained();
  window_tokens_ = engine_->window_tokens();
  ample_tokens_ = engine_->ample_tokens();
  step_tokens_ = engine_->step_tokens();
  device_kind_ = engine_->device_kind();
  device_name_ = engine_->device_name();
  model_ = engine_->model();
  const bool stands_in = device_kind_ == "cpu" && (lost != nullptr || lost_at_);
  lost_at_ = stands_in ? std::optional(std::chrono::steady_clock::now()) : std::nullopt;
  return {};
}

void LastingEngine::close_engine() {
  if (!engine_) return;
  for (auto& [id, sequence] : sequences_) {
    if (!sequence.open) continue;
    const auto held = engine_->held(sequence.inner);
    sequence.tokens.assign(held.begin(), held.end());
    sequence.open = false;
  }
  engine_.reset();
}

template <class Operation>
auto LastingEngine::lasting(const Operation& operation) -> decltype(operation()) {
  if (!engine_)
    if (auto opened = use_device(nullptr); !opened)
      return tl::unexpected(std::move(opened).error());
  auto done = operation();
  for (int device = 1; device < kDevicesMax && !done && is_devices(done.error()); ++device) {
    const Error lost = done.error();
    if (!use_device(&lost)) return done;  // none is left: what happened is what to tell
    done = operation();
  }
  return done;
}

SequenceId LastingEngine::open_sequence() {
  const SequenceId id{next_id_++};
  sequences_.try_emplace(id);
  return id;
}

void LastingEngine::close_sequence(SequenceId id) {
  if (const Sequence* sequence = find(id); sequence != nullptr && sequence->open)
    engine_->close_sequence(sequence->inner);
  sequences_.erase(id);
}

void LastingEngine::ensure_open(Sequence& sequence) {
  if (sequence.open) return;
  sequence.inner = engine_->open_sequence();
  sequence.open = true;
  engine_->set_source(sequence.inner, sequence.source);
  engine_->set_shown(sequence.inner, sequence.shown);
}

Result<void> LastingEngine::ensure_held(Sequence& sequence, const std::stop_token& stop) {
  if (sequence.open) return {};
  ensure_open(sequence);
  if (sequence.tokens.empty()) return {};
  auto held = engine_->prefill(sequence.inner, sequence.tokens, {.stop = stop});
  if (held) return {};
  // A failure does not forget the tokens that the sequence must hold.
  engine_->close_sequence(sequence.inner);
  sequence.open = false;
  return tl::unexpected(std::move(held).error());
}

Result<SequenceId> LastingEngine::fork(SequenceId id) {
  if (find(id) == nullptr) return fail(Fault::kNotFound, "the sequence is closed");
  const auto inner = lasting([&]() -> Result<SequenceId> {
    Sequence& sequence = *find(id);
    if (auto held = ensure_held(sequence, {}); !held)
      return tl::unexpected(std::move(held).error());
    return engine_->fork(sequence.inner);
  });
  if (!inner) return tl::unexpected(inner.error());
  const SequenceId copy = open_sequence();
  Sequence& sequence = *find(copy);
  sequence.inner = *inner;
  sequence.open = true;
  return copy;
}

Result<PromptCost> LastingEngine::prefill(SequenceId id, std::span<const TokenId> tokens,
                                          PrefillOptions options) {
  if (find(id) == nullptr) return fail(Fault::kNotFound, "the sequence is closed");
  return lasting([&] {
    ensure_open(*find(id));
    return engine_->prefill(find(id)->inner, tokens, options);
  });
}

Result<int> LastingEngine::rewind(SequenceId id, std::span<const TokenId> tokens) {
  if (find(id) == nullptr) return fail(Fault::kNotFound, "the sequence is closed");
  return lasting([&] {
    ensure_open(*find(id));
    return engine_->rewind(find(id)->inner, tokens);
  });
}

int LastingEngine::resident(std::span<const TokenId> tokens) const {
  return engine_ ? engine_->resident(tokens) : 0;
}

Result<void> LastingEngine::step(std::span<const BatchItem> items, std::stop_token stop) {
  for (const BatchItem& item : items)
    if (find(item.sequence) == nullptr) return fail(Fault::kNotFound, "the sequence is closed");
  return lasting([&]() -> Result<void> {
    std::vector<BatchItem> inner(items.begin(), items.end());
    for (BatchItem& item : inner) {
      Sequence& sequence = *find(item.sequence);
      if (auto held = ensure_held(sequence, stop); !held) return held;
      item.sequence = sequence.inner;
    }
    return engine_->step(inner, stop);
  });
}

int LastingEngine::stopped_tokens(SequenceId id) const {
  const Sequence* sequence = find(id);
  return sequence != nullptr && sequence->open ? engine_->stopped_tokens(sequence->inner) : 0;
}

std::span<const float> LastingEngine::logits(SequenceId id, int back) const {
  const Sequence* sequence = find(id);
  if (sequence == nullptr || !sequence->open) return {};
  return engine_->logits(sequence->inner, back);
}

std::span<const TokenId> LastingEngine::held(SequenceId id) const {
  const Sequence* sequence = find(id);
  if (sequence == nullptr) return {};
  return sequence->open ? engine_->held(sequence->inner)
                        : std::span<const TokenId>(sequence->tokens);
}

void LastingEngine::set_source(SequenceId id, SourceId source) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return;
  sequence->source = source;
  if (sequence->open) engine_->set_source(sequence->inner, source);
}

void LastingEngine::set_shown(SequenceId id, std::span<const SourceId> shown) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return;
  sequence->shown.assign(shown.begin(), shown.end());
  if (sequence->open) engine_->set_shown(sequence->inner, shown);
}

Result<int> LastingEngine::restore(std::span<const TokenId> tokens, SourceId source,
                                   std::stop_token stop) {
  return lasting([&] { return engine_->restore(tokens, source, stop); });
}

WriteBehind LastingEngine::write_behind(Leaving leaving) {
  return engine_ ? engine_->write_behind(leaving) : WriteBehind::kNothing;
}

void LastingEngine::visited(SourceId source, int longer) {
  if (engine_) {
    engine_->visited(source, longer);
  } else if (store_) {
    store_->visited(source, longer);
  }
}

void LastingEngine::forget(SourceId source) {
  if (engine_) {
    engine_->forget(source);
  } else if (store_) {
    store_->forget(source);
  }
}

KvUsage LastingEngine::kv_usage() const {
  if (engine_) return engine_->kv_usage();
  return {.host = store_ ? store_->host_usage() : HostUsage{}};
}

bool LastingEngine::overwrite_some() {
  return engine_ ? engine_->overwrite_some() : store_ && store_->overwrite_some();
}

void LastingEngine::release_device() {
  if (!engine_) return;
  // The CPU's memory goes back page by page (give_back_some()).
  const bool again = lost_at_ && std::chrono::steady_clock::now() - *lost_at_ >= retry_after_;
  if (device_kind_ == "cpu" && !again) return;
  while (engine_->write_behind(Leaving::kYes) == WriteBehind::kWrote) {
  }
  close_engine();
}

LastingEngine::Sequence* LastingEngine::find(SequenceId id) {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : &found->second;
}

const LastingEngine::Sequence* LastingEngine::find(SequenceId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : &found->second;
}

}  // namespace efimd::engine
