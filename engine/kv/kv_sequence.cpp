#include "engine/kv/kv_sequence.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

#include "engine/backend/backend.h"

namespace efimd::engine {

// A cut inside a sealed page copies even if the page could be unsealed. After the cut there is
// usually a suggestion that was just generated. If the user accepts it, the next prompt finds the
// sealed page by content. That costs one copy of at most P - 1 rows per keystroke (384 KiB for a
// 0.5B model).

Result<int> KvSequence::reuse(std::span<const TokenId> tokens, Wanted wanted,
                              const std::stop_token& stop) {
  const auto differ = std::mismatch(tokens_.begin(), tokens_.end(), tokens.begin(), tokens.end());
  const int common = static_cast<int>(differ.first - tokens_.begin());
  const int whole = common / kPageTokens;
  const std::vector<PageIndex> found = find_pages(tokens, whole, wanted, stop);
  if (found.empty()) return rewind_to(common);

  drop_pages(whole);
  table_.insert(table_.end(), found.begin(), found.end());
  sealed_ = table_size();
  tokens_.assign(tokens.begin(), tokens.begin() + table_size() * kPageTokens);
  for (int page = whole; page < sealed_; ++page) own(page);
  return size();
}

std::vector<PageIndex> KvSequence::find_pages(std::span<const TokenId> tokens, int first,
                                              Wanted wanted, const std::stop_token& stop) {
  std::vector<PageIndex> found;
  std::vector<Digest> identities;  // computed when the first page is missing
  std::optional<PageIndex> parent = parent_of(first);
  for (auto at = static_cast<std::size_t>(first); (at + 1) * kPageTokens <= tokens.size(); ++at) {
    const auto of_page = tokens.subspan(at * kPageTokens, kPageTokens);
    std::optional<PageIndex> page = pool_->find(parent, of_page);
    if (!page) {
      if (identities.empty()) {
        identities = pool_->identities(tokens);
        tier_->want(std::span(identities).subspan(at));
      }
      const auto pages = static_cast<int>(identities.size() - at);
      page = tier_->load({identities[at], parent, of_page, pages}, wanted, stop);
    }
    if (!page) break;
    found.push_back(*page);
    parent = page;
  }
  return found;
}

void KvSequence::set_source(SourceId source) {
  source_ = source;
  for (int page = 0; page < sealed_; ++page) own(page);
}

void KvSequence::set_shown(std::span<const SourceId> shown) {
  shown_.assign(shown.begin(), shown.end());
  if (sealed_ > 0) own(0);
}

void KvSequence::own(int page) {
  const PageIndex sealed = table_[static_cast<std::size_t>(page)];
  tier_->own(sealed, source_);
  // What must not be stored gets no owner by what it shows.
  if (page > 0 || source_ == SourceId::kNone) return;
  for (const SourceId shown : shown_) tier_->own(sealed, shown);
}

int KvSequence::take_restored() {
  int tokens = 0;
  for (int page = 0; page < sealed_; ++page)
    if (pool_->take_restored(table_[static_cast<std::size_t>(page)])) tokens += kPageTokens;
  return tokens;
}

Result<void> KvSequence::share(const KvSequence& other) {
  assert(tokens_.empty() && table_.empty());
  is_clean_ = false;
  const int rows = other.size() % kPageTokens;
  if (rows > 0) {
    Result<PageIndex> page = pool_->take();
    if (!page) return tl::unexpected(std::move(page).error());
    const PageIndex partial = other.table_[static_cast<std::size_t>(other.sealed_)];
    if (Result<void> copied = backend_->copy_page(partial, *page, rows); !copied) {
      pool_->give_back(*page);
      return copied;
    }
    table_.push_back(*page);
  }
  const auto full = other.table_.begin() + other.sealed_;
  for (auto page = other.table_.begin(); page != full; ++page) pool_->reference(*page);
  table_.insert(table_.begin(), other.table_.begin(), full);
  sealed_ = other.sealed_;
  tokens_ = other.tokens_;
  source_ = other.source_;
  shown_ = other.shown_;
  return {};
}

Result<int> KvSequence::rewind_to(int count) {
  assert(count >= 0 && count <= size());
  if (count < size()) is_clean_ = false;
  drop_pages(pages_for(count));
  tokens_.resize(static_cast<std::size_t>(count));
  if (count >= sealed_ * kPageTokens) return count;

  const Result<bool> kept = make_private(count % kPageTokens);
  if (kept && *kept) return count;
  drop_pages(table_size() - 1);
  tokens_.resize(static_cast<std::size_t>(table_size()) * kPageTokens);
  if (!kept) return tl::unexpected(kept.error());
  return size();
}

Result<void> KvSequence::reserve(int rows) {
  is_clean_ = false;
  const int before = table_size();
  for (int missing = pages_missing(size() + rows); missing > 0; --missing) {
    const Result<PageIndex> page = pool_->take();
    if (!page) {
      drop_pages(before);
      return tl::unexpected(page.error());
    }
    table_.push_back(*page);
  }
  return {};
}

void KvSequence::commit(std::span<const TokenId> tokens) {
  assert(size() + static_cast<int>(tokens.size()) <= table_size() * kPageTokens);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  for (; (sealed_ + 1) * kPageTokens <= size(); ++sealed_) {
    PageIndex& page = table_[static_cast<std::size_t>(sealed_)];
    const auto first = static_cast<std::size_t>(sealed_) * kPageTokens;
    page = pool_->seal(page, parent_of(sealed_), std::span(tokens_).subspan(first, kPageTokens));
    own(sealed_);
  }
}

void KvSequence::abandon() { drop_pages(pages_for(size())); }

void KvSequence::leave_leftovers() {
  if (is_clean_) return;
  abandon();
  is_clean_ = true;
  if (sealed_ == table_size()) return;
  const int rows = size() % kPageTokens;
  if (const Result<PageIndex> page = pool_->take()) {
    const std::vector<std::byte> zeros(backend_->page_bytes());
    const bool moved =
        backend_->write_page(*page, zeros) && backend_->copy_page(table_.back(), *page, rows);
    pool_->give_back(moved ? std::exchange(table_.back(), *page) : *page);
    if (moved) return;
  }
  drop_pages(sealed_);
  tokens_.resize(static_cast<std::size_t>(sealed_) * kPageTokens);
}

std::optional<PageIndex> KvSequence::parent_of(int page) const {
  if (page == 0) return std::nullopt;
  return table_[static_cast<std::size_t>(page) - 1];
}

void KvSequence::drop_pages(int first) {
  while (table_size() > first) {
    const PageIndex page = table_.back();
    table_.pop_back();
    if (sealed_ > table_size()) {
      pool_->release(page);
      --sealed_;
    } else {
      pool_->give_back(page);
    }
  }
}

Result<bool> KvSequence::make_private(int rows) {
  const PageIndex sealed = table_.back();
  if (const Result<PageIndex> page = pool_->take()) {
    if (Result<void> copied = backend_->copy_page(sealed, *page, rows); !copied) {
      pool_->give_back(*page);
      return tl::unexpected(std::move(copied).error());
    }
    pool_->release(sealed);
    table_.back() = *page;
  } else if (!pool_->unseal(sealed)) {
    return false;
  }
  --sealed_;
  return true;
}

}  // namespace efimd::engine
