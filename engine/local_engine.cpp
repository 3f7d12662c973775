#include "engine/local_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/backend/backend.h"

namespace efimd::engine {
namespace {

/// KV-1's root: pages of another model, format or page size are never found.
Digest kv_root(Digest model, const std::string& format) {
  const std::string kind = fmt::format("kv {} pages of {}", format, kPageTokens);
  return digest_of(std::as_bytes(std::span(kind)), model);
}

int pages_in_budget(const Backend& backend, const EngineOptions& options) {
  const std::size_t pages =
      options.kv_budget_bytes / std::max<std::size_t>(1, backend.page_bytes());
  return static_cast<int>(
      std::min(pages, static_cast<std::size_t>(std::max(0, backend.page_count()))));
}

}  // namespace

Result<std::unique_ptr<LocalEngine>> LocalEngine::make(const ModelFacts& facts,
                                                       std::shared_ptr<const Tokenizer> tokenizer,
                                                       std::unique_ptr<Backend> backend,
                                                       const EngineOptions& options) {
  const int pages = pages_in_budget(*backend, options);
  if (pages == 0)
    return fail(Fault::kNoMemory,
                fmt::format("the KV budget of {} bytes holds no page of {} bytes ({} tokens)",
                            options.kv_budget_bytes, backend->page_bytes(), kPageTokens),
                "raise the KV budget");
  return std::unique_ptr<LocalEngine>(
      new LocalEngine(facts, std::move(tokenizer), std::move(backend), pages, options));
}

LocalEngine::LocalEngine(const ModelFacts& facts, std::shared_ptr<const Tokenizer> tokenizer,
                         std::unique_ptr<Backend> backend, int page_count,
                         const EngineOptions& options)
    : facts_(facts),
      tokenizer_(std::move(tokenizer)),
      backend_(std::move(backend)),
      store_(options.store),
      pool_(page_count, kv_root(facts.digest, backend_->page_format()), facts.page_key),
      tier_(pool_, *backend_, store_.get()),
      window_tokens_(
          std::min({facts.context_tokens, options.window_tokens_max, page_count * kPageTokens})),
      step_tokens_(std::max(1, std::min(options.step_tokens_max, backend_->step_tokens_max()))) {
  pool_.on_evict = [this](PageIndex page) { tier_.evicting(page); };
  pool_.on_give_back = [this](PageIndex page) { backend_->give_page_back(page); };
  pool_.on_overwrite = [this](PageIndex page) { return backend_->write_page(page, zeros_); };
}

LocalEngine::~LocalEngine() = default;

int LocalEngine::ample_tokens() const {
  constexpr int kPrompts = 3;
  const int in_memory = pool_.page_count() / kPrompts * kPageTokens;
  const int soon = facts_.soon_tokens > 0 ? facts_.soon_tokens : window_tokens_;
  return std::min({soon, window_tokens_, in_memory});
}

SequenceId LocalEngine::open_sequence() {
  const SequenceId id{next_id_++};
  sequences_.emplace(std::piecewise_construct, std::forward_as_tuple(id),
                     std::forward_as_tuple(pool_, *backend_, tier_));
  return id;
}

Result<SequenceId> LocalEngine::fork(SequenceId id) {
  const Sequence* from = find(id);
  if (from == nullptr) return fail(Fault::kNotFound, "the sequence is closed");
  const SequenceId copy = open_sequence();
  Sequence& sequence = *find(copy);
  from = find(id);
  if (Result<void> shared = sequence.kv.share(from->kv); !shared) {
    close_sequence(copy);
    return tl::unexpected(std::move(shared).error());
  }
  const int last = from->kv.size() - 1;
  const std::span<const float> row = row_at(*from, last);
  // A copy: to keep them may take the rows of the sequence that has had them longest.
  if (!row.empty()) keep_logits(copy, last, 1, std::vector(row.begin(), row.end()));
  return copy;
}

Result<PromptCost> LocalEngine::prefill(SequenceId id, std::span<const TokenId> tokens,
                                        PrefillOptions options) {
  Sequence* sequence = find(id);
  if (Result<void> sound = check_prompt(sequence, tokens); !sound)
    return tl::unexpected(std::move(sound).error());
  const int total = static_cast<int>(tokens.size());
  const int logits_begin = std::max(0, total - std::clamp(options.logits_rows, 1, kLogitsRowsMax));
  give_up_stopped(id);
  if (Result<void> ready = prepare(*sequence, tokens, logits_begin, options.stop); !ready)
    return tl::unexpected(std::move(ready).error());
  sequence->of_prefill = options.ahead ? &sequence->ahead_logits : &sequence->prompt_logits;
  Result<PromptCost> cost = evaluate_prompt(id, *sequence, tokens, logits_begin, options.stop);
  sequence->of_prefill = nullptr;
  return cost;
}

Result<PromptCost> LocalEngine::evaluate_prompt(SequenceId id, Sequence& sequence,
                                                std::span<const TokenId> tokens, int logits_begin,
                                                const std::stop_token& stop) {
  const int total = static_cast<int>(tokens.size());
  const int reused = sequence.kv.size();
  LogitsRows& rows = *sequence.of_prefill;
  rows.make_room(total - logits_begin);
  for (int position = logits_begin; position < reused; ++position)
    if (!rows.has(position)) rows.add(position, row_at(sequence, position));
  for (int done = reused; done < total; done = sequence.kv.size()) {
    if (stop.stop_requested())
      return fail(Fault::kStopped, fmt::format("stopped after {} of {} tokens", done, total));
    const int count = std::min(step_tokens_, total - done);
    const BatchItem item{
        .sequence = id,
        .tokens = tokens.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)),
        .logits_rows = std::max(0, done + count - std::max(done, logits_begin))};
    if (Result<void> evaluated = step({&item, 1}); !evaluated)
      return tl::unexpected(std::move(evaluated).error());
  }
  const int restored = std::min(std::exchange(sequence.restored, 0), reused);
  return PromptCost{.reused = reused, .evaluated = total - reused, .restored = restored};
}

