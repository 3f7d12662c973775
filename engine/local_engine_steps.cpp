// How LocalEngine evaluates a step, and what it keeps of one that was stopped.

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/wipe.h"
#include "engine/backend/backend.h"
#include "engine/local_engine.h"

namespace efimd::engine {

Result<void> LocalEngine::step(std::span<const BatchItem> items, std::stop_token stop) {
  if (Result<void> sound = check_items(items); !sound) return sound;
  const BatchItem& item = items.front();
  const bool may_stop = items.size() == 1 && item.logits_rows == 0 && step_parts() > 1;
  StoppedStep stopped;
  if (may_stop && stopped_tokens(item.sequence) > 0 &&
      std::ranges::equal(stopped_->tokens, item.tokens)) {
    stopped = std::move(stopped_->step);
    stopped_.reset();
  }
  for (const BatchItem& each : items) give_up_stopped(each.sequence);
  Result<void> done = reserve(items);
  if (done) done = run_step(items, stop, may_stop ? &stopped : nullptr);
  if (!done && done.error().fault == Fault::kStopped && stopped.layer > 0) {
    give_up_stopped();
    stopped_ = {item.sequence, {item.tokens.begin(), item.tokens.end()}, std::move(stopped)};
    return done;
  }
  wipe(std::as_writable_bytes(std::span(stopped.x)));  // text can be told from it
  if (!done)
    for (const BatchItem& each : items) find(each.sequence)->kv.abandon();
  return done;
}

Result<void> LocalEngine::reserve(std::span<const BatchItem> items) {
  const auto reserve_all = [&] {
    Result<void> done;
    for (const BatchItem& item : items)
      if (done) done = find(item.sequence)->kv.reserve(static_cast<int>(item.tokens.size()));
    return done;
  };
  Result<void> done = reserve_all();
  if (done || !stopped_) return done;
  give_up_stopped();
  return reserve_all();
}

Result<void> LocalEngine::run_step(std::span<const BatchItem> items, const std::stop_token& stop,
                                   StoppedStep* stopped) {
  std::vector<TokenId> tokens;
  std::vector<StepSequence> sequences;
  std::vector<int> rows;
  for (const BatchItem& item : items) {
    const KvSequence& kv = find(item.sequence)->kv;
    sequences.push_back({.first = static_cast<int>(tokens.size()),
                         .count = static_cast<int>(item.tokens.size()),
                         .position = kv.size(),
                         .page_table = kv.page_table()});
    tokens.insert(tokens.end(), item.tokens.begin(), item.tokens.end());
    const int end = static_cast<int>(tokens.size());
    for (int row = end - item.logits_rows; row < end; ++row) rows.push_back(row);
  }
  const Step step{.tokens = tokens, .sequences = sequences, .logits_rows = rows};
  const bool goes_on = stopped != nullptr && stopped->layer > 0;
  const auto begin = std::chrono::steady_clock::now();
  const Result<std::span<const float>> logits =
      forward(*backend_, facts_.layers, step, stop, stopped);
  if (!logits) return tl::unexpected(logits.error());
  if (!goes_on)
    tier_.measured(static_cast<int>(tokens.size()),
                   std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::steady_clock::now() - begin));

  std::span<const float> rest = *logits;
  for (const BatchItem& item : items) {
    KvSequence& kv = find(item.sequence)->kv;
    kv.commit(item.tokens);
    if (item.logits_rows == 0) continue;
    const std::size_t values =
        static_cast<std::size_t>(facts_.vocabulary) * static_cast<std::size_t>(item.logits_rows);
    keep_logits(item.sequence, kv.size() - item.logits_rows, item.logits_rows, rest.first(values));
    rest = rest.subspan(values);
  }
  return {};
}

int LocalEngine::stopped_tokens(SequenceId sequence) const {
  return stopped_ && stopped_->sequence == sequence ? static_cast<int>(stopped_->tokens.size()) : 0;
}

bool LocalEngine::goes_on_with(SequenceId id, std::span<const TokenId> tokens) const {
  if (stopped_tokens(id) == 0) return false;
  const std::span<const TokenId> held = find(id)->kv.tokens();
  const std::span<const TokenId> next = stopped_->tokens;
  return tokens.size() >= held.size() + next.size() &&
         std::ranges::equal(held, tokens.first(held.size())) &&
         std::ranges::equal(next, tokens.subspan(held.size(), next.size()));
}

void LocalEngine::give_up_stopped() {
  if (!stopped_) return;
  if (Sequence* const sequence = find(stopped_->sequence)) sequence->kv.abandon();
  wipe(std::as_writable_bytes(std::span(stopped_->step.x)));
  stopped_.reset();
}

}  // namespace efimd::engine
