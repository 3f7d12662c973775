#include "engine/kv/kv_pool.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <set>

using namespace efimd;
using namespace efimd::engine;

namespace {

std::vector<TokenId> page_of(TokenId first) {
  std::vector<TokenId> tokens(kPageTokens);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// A chain of sealed pages, as a sequence would hold it.
std::vector<PageIndex> sealed_chain(KvPool& pool, const std::vector<TokenId>& firsts) {
  std::vector<PageIndex> pages;
  for (const TokenId first : firsts) {
    const auto parent = pages.empty() ? std::nullopt : std::optional(pages.back());
    pages.push_back(pool.seal(pool.take().value(), parent, page_of(first)));
  }
  return pages;
}

void release_all(KvPool& pool, const std::vector<PageIndex>& pages) {
  for (auto page = pages.rbegin(); page != pages.rend(); ++page) pool.release(*page);
}

/// Whether the chain's last page is resident; leaves references as they were.
bool resident(KvPool& pool, const std::vector<TokenId>& firsts) {
  std::vector<PageIndex> found;
  for (const TokenId first : firsts) {
    const auto parent = found.empty() ? std::nullopt : std::optional(found.back());
    const auto page = pool.find(parent, page_of(first));
    if (!page) break;
    found.push_back(*page);
  }
  release_all(pool, found);
  return found.size() == firsts.size();
}

}  // namespace

TEST_CASE("a sealed page is found by root, parent and tokens, and by nothing else (KV-1)") {
  KvPool pool(8, Digest{1, 1});
  const auto chain = sealed_chain(pool, {10, 20});
  CHECK(pool.find(std::nullopt, page_of(10)) == chain[0]);
  CHECK(pool.find(chain[0], page_of(20)) == chain[1]);
  CHECK_FALSE(pool.find(std::nullopt, page_of(20)));
  CHECK_FALSE(pool.find(chain[1], page_of(20)));
  CHECK_FALSE(pool.find(chain[0], page_of(21)));

  KvPool other(8, Digest{2, 2});
  const auto same_tokens = sealed_chain(other, {10});
  CHECK(other.identity(same_tokens[0]) != pool.identity(chain[0]));
}

TEST_CASE("under another key the same tokens are another page (KV-1)") {
  PageKey key{};
  key[7] = std::byte{1};
  std::vector<Digest> identities;
  for (const auto& each :
       {std::optional<PageKey>(), std::optional(PageKey{}), std::optional(key)}) {
    KvPool pool(2, Digest{1, 1}, each);
    const auto page = sealed_chain(pool, {10})[0];
    CHECK(pool.identities(page_of(10)) == std::vector<Digest>{pool.identity(page)});
    CHECK(pool.resident(page_of(10)) == kPageTokens);
    identities.push_back(pool.identity(page));
  }
  CHECK(identities[0] != identities[1]);
  CHECK(identities[1] != identities[2]);
}

TEST_CASE("sealing content that is resident shares the resident page (KV-2)") {
  KvPool pool(4, {});
  const PageIndex first = pool.seal(pool.take().value(), std::nullopt, page_of(1));
  CHECK(pool.seal(pool.take().value(), std::nullopt, page_of(1)) == first);
  CHECK(pool.pages_used() == 1);
  pool.release(first);
  CHECK(pool.pages_available() == 3);
  pool.release(first);
  CHECK(pool.pages_available() == 4);
  CHECK(pool.check().empty());
}

TEST_CASE(
    "eviction takes unused leaves, oldest use first, and never a parent before its child (KV-3)") {
  const std::vector<std::vector<TokenId>> order = {{1, 2}, {1}, {3, 4}, {3}};
  for (std::size_t evicted = 1; evicted <= order.size(); ++evicted) {
    KvPool pool(4, {});
    const auto older = sealed_chain(pool, {1, 2});
    const auto newer = sealed_chain(pool, {3, 4});
    release_all(pool, older);
    release_all(pool, newer);
    for (std::size_t taken = 0; taken < evicted; ++taken) REQUIRE(pool.take().has_value());
    CHECK(pool.check() == "");
    for (std::size_t at = 0; at < order.size(); ++at) {
      INFO("chain " << at << " after " << evicted << " evictions");
      CHECK(resident(pool, order[at]) == (at >= evicted));
    }
  }
}

TEST_CASE("a page that was used again outlives one that was not") {
  KvPool pool(2, {});
  release_all(pool, sealed_chain(pool, {1}));
  release_all(pool, sealed_chain(pool, {2}));
  REQUIRE(resident(pool, {1}));
  REQUIRE(pool.take().has_value());
  CHECK(resident(pool, {1}));
  CHECK_FALSE(resident(pool, {2}));
}

TEST_CASE(
    "the leaf of a used chain is evicted before its parent, which other sequences may share") {
  KvPool pool(3, {});
  release_all(pool, sealed_chain(pool, {1, 2}));
  const auto root = pool.find(std::nullopt, page_of(1));
  REQUIRE(root);
  REQUIRE(pool.take().has_value());  // the free page
  REQUIRE(pool.take().has_value());  // evicts {1, 2}
  CHECK_FALSE(resident(pool, {1, 2}));
  CHECK(resident(pool, {1}));
  CHECK(pool.take().error().fault == Fault::kWindowFull);
  CHECK(pool.check().empty());
}

TEST_CASE("a pool whose pages are all in use says how many and what to do") {
  KvPool pool(2, {});
  REQUIRE(pool.take().has_value());
  const PageIndex held = pool.seal(pool.take().value(), std::nullopt, page_of(1));
  const auto refused = pool.take();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().fault == Fault::kWindowFull);
  CHECK(refused.error().message() ==
        "all 2 KV pages (64 tokens) are in use; close other sequences or raise the KV budget");
  pool.release(held);
  CHECK(pool.take().has_value());
}

