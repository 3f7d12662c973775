#include "tests/bench/completion/returns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "cache_store/catalog.h"
#include "cache_store/metadata.h"
#include "daemon/completion/documents/returns.h"
#include "engine/kv/kv_pool.h"

namespace efimd::bench {

namespace {

/// Of a file that is looked into once.
constexpr int kLookedTokens = 2000;

template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_comma(std::string_view& text) {
  if (text.empty() || text.front() != ',') return false;
  text.remove_prefix(1);
  return true;
}

/// One tier: keeps pages of files, and says how many leading ones it had.
class Kept {
 public:
  virtual ~Kept() = default;
  virtual int visit(std::uint32_t file, int pages, int longer) = 0;
};

class InMemory final : public Kept {
 public:
  explicit InMemory(int pages) : pool_(pages, Digest{}) {}

  int visit(std::uint32_t file, int pages, int longer) override {
    const engine::SourceId source{file};
    pool_.visited(source, longer);
    std::vector<engine::PageIndex> chain;
    int found = 0;
    for (int at = 0; at < pages; ++at) {
      std::vector<engine::TokenId> tokens(engine::kPageTokens);
      tokens[0] = static_cast<engine::TokenId>(file);
      tokens[1] = static_cast<engine::TokenId>(at);
      const auto parent = chain.empty() ? std::nullopt : std::optional(chain.back());
      auto page = pool_.find(parent, tokens);
      if (page) {
        ++found;
      } else if (const auto taken = pool_.take()) {
        page = pool_.seal(*taken, parent, tokens);
      } else {
        break;
      }
      pool_.add_source(*page, source);
      chain.push_back(*page);
    }
    for (; !chain.empty(); chain.pop_back()) pool_.release(chain.back());
    return found;
  }

 private:
  engine::KvPool pool_;
};

class OnDisk final : public Kept {
 public:
  explicit OnDisk(int pages) : pages_(static_cast<std::size_t>(pages)) {}

  int visit(std::uint32_t file, int pages, int longer) override {
    // As Store::visit() and Store::use() do.
    time_ = (time_ / store::kUsesPerVisit + 1) * store::kUsesPerVisit;
    catalog_.keep_longer(file, static_cast<std::uint64_t>(longer) * store::kUsesPerVisit);
    catalog_.use(file, time_);
    catalog_.set_open(std::exchange(open_, file), false);
    catalog_.set_open(file, true);
    int found = 0;
    while (found < pages && catalog_.holds(digest(file, found))) ++found;
    for (int at = found; at < pages; ++at) {
      if (catalog_.size() >= pages_) catalog_.remove(*catalog_.victim());
      store::StoredPage page;
      if (at > 0) page.parent = digest(file, at - 1);
      page.sources = {file};
      page.last_use = ++time_;
      catalog_.add(digest(file, at), std::move(page));
    }
    return found;
  }

 private:
  static Digest digest(std::uint32_t file, int page) {
    return {file, static_cast<std::uint64_t>(page)};
  }

  store::Catalog catalog_;
  std::size_t pages_;
  std::uint64_t time_ = 0;
  std::uint32_t open_ = 0;
};

/// For each visit the number of the next one to its file; 0: there is none.
std::vector<std::size_t> next_visits(const std::vector<Visit>& visits) {
  std::vector<std::size_t> next(visits.size());
  std::unordered_map<std::uint32_t, std::size_t> later;
  for (std::size_t at = visits.size(); at-- > 0;) {
    const auto found = later.find(visits[at].file);
    next[at] = found == later.end() ? 0 : found->second;
    later[visits[at].file] = at;
  }
  return next;
}

}  // namespace

Result<std::vector<Visit>> parse_visits(std::string_view csv) {
  std::vector<Visit> visits;
  for (std::size_t number = 1; !csv.empty(); ++number) {
    const std::size_t end = std::min(csv.find('\n'), csv.size());
    std::string_view line = csv.substr(0, end);
    csv.remove_prefix(std::min(end + 1, csv.size()));
    if (line.empty() || line.front() == '#') continue;
    std::uint64_t time = 0;
    bool good = take_number(line, time) && !line.empty();
    while (good && !line.empty()) {
      Visit visit;
      good = take_comma(line) && take_number(line, visit.file) && take_comma(line) &&
             take_number(line, visit.tokens) && visit.file > 0 && visit.file <= kVisitedFilesMax &&
             visit.tokens > 0 && visit.tokens <= kVisitTokensMax;
      visits.push_back(visit);
    }
    if (!good)
      return fail(
          Fault::kBadInput, fmt::format("line {} says no visits", number),
          fmt::format("write seconds,file,tokens,..., with files from 1 to {}", kVisitedFilesMax));
    if (visits.size() > kVisitsMax)
      return fail(Fault::kBadInput, fmt::format("more than {} visits", kVisitsMax),
                  "cut the trace");
  }
  if (visits.empty())
    return fail(Fault::kBadInput, "no visits", "write lines of seconds,file,tokens,...");
  return visits;
}

std::vector<Visit> with_looks(const std::vector<Visit>& visits, int files) {
  if (files <= 0) return visits;
  std::vector<Visit> mixed;
  std::uint32_t look = kVisitedFilesMax;
  for (std::size_t at = 0; at < visits.size(); ++at) {
    mixed.push_back(visits[at]);
    if ((at + 1) % static_cast<std::size_t>(files) != 0) continue;
    for (int each = 0; each < files; ++each) mixed.push_back({++look, kLookedTokens});
  }
  return mixed;
}

Returned& Returned::operator+=(const Returned& other) {
  returns += other.returns;
  whole += other.whole;
  tokens += other.tokens;
  anew += other.anew;
  return *this;
}

Returned replay_visits(const std::vector<Visit>& visits, const KeepSetup& setup) {
  const int capacity = setup.capacity_tokens / engine::kPageTokens;
  std::unique_ptr<Kept> kept;
  if (setup.tier == Tier::kMemory)
    kept = std::make_unique<InMemory>(capacity);
  else
    kept = std::make_unique<OnDisk>(capacity);
  const std::vector<std::size_t> next = next_visits(visits);
  completion::Returns returns;
  std::unordered_set<std::uint32_t> known;
  Returned result;
  for (std::size_t at = 0; at < visits.size(); ++at) {
    const Visit& visit = visits[at];
    const int window = std::min(visit.tokens, setup.window_tokens);
    const int pages = std::min((window + engine::kPageTokens - 1) / engine::kPageTokens, capacity);
    int longer = 0;
    if (setup.order == KeepOrder::kReturns) longer = returns.visit(std::to_string(visit.file));
    // The sooner it comes, the longer; one that never comes is not kept at all.
    if (setup.order == KeepOrder::kBest && next[at] > 0)
      longer = static_cast<int>(3 * visits.size() - next[at] - at);
    const int found = kept->visit(visit.file, pages, longer);
    if (known.insert(visit.file).second) continue;
    ++result.returns;
    if (found == pages) ++result.whole;
    result.tokens += static_cast<std::size_t>(pages) * engine::kPageTokens;
    result.anew += static_cast<std::size_t>(pages - found) * engine::kPageTokens;
  }
  return result;
}

}  // namespace efimd::bench
