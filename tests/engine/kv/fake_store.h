#pragma once

#include <map>
#include <utility>
#include <vector>

#include "engine/kv/page_store.h"

namespace efimd::test {

/// A store in memory that takes everything at once, or what it is told to.
class FakeStore final : public engine::PageStore {
 public:
  bool is_usable() const override { return true; }
  bool holds(const Digest& page) const override { return pages.contains(page); }
  void want(std::span<const Digest> wanted_pages) override {
    wanted.assign(wanted_pages.begin(), wanted_pages.end());
  }
  std::optional<std::vector<std::byte>> load(const Digest& page, std::chrono::microseconds patience,
                                             const std::stop_token& stop) override {
    last_patience = patience;
    if (stop.stop_requested() || answers_left-- <= 0) return std::nullopt;
    ++loads;
    return pages.at(page).bytes;
  }
  std::chrono::microseconds load_time(const Digest&) const override { return time_of_load; }
  bool takes_page(engine::Leaving) const override { return room > 0; }
  bool write(engine::PageToStore page) override {
    if (room-- <= 0) return false;
    written.push_back(page.page);
    pages.emplace(page.page, std::move(page));
    return true;
  }
  void add_sources(const Digest& page, std::span<const engine::SourceId> sources) override {
    pages.at(page).sources.assign(sources.begin(), sources.end());
  }

  std::map<Digest, engine::PageToStore> pages;
  std::vector<Digest> written, wanted;
  std::chrono::microseconds time_of_load{0}, last_patience{0};
  int room = 1 << 30;
  int answers_left = 1 << 30;
  int loads = 0;
};

}  // namespace efimd::test
