#include "engine/kv/kv_pool.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace efimd::engine {

namespace {

Digest keyed_digest(std::span<const std::byte> bytes, const Digest& parent, const PageKey& key) {
  static_assert(sizeof(PageKey) >= XXH3_SECRET_SIZE_MIN);
  std::array<std::byte, sizeof(Digest) + kPageTokens * sizeof(TokenId)> both{};
  assert(bytes.size() + sizeof(Digest) == both.size());
  std::memcpy(both.data(), &parent, sizeof parent);
  std::ranges::copy(bytes, both.begin() + sizeof parent);
  const XXH128_hash_t hash =
      XXH3_128bits_withSecret(both.data(), both.size(), key.data(), key.size());
  return {hash.low64, hash.high64};
}

}  // namespace

KvPool::KvPool(int page_count, Digest root, const std::optional<PageKey>& key)
    : root_(root), key_(key), pages_(static_cast<std::size_t>(page_count > 0 ? page_count : 0)) {
  free_.reserve(pages_.size());
  written_.resize(pages_.size());
  in_memory_.resize(pages_.size());
  for (PageIndex page = this->page_count() - 1; page >= 0; --page) free_.push_back(page);
}

Result<PageIndex> KvPool::take() {
  if (free_.empty() && !overwrite_one()) evict_first();
  if (free_.empty())
    return fail(Fault::kWindowFull,
                fmt::format("all {} KV pages ({} tokens) are in use", page_count(),
                            page_count() * kPageTokens),
                "close other sequences or raise the KV budget");
  const PageIndex page = free_.back();
  free_.pop_back();
  at(page) = Page{.state = State::kPrivate, .references = 1};
  written_[static_cast<std::size_t>(page)] = in_memory_[static_cast<std::size_t>(page)] = true;
  return page;
}

void KvPool::give_back(PageIndex page) {
  assert(at(page).state == State::kPrivate);
  at(page) = Page{};
  free_.push_back(page);
}

PageIndex KvPool::seal(PageIndex page, std::optional<PageIndex> parent,
                       std::span<const TokenId> tokens) {
  assert(at(page).state == State::kPrivate && tokens.size() == kPageTokens);
  if (const std::optional<PageIndex> resident = find(parent, tokens)) {
    give_back(page);
    return *resident;
  }
  Page& sealed = at(page);
  sealed.state = State::kSealed;
  sealed.identity = identity_behind(parent, tokens);
  sealed.parent = parent.value_or(kNoPage);
  sealed.last_use = order_.use();
  if (parent) ++at(*parent).children;
  index_.emplace(sealed.identity, page);
  return page;
}

bool KvPool::unseal(PageIndex page) {
  Page& sealed = at(page);
  assert(sealed.state == State::kSealed);
  if (sealed.references != 1 || sealed.children != 0) return false;
  unlink(page);
  sealed = Page{.state = State::kPrivate, .references = 1};
  return true;
}

std::optional<PageIndex> KvPool::find(std::optional<PageIndex> parent,
                                      std::span<const TokenId> tokens) {
  const auto found = index_.find(identity_behind(parent, tokens));
  if (found == index_.end()) return std::nullopt;
  reference(found->second);
  return found->second;
}

int KvPool::resident(std::span<const TokenId> tokens) const {
  Digest parent = root_;
  int held = 0;
  for (; tokens.size() >= kPageTokens; tokens = tokens.subspan(kPageTokens)) {
    parent = identity_behind(parent, tokens.first(kPageTokens));
    if (!index_.contains(parent)) break;
    held += kPageTokens;
  }
  return held;
}

std::vector<Digest> KvPool::identities(std::span<const TokenId> tokens) const {
  std::vector<Digest> pages;
  for (Digest parent = root_; tokens.size() >= kPageTokens; tokens = tokens.subspan(kPageTokens)) {
    parent = identity_behind(parent, tokens.first(kPageTokens));
    pages.push_back(parent);
  }
  return pages;
}

bool KvPool::add_source(PageIndex page, SourceId source) {
  assert(at(page).state == State::kSealed);
  std::vector<SourceId>& sources = at(page).sources;
  if (std::ranges::find(sources, source) != sources.end()) return false;
  sources.push_back(source);
  if (evictable_.erase({at(page).until, page}) > 0) offer(page);
  return true;
}