TEST_CASE("only the sole owner of a childless page may unseal it") {
  KvPool pool(4, {});
  const auto chain = sealed_chain(pool, {1, 2});
  CHECK_FALSE(pool.unseal(chain[0]));
  pool.reference(chain[1]);
  CHECK_FALSE(pool.unseal(chain[1]));
  pool.release(chain[1]);
  REQUIRE(pool.unseal(chain[1]));
  CHECK_FALSE(pool.find(chain[0], page_of(2)));
  CHECK(pool.check().empty());
  pool.give_back(chain[1]);
  pool.release(chain[0]);
  CHECK(pool.pages_available() == 4);
  CHECK(pool.check().empty());
}

namespace {

/// Sequences as the pool sees them: sealed chains, each with at most one private page.
class RandomUse {
 public:
  RandomUse(KvPool& pool, unsigned seed) : pool_(pool), random_(seed), chains_(6) {}

  void step() {
    Chain& chain = chains_[below(chains_.size())];
    switch (below(11)) {
      case 0:
        return grow(chain);
      case 1:
        return grow(chain);
      case 2:
        return drop(chain, below(chain.sealed.size() + 1));
      case 3:
        return adopt(chain);
      case 4:
        return unseal(chain);
      case 5:
        return pool_.set_stale_apart();
      case 6:
        pool_.overwrite_one();
        return;
      case 7:
        pool_.give_back_some({}, static_cast<int>(below(4)));
        return;
      case 8:
        return pool_.visited(source(), static_cast<int>(below(30)));
      case 9:
        if (!chain.sealed.empty())
          pool_.add_source(chain.sealed[below(chain.sealed.size())], source());
        return;
      default:
        return copy(chain, chains_[below(chains_.size())]);
    }
  }

