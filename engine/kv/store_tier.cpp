#include "engine/kv/store_tier.h"

#include <algorithm>
#include <vector>

#include "base/wipe.h"
#include "engine/backend/backend.h"

namespace efimd::engine {

namespace {

/// A step of fewer tokens is bound by reading the weights and says nothing of a page's worth.
constexpr int kMeasuredTokensMin = kPageTokens / 2;
/// More pages than this wait for nobody: a store that took none for so long will not miss them.
constexpr std::size_t kUnwrittenMax = std::size_t{1} << 20;

}  // namespace

void StoreTier::want(std::span<const Digest> pages) {
  if (store_ == nullptr) return;
  std::vector<Digest> stored;
  for (const Digest& page : pages) {
    if (pool_->is_resident(page)) continue;
    if (!store_->holds(page)) break;  // what is after it would lack its parent
    stored.push_back(page);
  }
  if (!stored.empty()) store_->want(stored);
}

std::chrono::microseconds StoreTier::patience(Wanted wanted, int pages) const {
  if (wanted == Wanted::kInIdleTime) return kIdlePatience;
  return evaluate_time_.count() == 0 ? kFirstPatience : evaluate_time_ * pages;
}

std::optional<PageIndex> StoreTier::load(const Missing& wanted_page, Wanted wanted,
                                         const std::stop_token& stop) {
  if (store_ == nullptr) return std::nullopt;
  if (wanted == Wanted::kNow && !worth_loading(wanted_page.identity)) return std::nullopt;
  if (!store_->holds(wanted_page.identity)) return std::nullopt;
  auto bytes = store_->load(wanted_page.identity, patience(wanted, wanted_page.pages), stop);
  if (!bytes || bytes->size() != backend_->page_bytes()) return std::nullopt;
  const Result<PageIndex> page = pool_->take();
  const bool written = page && backend_->write_page(*page, *bytes);
  wipe(*bytes);
  if (!page) return std::nullopt;
  if (!written) {
    pool_->give_back(*page);
    return std::nullopt;
  }
  const PageIndex sealed = pool_->seal(*page, wanted_page.parent, wanted_page.tokens);
  pool_->set_restored(sealed);
  return sealed;
}

void StoreTier::own(PageIndex page, SourceId source) {
  if (source == SourceId::kNone || !pool_->add_source(page, source)) return;
  if (store_ == nullptr) return;
  if (unwritten_.size() >= kUnwrittenMax) unwritten_.pop_front();
  unwritten_.emplace_back(page, pool_->identity(page));
}

WriteBehind StoreTier::write_one(Leaving leaving) {
  if (store_ == nullptr || !store_->is_usable()) return WriteBehind::kNothing;
  while (!unwritten_.empty()) {
    const auto [page, identity] = unwritten_.front();
    const bool resident = pool_->is(page, identity);
    if (resident && !store_->holds(identity) && !store_->takes_page(leaving))
      return WriteBehind::kLater;
    unwritten_.pop_front();
    // One that was evicted meanwhile was written then. A page that cannot be read is dropped.
    if (!resident) continue;
    // The device copies the next one while this one is handed over.
    expect(page, identity);
    if (!unwritten_.empty()) expect(unwritten_.front().first, unwritten_.front().second);
    if (write(page)) return WriteBehind::kWrote;
  }
  return WriteBehind::kNothing;
}

void StoreTier::expect(PageIndex page, const Digest& identity) {
  if (pool_->is(page, identity) && !store_->holds(identity)) backend_->expect_read(page);
}

void StoreTier::evicting(PageIndex page) {
  if (store_ == nullptr || pool_->sources(page).empty()) return;
  if (!store_->holds(pool_->identity(page)) && store_->takes_page(Leaving::kYes)) write(page);
}

bool StoreTier::write(PageIndex page) {
  const Digest identity = pool_->identity(page);
  const std::span<const SourceId> sources = pool_->sources(page);
  if (store_->holds(identity)) {
    store_->add_sources(identity, sources);
    return true;
  }
  PageToStore copy{identity, std::nullopt, {sources.begin(), sources.end()}, {}};
  if (const std::optional<PageIndex> parent = pool_->parent(page))
    copy.parent = pool_->identity(*parent);
  copy.bytes.resize(backend_->page_bytes());
  if (!backend_->read_page(page, copy.bytes)) return false;
  return store_->write(std::move(copy));
}

void StoreTier::measured(int tokens, std::chrono::microseconds time) {
  if (tokens < kMeasuredTokensMin) return;
  const auto page_time = time * kPageTokens / tokens;
  // A moving mean: one step in four decides, so that a busy moment does not.
  evaluate_time_ = evaluate_time_.count() == 0 ? page_time : (evaluate_time_ * 3 + page_time) / 4;
}

}  // namespace efimd::engine