void KvPool::visited(SourceId source, int longer) {
  const int before = order_.longer_of(source);
  order_.visited(source, longer);
  if (order_.longer_of(source) == before) return;
  for (PageIndex page = 0; page < page_count(); ++page) {
    const std::vector<SourceId>& sources = at(page).sources;
    if (evictable(at(page)) && std::ranges::find(sources, source) != sources.end()) {
      evictable_.erase({at(page).until, page});
      offer(page);
    }
  }
}

void KvPool::forget(SourceId source) {
  const auto of_source = [&](const Page& page) {
    return (page.sources.empty() && page.references == 0) ||
           std::ranges::find(page.sources, source) != page.sources.end();
  };
  enum class Fate : std::uint8_t { kOpen, kStays, kGoes };
  std::vector<Fate> fates(pages_.size(), Fate::kOpen);
  const auto fate = [&](PageIndex page) -> Fate& { return fates[static_cast<std::size_t>(page)]; };
  // A page goes if it is of the source, or if its parent goes: up to one whose fate is known, and back.
  std::vector<PageIndex> way;
  for (PageIndex index = 0; index < page_count(); ++index) {
    PageIndex page = index;
    for (; page != kNoPage && fate(page) == Fate::kOpen; page = at(page).parent)
      way.push_back(page);
    bool behind = page != kNoPage && fate(page) == Fate::kGoes;
    for (; !way.empty(); way.pop_back()) {
      const Page& each = at(way.back());
      behind = each.state == State::kSealed && (behind || of_source(each));
      fate(way.back()) = behind ? Fate::kGoes : Fate::kStays;
    }
  }
  // A parent can go once its last child has.
  for (PageIndex index = 0; index < page_count(); ++index)
    for (PageIndex page = index;
         page != kNoPage && fate(page) == Fate::kGoes && evictable(at(page));) {
      const PageIndex parent = at(page).parent;
      evict(page);
      page = parent;
    }
  order_.forget(source);
}

bool KvPool::give_back_some(std::span<const SourceId> but, int pages_max) {
  int pages = 0;
  for (auto next = evictable_.begin(); next != evictable_.end() && pages < pages_max;) {
    // A parent that can go after its last child goes with it, before any others.
    for (PageIndex page = (next++)->second; page != kNoPage && pages < pages_max;) {
      const Page& unused = at(page);
      if (!evictable(unused) ||
          std::ranges::find_first_of(unused.sources, but) != unused.sources.end())
        break;
      const PageIndex parent = unused.parent;
      if (on_evict) on_evict(page);
      evict(page);
      page = parent;
      ++pages;
    }
  }
  const auto give_back = [&](PageIndex page) {
    const auto index = static_cast<std::size_t>(page);
    if (!in_memory_[index] || pages >= pages_max) return;
    on_give_back(page);
    in_memory_[index] = written_[index] = false;
    ++pages;
  };
  std::ranges::for_each(free_, give_back);
  std::ranges::for_each(stale_, give_back);
  std::erase_if(stale_, [&](PageIndex page) {
    if (in_memory_[static_cast<std::size_t>(page)]) return false;
    free_.push_back(page);
    return true;
  });
  return pages >= pages_max;
}

void KvPool::set_stale_apart() {
  std::erase_if(free_, [&](PageIndex page) {
    if (!written_[static_cast<std::size_t>(page)]) return false;
    written_[static_cast<std::size_t>(page)] = false;
    stale_.push_back(page);
    return true;
  });
}

bool KvPool::overwrite_one() {
  if (stale_.empty()) return false;
  const PageIndex page = stale_.back();
  stale_.pop_back();
  if (on_overwrite) static_cast<void>(on_overwrite(page));
  free_.push_back(page);
  return true;
}

void KvPool::reference(PageIndex page) {
  Page& sealed = at(page);
  assert(sealed.state == State::kSealed);
  if (sealed.references++ == 0) {
    --unreferenced_;
    evictable_.erase({sealed.until, page});
  }
  sealed.last_use = order_.use();
}

void KvPool::release(PageIndex page) {
  Page& sealed = at(page);
  assert(sealed.state == State::kSealed && sealed.references > 0);
  sealed.last_use = order_.use();
  if (--sealed.references > 0) return;
  ++unreferenced_;
  offer(page);
}