 private:
  struct Chain {
    std::vector<PageIndex> sealed;
    std::optional<PageIndex> open;
    std::optional<PageIndex> end() const {
      return sealed.empty() ? std::nullopt : std::optional(sealed.back());
    }
  };
  std::size_t below(std::size_t limit) { return random_() % limit; }
  SourceId source() { return SourceId{static_cast<std::uint32_t>(below(5))}; }
  std::vector<TokenId> content() { return page_of(static_cast<TokenId>(below(3))); }

  void grow(Chain& chain) {
    if (chain.open) {
      chain.sealed.push_back(pool_.seal(*chain.open, chain.end(), content()));
      chain.open.reset();
    } else if (const auto page = pool_.take()) {
      chain.open = *page;
    } else {
      CHECK(page.error().fault == Fault::kWindowFull);
      CHECK(pool_.pages_available() == 0);
    }
  }
  void drop(Chain& chain, std::size_t keep) {
    if (chain.open) pool_.give_back(*chain.open);
    chain.open.reset();
    for (; chain.sealed.size() > keep; chain.sealed.pop_back()) pool_.release(chain.sealed.back());
  }
  void adopt(Chain& chain) {
    drop(chain, chain.sealed.size());
    while (const auto page = pool_.find(chain.end(), content())) chain.sealed.push_back(*page);
  }
  void unseal(Chain& chain) {
    drop(chain, chain.sealed.size());
    if (chain.sealed.empty() || !pool_.unseal(chain.sealed.back())) return;
    chain.open = chain.sealed.back();
    chain.sealed.pop_back();
  }
  void copy(Chain& to, const Chain& from) {
    if (&to == &from) return;
    drop(to, 0);
    for (const PageIndex page : from.sealed) {
      pool_.reference(page);
      to.sealed.push_back(page);
    }
  }

  KvPool& pool_;
  std::mt19937 random_;
  std::vector<Chain> chains_;
};

}  // namespace

TEST_CASE("every invariant holds under thousands of random operations, whatever the pressure") {
  const auto [pages, seed] =
      GENERATE(std::pair{4, 1U}, std::pair{9, 2U}, std::pair{17, 3U}, std::pair{64, 4U});
  KvPool pool(pages, Digest{3, 4});
  pool.on_give_back = [](PageIndex) {};
  RandomUse use(pool, seed);
  for (int step = 0; step < 5000; ++step) {
    use.step();
    INFO("pages " << pages << ", step " << step);
    REQUIRE(pool.check() == "");
  }
}

TEST_CASE("a document that is kept longer outlives those used later, by so many visits (KV-3)") {
  constexpr SourceId kOften{1}, kOnce{2};
  for (const int longer : {0, 1, 2, 3}) {
    KvPool pool(2, Digest{});
    pool.visited(kOften, longer);
    const auto often = sealed_chain(pool, {10});
    pool.add_source(often[0], kOften);
    release_all(pool, often);
    pool.visited(SourceId::kNone, 0);
    pool.visited(kOnce, 0);
    const auto once = sealed_chain(pool, {20});
    pool.add_source(once[0], kOnce);
    release_all(pool, once);
    REQUIRE(pool.take().has_value());
    INFO("kept longer by " << longer);
    CHECK(resident(pool, {10}) == (longer == 3));
    CHECK(resident(pool, {10}) != resident(pool, {20}));
    CHECK(pool.check() == "");
  }
}

TEST_CASE("a scan of many documents does not push out one that is visited often (KV-3)") {
  constexpr SourceId kOften{1};
  KvPool pool(8, Digest{});
  const auto visit = [&](SourceId source, TokenId first, int longer) {
    pool.visited(source, longer);
    std::vector<PageIndex> chain;
    for (int at = 0; at < 2; ++at) {
      const auto parent = chain.empty() ? std::nullopt : std::optional(chain.back());
      const auto page = pool.find(parent, page_of(first + at));
      chain.push_back(page ? *page : pool.seal(pool.take().value(), parent, page_of(first + at)));
      pool.add_source(chain.back(), source);
    }
    release_all(pool, chain);
    REQUIRE(pool.check() == "");
  };
  visit(kOften, 100, 30);
  for (std::uint32_t each = 2; each < 22; ++each)
    visit(SourceId{each}, static_cast<TokenId>(1000 * each), 0);
  CHECK(resident(pool, {100, 101}));
  for (std::uint32_t each = 22; each < 62; ++each)
    visit(SourceId{each}, static_cast<TokenId>(1000 * each), 0);
  CHECK_FALSE(resident(pool, {100}));  // not kept for ever
}

