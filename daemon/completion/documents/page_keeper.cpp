#include "daemon/completion/documents/page_keeper.h"

#include <functional>
#include <set>
#include <utility>

#include "daemon/completion/documents/note.h"

namespace efimd::completion {

void PageKeeper::begin(const store::ArenaKey& key) {
  arena_ = key;
  service_->set_arena(key);
  struct Found {
    std::map<std::string, std::string> notes;
    store::Visits visits;
  };
  const auto found = std::make_shared<Found>();
  const bool done = service_->run(
      [model = key.model, found](store::Store& store) {
        if (auto notes = store.notes(model)) found->notes = std::move(*notes);
        found->visits = store.visits();
      },
      kOpenMax);
  if (!done) return;
  notes_ = std::move(found->notes);
  std::map<std::string, Returns::Document> returns;
  for (const auto& [uri, visited] : found->visits.documents)
    returns.emplace(uri, Returns::Document{visited.last, visited.longer});
  returns_.load(found->visits.count, found->visits.half_life, std::move(returns));
}

engine::SourceId PageKeeper::source_of(const std::string& uri) {
  const auto [entry, fresh] = numbers_.try_emplace(uri);
  if (fresh) {
    uris_.push_back(uri);
    entry->second = engine::SourceId{static_cast<std::uint32_t>(uris_.size())};
  }
  return entry->second;
}

const std::string& PageKeeper::note(const std::string& uri) const {
  static const std::string kNone;
  const auto found = notes_.find(uri);
  return found == notes_.end() ? kNone : found->second;
}

void PageKeeper::set_note(const std::string& uri, std::string note) {
  std::string& known = notes_[uri];
  if (known == note) return;
  known = note;
  service_->post([uri, model = arena_.model, note = std::move(note)](store::Store& store) {
    // A note that is lost costs a cold start of its document, and the next one is written soon.
    static_cast<void>(store.set_note(uri, model, note));
    static_cast<void>(store.use(uri));
    store.set_open(uri, true);
  });
}

void PageKeeper::visited(engine::SourceId source, int longer) {
  if (source == engine::SourceId::kNone) return;
  // One that is lost costs a little of the order.
  service_->post([uri = uris_of({&source, 1}).front(), longer,
                  half_life = returns_.half_life_milli()](store::Store& store) {
    store.visit(uri, longer, half_life);
  });
}

void PageKeeper::set_open(const std::string& uri, bool open) {
  service_->post([uri, open](store::Store& store) { store.set_open(uri, open); });
}

std::map<std::string, engine::SourceId> PageKeeper::sources_below(const std::string& uri) const {
  std::map<std::string, engine::SourceId> found;
  for (const auto& [known, number] : numbers_)
    if (uri.empty() || known == uri || known.starts_with(uri + "/")) found.emplace(known, number);
  return found;
}

std::map<std::string, engine::SourceId> PageKeeper::sources_showing(
    std::span<const std::string> uris) {
  const std::set<std::string, std::less<>> wanted(uris.begin(), uris.end());
  std::map<std::string, engine::SourceId> found;
  for (const auto& [document, note] : notes_)
    if (shows_any(note, wanted)) found.emplace(document, source_of(document));
  return found;
}

void PageKeeper::forget_note(const std::string& uri) {
  if (notes_.erase(uri) == 0) return;
  service_->post_command([uri, model = arena_.model](store::Store& store) {
    static_cast<void>(store.set_note(uri, model, ""));
  });
}

void PageKeeper::forget_notes_showing(std::span<const std::string> uris) {
  service_->post_command(
      [uris = std::set<std::string, std::less<>>(uris.begin(), uris.end())](store::Store& store) {
        static_cast<void>(
            store.forget_notes([&](std::string_view note) { return shows_any(note, uris); }));
      });
}

std::chrono::microseconds PageKeeper::load_time(const Digest& /*page*/) const {
  const double speed = service_->load_bytes_per_s();
  if (speed <= 0) return std::chrono::microseconds(0);
  return std::chrono::microseconds(
      static_cast<std::int64_t>(1e6 * static_cast<double>(arena_.page_bytes) / speed));
}

std::vector<std::string> PageKeeper::uris_of(std::span<const engine::SourceId> sources) const {
  std::vector<std::string> uris;
  for (const engine::SourceId source : sources)
    uris.push_back(uris_[static_cast<std::size_t>(source) - 1]);
  return uris;
}

bool PageKeeper::write(engine::PageToStore page) {
  return service_->write({page.page, page.parent, uris_of(page.sources), std::move(page.bytes)});
}

void PageKeeper::add_sources(const Digest& page, std::span<const engine::SourceId> sources) {
  service_->post([page, uris = uris_of(sources)](store::Store& store) {
    for (const std::string& uri : uris) static_cast<void>(store.add_source(page, uri));
  });
}

}  // namespace efimd::completion