Digest KvPool::identity(PageIndex page) const {
  assert(at(page).state == State::kSealed);
  return at(page).identity;
}

Digest KvPool::identity_behind(std::optional<PageIndex> parent,
                               std::span<const TokenId> tokens) const {
  return identity_behind(parent ? identity(*parent) : root_, tokens);
}

Digest KvPool::identity_behind(const Digest& parent, std::span<const TokenId> tokens) const {
  return key_ ? keyed_digest(std::as_bytes(tokens), parent, *key_)
              : digest_of(std::as_bytes(tokens), parent);
}

void KvPool::offer(PageIndex page) {
  Page& unused = at(page);
  if (!evictable(unused)) return;
  unused.until = order_.until(unused.last_use, unused.sources);
  evictable_.emplace(unused.until, page);
}

std::optional<PageIndex> KvPool::parent(PageIndex page) const {
  const PageIndex parent = at(page).parent;
  return parent == kNoPage ? std::nullopt : std::optional(parent);
}

void KvPool::evict_first() {
  if (evictable_.empty()) return;
  const PageIndex page = evictable_.begin()->second;
  if (on_evict) on_evict(page);
  evict(page);
}

void KvPool::evict(PageIndex page) {
  evictable_.erase({at(page).until, page});
  --unreferenced_;
  unlink(page);
  at(page) = Page{};
  free_.push_back(page);
}

void KvPool::unlink(PageIndex page) {
  const Page& sealed = at(page);
  index_.erase(sealed.identity);
  if (sealed.parent == kNoPage) return;
  --at(sealed.parent).children;
  offer(sealed.parent);
}

std::string KvPool::check() const {
  std::vector<int> children(pages_.size(), 0);
  std::size_t sealed = 0;
  std::size_t open = 0;
  int unreferenced = 0;
  std::size_t leaves = 0;
  for (const Page& page : pages_) {
    if (page.state == State::kFree) ++open;
    if (page.state != State::kSealed) continue;
    ++sealed;
    if (page.references == 0) ++unreferenced;
    if (evictable(page)) ++leaves;
    if (page.parent != kNoPage) ++children[static_cast<std::size_t>(page.parent)];
  }
  std::set<PageIndex> free(free_.begin(), free_.end());
  free.insert(stale_.begin(), stale_.end());
  if (static_cast<int>(free.size()) != pages_free()) return "a page is free twice";
  if (free.size() != open) return "the free list is not the free pages";
  if (index_.size() != sealed) return "KV-1: the index is not the sealed pages";
  if (unreferenced != unreferenced_) return "the count of unreferenced pages is wrong";
  if (evictable_.size() != leaves) return "KV-3: the evictable pages are not the unused leaves";
  for (const PageIndex page : free)
    if (at(page).state != State::kFree) return fmt::format("page {} is free and in use", page);
  for (PageIndex page = 0; page < page_count(); ++page)
    if (std::string fault = check_page(page, children[static_cast<std::size_t>(page)]);
        !fault.empty())
      return fault;
  return {};
}

std::string KvPool::check_page(PageIndex index, int children) const {
  const Page& page = at(index);
  if (page.children != children)
    return fmt::format("page {} counts {} children of {}", index, page.children, children);
  if (page.references < 0) return fmt::format("page {} has negative references", index);
  if (page.state == State::kFree && page.references != 0)
    return fmt::format("free page {} is referenced", index);
  if (page.state == State::kPrivate && page.references != 1)
    return fmt::format("KV-2: private page {} has {} owners", index, page.references);
  if (page.state != State::kSealed) return {};
  const auto named = index_.find(page.identity);
  if (named == index_.end() || named->second != index)
    return fmt::format("KV-1: sealed page {} is not under its identity", index);
  if (evictable(page) && (!evictable_.contains({page.until, index}) ||
                          page.until != order_.until(page.last_use, page.sources)))
    return fmt::format("KV-3: unused leaf {} is not evictable, or not in its order", index);
  if (page.parent == kNoPage) return {};
  if (at(page.parent).state != State::kSealed)
    return fmt::format("KV-3: page {} outlived its parent {}", index, page.parent);
  if (page.references > 0 && at(page.parent).references == 0)
    return fmt::format("page {} is referenced, its parent {} is not", index, page.parent);
  return {};
}

}  // namespace efimd::engine