TEST_CASE("free pages that were written are overwritten once, and before anybody uses them") {
  KvPool pool(4, Digest{});
  std::vector<PageIndex> overwritten;
  pool.on_overwrite = [&](PageIndex page) {
    overwritten.push_back(page);
    return Result<void>();
  };
  const auto overwritten_since = [&] { return std::exchange(overwritten, {}); };
  const PageIndex used = *pool.take();
  const PageIndex left = *pool.take();
  pool.set_stale_apart();
  CHECK_FALSE(pool.overwrite_one());
  pool.give_back(left);
  pool.set_stale_apart();
  CHECK(pool.check() == "");
  CHECK(pool.pages_used() == 1);
  CHECK(pool.pages_available() == 3);

  // As long as there are others, it is not used. Then it is overwritten first.
  CHECK(*pool.take() != left);
  CHECK(*pool.take() != left);
  CHECK(overwritten_since().empty());
  CHECK(*pool.take() == left);
  CHECK(overwritten_since() == std::vector<PageIndex>{left});
  CHECK_FALSE(pool.overwrite_one());

  pool.give_back(used);
  pool.set_stale_apart();
  pool.set_stale_apart();
  CHECK(pool.overwrite_one());
  CHECK(overwritten_since() == std::vector<PageIndex>{used});
  CHECK_FALSE(pool.overwrite_one());
  CHECK(pool.check() == "");
}

TEST_CASE("pages of none of the named documents go back once, in parts, leaves before parents") {
  constexpr SourceId kOpen{1}, kClosed{2};
  KvPool pool(8, Digest{});
  std::vector<PageIndex> evicted, given;
  pool.on_evict = [&](PageIndex page) { evicted.push_back(page); };
  pool.on_give_back = [&](PageIndex page) { given.push_back(page); };
  const auto closed = sealed_chain(pool, {10, 20, 30});
  const auto open = sealed_chain(pool, {50, 60});
  const auto used = sealed_chain(pool, {70});
  for (const PageIndex page : closed) pool.add_source(page, kClosed);
  pool.add_source(open[1], kOpen);
  release_all(pool, closed);
  release_all(pool, open);
  const std::vector<SourceId> but = {kOpen};

  CHECK(pool.give_back_some(but, 2));
  CHECK(evicted == std::vector<PageIndex>{closed[2], closed[1]});
  CHECK(pool.check() == "");
  while (pool.give_back_some(but, 2)) {
  }
  CHECK(evicted == std::vector<PageIndex>{closed[2], closed[1], closed[0]});
  CHECK(std::set<PageIndex>(given.begin(), given.end()) ==
        std::set<PageIndex>(closed.begin(), closed.end()));
  CHECK(given.size() == closed.size());
  CHECK(resident(pool, {50, 60}));
  CHECK(pool.check() == "");

  // What was given back has no bytes to overwrite; what is used again and left has.
  pool.set_stale_apart();
  CHECK_FALSE(pool.overwrite_one());
  pool.give_back(*pool.take());
  pool.set_stale_apart();
  CHECK_FALSE(pool.give_back_some(but, 8));
  CHECK(given.size() == closed.size() + 1);
  CHECK_FALSE(pool.overwrite_one());
  CHECK(pool.pages_used() == 3);
  CHECK(pool.check() == "");
  pool.release(used[0]);
}