Result<int> LocalEngine::rewind(SequenceId id, std::span<const TokenId> tokens) {
  Sequence* sequence = find(id);
  if (Result<void> sound = check_prompt(sequence, tokens); !sound)
    return tl::unexpected(std::move(sound).error());
  if (goes_on_with(id, tokens)) return sequence->kv.size();
  give_up_stopped(id);
  return reuse(*sequence, tokens, {});
}

int LocalEngine::resident(std::span<const TokenId> tokens) const {
  if (!store_) return pool_.resident(tokens);
  int held = 0;
  for (const Digest& page : pool_.identities(tokens)) {
    if (!pool_.is_resident(page) && !tier_.loadable(page)) break;
    held += kPageTokens;
  }
  return held;
}

void LocalEngine::set_source(SequenceId id, SourceId source) {
  if (Sequence* sequence = find(id)) sequence->kv.set_source(source);
}

Result<int> LocalEngine::restore(std::span<const TokenId> tokens, SourceId source,
                                 std::stop_token stop) {
  if (Result<void> known = check_tokens(tokens); !known)
    return tl::unexpected(std::move(known).error());
  // Holds the pages only as long as it takes to bring them all; then they are as any closed
  // sequence's.
  KvSequence visitor(pool_, *backend_, tier_);
  visitor.set_source(source);
  return visitor.reuse(tokens, Wanted::kInIdleTime, stop);
}

Result<int> LocalEngine::reuse(Sequence& sequence, std::span<const TokenId> tokens,
                               const std::stop_token& stop) {
  const std::span<const TokenId> held = sequence.kv.tokens();
  const auto differ = std::mismatch(held.begin(), held.end(), tokens.begin(), tokens.end()).first;
  sequence.drop_logits_from(static_cast<int>(differ - held.begin()));
  return sequence.kv.reuse(tokens, Wanted::kNow, stop);
}

Result<void> LocalEngine::prepare(Sequence& sequence, std::span<const TokenId> tokens,
                                  int logits_begin, const std::stop_token& stop) {
  const int total = static_cast<int>(tokens.size());
  Result<int> kept = reuse(sequence, tokens, stop);
  sequence.restored += sequence.kv.take_restored();
  int ready = logits_begin;
  while (ready < total && !row_at(sequence, ready).empty()) ++ready;
  if (kept && *kept > ready) {
    sequence.drop_logits_from(ready);
    kept = sequence.kv.rewind_to(ready);
  }
  if (!kept) return tl::unexpected(std::move(kept).error());

  const int missing = sequence.kv.pages_missing(total);
  if (missing > pool_.pages_available()) give_up_stopped();
  if (missing <= pool_.pages_available()) return {};
  return fail(Fault::kWindowFull,
              fmt::format("a prompt of {} tokens needs {} more KV pages, but other sequences leave "
                          "{} of {} ({} MiB)",
                          total, missing, pool_.pages_available(), pool_.page_count(),
                          kv_usage().budget_bytes >> 20U),
              "close other sequences or raise the KV budget");
}

