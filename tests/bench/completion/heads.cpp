#include "tests/bench/completion/heads.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "daemon/completion/documents/session_memory.h"
#include "daemon/context/head.h"
#include "daemon/files/head_keeper.h"
#include "daemon/files/packages.h"
#include "daemon/syntax/outline.h"
#include "tests/bench/completion/bench_service.h"
#include "tests/bench/completion/places.h"

namespace efimd::bench {

namespace {

using recall_places::Cursor;
using recall_places::Project;

/// Shorter names are mostly none of another file's.
constexpr std::size_t kNameBytesMin = 3;

std::set<std::string, std::less<>> names_in(std::string_view text) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  std::set<std::string, std::less<>> names;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end - at >= kNameBytesMin) names.emplace(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

/// The files of a project by the paths that imports mean, and what each declares.
class Declared {
 public:
  explicit Declared(const Project& project)
      : project_(project), paths_("/" + project.name, paths_of(project), packages_of(project)) {}

  std::string path_of(std::size_t file) const {
    return paths_.root() + "/" + project_.files[file].path;
  }

  /// Of what the file `own` uses. The text of `own` is the editor's.
  std::vector<context::Source> sources(const std::string& own, std::string_view text) {
    std::vector<context::Source> sources;
    for (context::ReadFile& used : context::read_used(
             text, own, paths_, [this](const std::string& path) { return of(path); })) {
      if (used.parts->declarations.empty()) continue;
      used.file.path = used.file.path.substr(paths_.root().size() + 1);
      sources.push_back({std::move(used.file), &used.parts->declarations});
    }
    return sources;
  }

 private:
  static std::vector<std::string> paths_of(const Project& project) {
    std::vector<std::string> paths;
    for (const recall::File& file : project.files)
      paths.push_back("/" + project.name + "/" + file.path);
    return paths;
  }
  static std::vector<context::Package> packages_of(const Project& project) {
    std::vector<context::Package> packages;
    for (const recall::File& file : project.files)
      if (auto name = service::package_name(context::name_of(file.path), file.text); !name.empty())
        packages.push_back({std::move(name), "/" + project.name + "/" + file.path});
    return packages;
  }
  const context::FilePartsPtr& of(const std::string& path) {
    const auto [known, is_new] = parts_.try_emplace(path);
    if (!is_new) return known->second;
    std::string_view text;
    for (std::size_t file = 0; file < project_.files.size(); ++file)
      if (path_of(file) == path) text = project_.files[file].text;
    return known->second =
               std::make_shared<const context::FileParts>(context::parts_of(path, text));
  }

  const Project& project_;
  context::ProjectPaths paths_;
  std::map<std::string, context::FilePartsPtr> parts_;
};

Naming naming_of(const Cursor& cursor, const std::vector<context::Source>& sources) {
  std::set<std::string_view> declared;
  for (const context::Source& source : sources)
    for (const syntax::Declaration& each : *source.declarations)
      declared.insert(each.names.begin(), each.names.end());
  const auto here = names_in(cursor.text);
  Naming naming = Naming::kAny;
  for (const std::string& name : names_in(cursor.truth)) {
    if (!declared.contains(name)) continue;
    if (!here.contains(name)) return Naming::kNew;
    naming = Naming::kElsewhere;
  }
  return naming;
}

PlacesTally judged(const Cursor& cursor, const completion::Outcome& outcome) {
  PlacesTally tally;
  count_place(tally, {cursor.truth}, outcome);
  return tally;
}

}  // namespace

HeadTally& HeadTally::operator+=(const HeadTally& other) {
  cursors += other.cursors, with_head += other.with_head;
  exact_with += other.exact_with, exact_without += other.exact_without;
  only_with += other.only_with, only_without += other.only_without;
  saved_with += other.saved_with, saved_without += other.saved_without, chars += other.chars;
  return *this;
}

struct HeadBench::Impl {
  completion::CompletionService::Settings settings() {
    completion::CompletionService::Settings made;
    made.settle = std::chrono::milliseconds(0);
    // Heads are made here, of the size that the daemon would ask for.
    made.ask_head = [this](const completion::HeadQuestion& question) {
      if (question.snapshot) head_bytes = question.bytes_max;
    };
    made.on_idle = [this] {
      const std::lock_guard lock(mutex);
      if (!std::exchange(waited_for, false)) return;
      is_idle = true;
      rested.notify_all();
    };
    return made;
  }

