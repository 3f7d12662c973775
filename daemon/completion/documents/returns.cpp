#include "daemon/completion/documents/returns.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace efimd::completion {

namespace {

/// How far a return within the half-life moves it down, in octaves; a later one moves it up by three
/// times as much. It was chosen on other traces than those that docs/performance.md
/// measures it on.
constexpr double kStep = 0.01;

int longer_after(int longer, double gap, double half_life) {
  return static_cast<int>(
      std::lround(half_life * std::log2(1 + std::exp2((longer - gap) / half_life))));
}

}  // namespace

int Returns::visit(const std::string& uri) {
  if (uri == newest_) return documents_[uri].longer;
  newest_ = uri;
  ++visits_;
  const auto [entry, fresh] = documents_.try_emplace(uri, Document{visits_, 0});
  if (fresh) {
    limit();
    return 0;
  }
  Document& document = entry->second;
  // More were counted elsewhere if the store's numbers and these differ.
  const auto gap = static_cast<double>(visits_ - std::min(document.last, visits_ - 1));
  learn(gap);
  document = {visits_, longer_after(document.longer, gap, half_life_)};
  return document.longer;
}

void Returns::learn(double gap) {
  half_life_ = std::clamp(half_life_ * std::exp2(gap > half_life_ ? 3 * kStep : -kStep),
                          kHalfLifeMin, kHalfLifeMax);
}

void Returns::limit() {
  if (documents_.size() <= kDocumentsMax) return;
  // An eighth at once, so that it is rare.
  std::vector<std::pair<std::uint64_t, const std::string*>> order;
  for (const auto& [uri, document] : documents_)
    order.emplace_back(document.last + static_cast<std::uint64_t>(document.longer), &uri);
  const auto end = order.begin() + kDocumentsMax / 8;
  std::ranges::nth_element(order, end);
  std::for_each(order.begin(), end,
                [&](const auto& each) { documents_.erase(std::string(*each.second)); });
}

void Returns::forget(const std::string& uri) {
  if (uri.empty()) {
    *this = {};
    return;
  }
  std::erase_if(documents_, [&](const auto& each) {
    return each.first == uri || each.first.starts_with(uri + "/");
  });
  if (!documents_.contains(newest_)) newest_.clear();
}

void Returns::load(std::uint64_t visits, std::int64_t half_life_milli,
                   std::map<std::string, Document> documents) {
  *this = {};
  visits_ = visits;
  if (half_life_milli > 0)
    half_life_ =
        std::clamp(static_cast<double>(half_life_milli) / 1000, kHalfLifeMin, kHalfLifeMax);
  documents_ = std::move(documents);
  const int longer_max = longer_after(1 << 20, 1, kHalfLifeMax);
  for (auto& [uri, document] : documents_) {
    document.last = std::min(document.last, visits_);
    document.longer = std::clamp(document.longer, 0, longer_max);
  }
  while (documents_.size() > kDocumentsMax) limit();
}

}  // namespace efimd::completion