void LocalEngine::keep_logits(SequenceId id, int first_position, int rows,
                              std::span<const float> logits) {
  std::erase(logits_kept_, id);
  logits_kept_.push_back(id);
  if (logits_kept_.size() > kLogitsKeptMax) {
    find(logits_kept_.front())->drop_logits_from(0);
    logits_kept_.erase(logits_kept_.begin());
  }
  const auto row_values = static_cast<std::size_t>(facts_.vocabulary);
  Sequence& sequence = *find(id);
  LogitsRows& kept = sequence.of_prefill != nullptr ? *sequence.of_prefill : sequence.logits;
  if (sequence.of_prefill == nullptr) kept.make_room(rows);
  for (int row = 0; row < rows; ++row)
    kept.add(first_position + row,
             logits.subspan(static_cast<std::size_t>(row) * row_values, row_values));
}

std::span<const float> LocalEngine::logits(SequenceId sequence, int back) const {
  const Sequence* found = find(sequence);
  return found == nullptr ? std::span<const float>() : row_at(*found, found->kv.size() - 1 - back);
}

std::span<const float> LocalEngine::row_at(const Sequence& sequence, int position) {
  for (const LogitsRows* const rows :
       {&sequence.prompt_logits, &sequence.ahead_logits, &sequence.logits})
    if (rows->has(position)) return rows->at(position);
  return {};
}

std::span<const TokenId> LocalEngine::held(SequenceId sequence) const {
  const Sequence* found = find(sequence);
  return found == nullptr ? std::span<const TokenId>() : found->kv.tokens();
}

KvUsage LocalEngine::kv_usage() const {
  return {.budget_bytes = static_cast<std::size_t>(pool_.page_count()) * backend_->page_bytes(),
          .used_bytes = static_cast<std::size_t>(pool_.pages_used()) * backend_->page_bytes(),
          .host = store_ ? store_->host_usage() : HostUsage{}};
}

std::string LocalEngine::device_kind() const { return backend_->kind(); }
std::string LocalEngine::device_name() const { return backend_->name(); }

LocalEngine::Sequence* LocalEngine::find(SequenceId sequence) {
  const auto found = sequences_.find(sequence);
  return found == sequences_.end() ? nullptr : &found->second;
}

const LocalEngine::Sequence* LocalEngine::find(SequenceId sequence) const {
  const auto found = sequences_.find(sequence);
  return found == sequences_.end() ? nullptr : &found->second;
}

Result<void> LocalEngine::check_tokens(std::span<const TokenId> tokens) const {
  const auto unknown = std::ranges::find_if(
      tokens, [&](TokenId token) { return token < 0 || token >= facts_.vocabulary; });
  if (unknown == tokens.end()) return {};
  return fail(Fault::kBadInput,
              fmt::format("token {} is outside the vocabulary of {}", *unknown, facts_.vocabulary));
}

Result<void> LocalEngine::check_prompt(const Sequence* sequence,
                                       std::span<const TokenId> tokens) const {
  if (sequence == nullptr) return fail(Fault::kNotFound, "the sequence is closed");
  if (tokens.empty()) return fail(Fault::kBadInput, "a prompt needs at least one token");
  if (Result<void> fits = check_window(tokens.size()); !fits) return fits;
  return check_tokens(tokens);
}

Result<void> LocalEngine::check_items(std::span<const BatchItem> items) const {
  std::size_t total = 0;
  for (std::size_t at = 0; at < items.size(); ++at) {
    const BatchItem& item = items[at];
    const Sequence* sequence = find(item.sequence);
    if (sequence == nullptr) return fail(Fault::kNotFound, "the sequence is closed");
    if (item.tokens.empty()) return fail(Fault::kBadInput, "a batch item has no tokens");
    if (item.logits_rows < 0 || item.logits_rows > static_cast<int>(item.tokens.size()))
      return fail(Fault::kBadInput, "a batch item wants the logits of tokens that it lacks");
    for (const BatchItem& other : items.first(at))
      if (other.sequence == item.sequence)
        return fail(Fault::kBadInput, "a batch names a sequence twice");
    if (Result<void> known = check_tokens(item.tokens); !known) return known;
    if (Result<void> fits = check_window(sequence->kv.tokens().size() + item.tokens.size()); !fits)
      return fits;
    total += item.tokens.size();
  }
  if (total <= static_cast<std::size_t>(step_tokens_)) return {};
  return fail(Fault::kBadInput,
              fmt::format("a batch of {} tokens is larger than a step of {}", total, step_tokens_));
}

Result<void> LocalEngine::check_window(std::size_t tokens) const {
  if (tokens <= static_cast<std::size_t>(window_tokens_)) return {};
  return fail(Fault::kWindowFull,
              fmt::format("{} tokens do not fit the window of {}", tokens, window_tokens_),
              "show the model less text, or raise the window or the KV budget");
}

}  // namespace efimd::engine