  /// Waits until idle time has done all that it wants to after what was posted before.
  void rest() {
    std::unique_lock lock(mutex);
    is_idle = false;
    lock.unlock();
    service->completions().change_index([this](recall::Index&) {
      const std::lock_guard marking(mutex);
      waited_for = true;
    });
    lock.lock();
    rested.wait(lock, [&] { return is_idle; });
  }

  completion::Request request_at(const Project& project, const std::string& path,
                                 const Cursor& cursor) const {
    completion::Request request;
    request.document.uri = "file://" + path;
    request.file = {"", project.files[cursor.file].path};
    request.home = {"/" + project.name, path};
    request.options = service->options();
    request.options.recall = false;
    return request;
  }

  /// Asks one key before the cursor, where idle time then makes the window ready, and after the key.
  /// `head` may be null.
  completion::Outcome ask(completion::Request request, const Cursor& cursor,
                          context::HeadPtr head) {
    request.document.session = ++session;  // nothing is known of the document, nor of a head
    const std::size_t before = cursor.at == 0 ? 0 : utf8::floor(cursor.text, cursor.at - 1);
    text::Document text(cursor.text.substr(0, before) + cursor.text.substr(cursor.at));
    request.snapshot = text.snapshot();
    request.cursor = before;
    service->completions().open(
        {request.document, request.snapshot, false, request.file, request.home});
    completion::Request first = request;
    first.options.confidence = 1.0F;  // shows nothing that could be typed through
    static_cast<void>(service->ask(std::move(first)));
    if (head) service->completions().show_head({request.document, std::move(head), {}});
    rest();
    const std::string key = cursor.text.substr(before, cursor.at - before);
    static_cast<void>(text.replace(before, before, key));  // `before` is in the text
    request.snapshot = text.snapshot();
    request.cursor = cursor.at;
    const completion::DocumentKey document = request.document;
    completion::Outcome outcome = service->ask(std::move(request));
    service->completions().close(document);
    return outcome;
  }

  HeadTally measure(const Project& project, const std::string& path, const Cursor& cursor,
                    const std::vector<context::Source>& sources) {
    const completion::Request request = request_at(project, path, cursor);
    const PlacesTally without = judged(cursor, ask(request, cursor, nullptr));
    const auto head = std::make_shared<const context::Head>(context::make_head(
        cursor.text, sources, std::min(service::HeadKeeper::kHeadBytesMax, head_bytes.load())));
    PlacesTally with = without;
    HeadTally tally;
    tally.cursors = 1;
    if (!head->slots.empty()) {
      const completion::Outcome outcome = ask(request, cursor, head);
      if (outcome.receipt.head_files > 0) tally.with_head = 1;
      with = judged(cursor, outcome);
    }
    tally.exact_with = with.exact, tally.exact_without = without.exact;
    tally.only_with = with.exact > without.exact ? 1 : 0;
    tally.only_without = without.exact > with.exact ? 1 : 0;
    tally.saved_with = with.saved, tally.saved_without = without.saved;
    tally.chars = cursor.truth.size();
    return tally;
  }

  std::mutex mutex;
  std::condition_variable rested;
  bool waited_for = false;
  bool is_idle = false;
  std::uint64_t session = 0;
  std::atomic<std::size_t> head_bytes = 0;
  std::unique_ptr<BenchService> service;  ///< last: its engine thread uses all of these
};

HeadBench::HeadBench() : impl_(std::make_unique<Impl>()) {}
HeadBench::~HeadBench() = default;

Result<std::unique_ptr<HeadBench>> HeadBench::open(const service::Paths& paths) {
  std::unique_ptr<HeadBench> bench(new HeadBench);
  auto service = BenchService::open(paths, bench->impl_->settings());
  if (!service) return tl::unexpected(service.error());
  bench->impl_->service = std::move(*service);
  return bench;
}

std::string HeadBench::description() const { return impl_->service->description(); }

HeadTallies HeadBench::measure(const Project& project, std::size_t count, std::size_t seed) {
  Declared declared(project);
  HeadTallies tallies;
  for (const Cursor& cursor : recall_places::draw_cursors(project, count, seed)) {
    if (cursor.kind == recall_places::Kind::kFinished) continue;
    const std::string path = declared.path_of(cursor.file);
    const std::vector<context::Source> sources = declared.sources(path, cursor.text);
    const HeadTally tally = impl_->measure(project, path, cursor, sources);
    for (std::size_t naming = 0; naming <= static_cast<std::size_t>(naming_of(cursor, sources));
         ++naming)
      tallies[naming] += tally;
  }
  return tallies;
}

}  // namespace efimd::bench
