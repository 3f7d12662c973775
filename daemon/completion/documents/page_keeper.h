#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache_store/store_service.h"
#include "daemon/completion/documents/returns.h"
#include "engine/kv/page_store.h"

namespace efimd::completion {

/// The engine's store of pages, over the store on disk: translates documents' numbers into URIs.
/// Keeps the notes of documents, too, and how the user returns to them.
///
/// Thread: engine.  Shares the service with those who look after it.
class PageKeeper final : public engine::PageStore {
 public:
  explicit PageKeeper(std::shared_ptr<store::StoreService> service)
      : service_(std::move(service)) {}

  /// Names the model whose pages these will be, and fetches notes and returns. Waits for the disk for
  /// kOpenMax at most, because the documents that are opened next are looked up in the store. Call
  /// it once, while the model is loaded.
  void begin(const store::ArenaKey& key);
  static constexpr auto kOpenMax = std::chrono::seconds(2);

  /// The number of a document. A URI keeps its number as long as this object lives.
  engine::SourceId source_of(const std::string& uri);
  /// The document's note; empty if there is none.
  const std::string& note(const std::string& uri) const;
  /// Counts as a use of the document. An unchanged note costs nothing.
  void set_note(const std::string& uri, std::string note);
  /// The user turned to the document, as Returns::visit(). visited() says so to the store,
  /// and the next note writes it.
  int visit(const std::string& uri) { return returns_.visit(uri); }
  /// As Returns::forget().
  void forget_returns(const std::string& uri) { returns_.forget(uri); }
  /// The editor opened or closed it. Open documents are evicted last.
  void set_open(const std::string& uri, bool open);
  /// The numbered documents that are `uri`, or lie in that folder; all if it is empty.
  std::map<std::string, engine::SourceId> sources_below(const std::string& uri) const;
  /// The documents whose notes show one of these files of others.
  std::map<std::string, engine::SourceId> sources_showing(std::span<const std::string> uris);
  /// The document was purged, or a file that its note shows: the note goes from the disk, too.
  void forget_note(const std::string& uri);
  /// Forgets the notes on disk that show one of these files, also those of other models, and those that were
  /// not fetched in time.
  void forget_notes_showing(std::span<const std::string> uris);

  bool is_usable() const override { return service_->is_usable(); }
  bool holds(const Digest& page) const override { return service_->holds(page); }
  void want(std::span<const Digest> pages) override { service_->want(pages); }
  std::optional<std::vector<std::byte>> load(const Digest& page, std::chrono::microseconds patience,
                                             const std::stop_token& stop) override {
    return service_->load(page, patience, stop);
  }
  std::chrono::microseconds load_time(const Digest& page) const override;
  bool takes_page(engine::Leaving) const override { return service_->takes(arena_.page_bytes); }
  bool write(engine::PageToStore page) override;
  void add_sources(const Digest& page, std::span<const engine::SourceId> sources) override;
  void visited(engine::SourceId source, int longer) override;
  /// Pages that were read ahead may be of it.
  void forget(engine::SourceId) override { service_->want({}); }

 private:
  std::vector<std::string> uris_of(std::span<const engine::SourceId> sources) const;

  std::shared_ptr<store::StoreService> service_;
  store::ArenaKey arena_;
  std::map<std::string, std::string> notes_;
  Returns returns_;
  std::unordered_map<std::string, engine::SourceId> numbers_;
  std::vector<std::string> uris_;  ///< by number - 1
};

}  // namespace efimd::completion
