#include "net/get/get.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "daemon/config/config.h"
#include "daemon/config/paths.h"
#include "daemon/models/chosen_model.h"
#include "daemon/models/hub_folder.h"
#include "daemon/models/model_catalog.h"
#include "daemon/models/offered_models.h"
#include "engine/model/model.h"
#include "net/get/asked.h"
#include "net/get/cached.h"
#include "net/get/fetch.h"
#include "net/get/head.h"
#include "net/get/hub.h"
#include "net/get/offer.h"
#include "net/get/partial_file.h"

namespace efimd::get {

namespace fs = std::filesystem;

namespace {

bool is_on(const char* name) {
  const char* const value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

/// Seconds without a byte after which a connection counts as broken, as huggingface_hub's variable
/// says them.
int silence_s() {
  constexpr int kUsual = 30, kMax = 3600;
  const char* const value = std::getenv("HF_HUB_DOWNLOAD_TIMEOUT");
  const std::string_view text = value == nullptr ? "" : value;
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return error == std::errc() && seconds >= 1 ? std::min(seconds, kMax) : kUsual;
}

/// Until the user has answered; false if a signal came instead, which a read would outlast.
bool wait_for_input() {
  constexpr int kLookMs = 100;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (!interrupted && ::poll(&input, 1, kLookMs) <= 0) {
  }
  return !interrupted;
}

/// Whether the whole file is one that efimd's reader takes: every count and offset lies inside it.
Result<void> check_gguf(const fs::path& file) {
  auto read = engine::GgufFile::open(file);
  if (read) return {};
  return fail(read.error().fault, "what was loaded is no whole GGUF file: " + read.error().what,
              "nothing of it is kept; choose another file");
}

/// What is still to be loaded, of all files.
std::uint64_t bytes_missing(const CachedRepository& cached, const std::string& commit,
                            const std::vector<HubFile>& files) {
  std::uint64_t bytes = 0;
  for (const HubFile& file : files) {
    if (cached.has(commit, file)) continue;
    std::error_code error;
    const auto left = fs::file_size(PartialFile::path_of(cached.blob(file)), error);
    bytes += file.bytes - (error ? 0 : std::min<std::uint64_t>(left, file.bytes));
  }
  return bytes;
}

/// The way of one command.
class Getting {
 public:
  Getting(const Options& options, Report& report)
      : options_(options), report_(report), transport_(silence_s()) {}
  Result<Got> run();

 private:
  Result<Got> from_hub(const HubAccess& hub);
  Result<Got> from_cache(const CachedRepository& cached, const Error* why);
  Result<Got> from_address();
  Result<bool> wanted(Offer& offer);
  Result<void> load(const HubAccess& hub, const HubRepository& repository,
                    const CachedRepository& cached, const std::vector<HubFile>& files);
  FetchWatch watch(const std::string& file);
  decltype(FetchWish::look) look(const std::string& name) const;
  service::Config config() const;
  Result<Got> ready(const fs::path& path, bool was_here);

  const Options& options_;
  Report& report_;
  Transport transport_;
  Asked asked_;
};

service::Config Getting::config() const {
  const auto paths = service::find_paths();
  return paths ? service::config_in_force(*paths) : service::Config{};
}

Result<Got> Getting::run() {
  const auto offered = service::offered_models(service::find_model_places().bundled);
  if (!offered) return tl::unexpected(offered.error());
  std::string note;
  const auto hub = hub_access(note);
  if (!hub) return tl::unexpected(hub.error());
  auto asked = parse_asked(options_.name, *offered, hub->endpoint);
  if (!asked) return tl::unexpected(asked.error());
  asked_ = std::move(*asked);
  if (!note.empty()) report_.note(note);
  return asked_.url.empty() ? from_hub(*hub) : from_address();
}

FetchWatch Getting::watch(const std::string& file) {
  return {[this, file](std::uint64_t bytes, std::uint64_t total) {
            report_.progress(file, bytes, total);
          },
          [this](const std::string& text) { report_.note(text); }};
}

decltype(FetchWish::look) Getting::look(const std::string& name) const {
  return [name, fim = config().fim](const fs::path& file, std::uint64_t here, std::uint64_t whole) {
    return check_head({file, name, here, whole}, fim);
  };
}

Result<Got> Getting::from_hub(const HubAccess& hub) {
  const auto folder = service::hub_folder_to_fill(service::absolute_variable);
  if (!folder) return fail(Fault::kBadInput, "no home folder is known", "set HF_HOME");
  const CachedRepository cached(*folder, asked_.repository);
  if (is_on("HF_HUB_OFFLINE")) return from_cache(cached, nullptr);
  if (const std::string proxy = proxy_host(hub.endpoint); !proxy.empty())
    report_.note("through the proxy " + proxy);
  const auto repository =
      ask_hub(transport_, hub, asked_, [this](const std::string& text) { report_.note(text); });
  if (!repository && repository.error().fault == Fault::kNotReady)
    return from_cache(cached, &repository.error());
  if (!repository) return tl::unexpected(repository.error());
  const auto files = choose_files(*repository, asked_);
  if (!files) return tl::unexpected(files.error());

  Offer offer;
  offer.name = repository->name;
  offer.commit = repository->commit;
  offer.files = *files;
  offer.license = asked_.offered ? asked_.offered->license : repository->license;
  offer.gated = repository->gated;
  offer.folder = folder->string();
  bool all_here = true;
  for (const HubFile& file : *files) {
    offer.bytes += file.bytes;
    const bool is_here = cached.has(repository->commit, file);
    if (is_here) offer.bytes_here += file.bytes;
    all_here = all_here && is_here;
  }
  const fs::path path = cached.path(repository->commit, files->front().path);
  if (files->size() > 1)
    report_.note("efimd runs models of one file: join the parts with llama-gguf-split --merge");
  if (!all_here || options_.dry_run) {
    const auto yes = wanted(offer);
    if (!yes) return tl::unexpected(yes.error());
    if (!*yes) return Got{};
  }
  if (auto loaded = load(hub, *repository, cached, *files); !loaded)
    return tl::unexpected(loaded.error());
  return ready(path, all_here);
}

Result<void> Getting::load(const HubAccess& hub, const HubRepository& repository,
                           const CachedRepository& cached, const std::vector<HubFile>& files) {
  if (auto made = cached.make_folders(); !made) return made;
  if (auto room = check_room(cached.blob(files.front()).parent_path(),
                             bytes_missing(cached, repository.commit, files));
      !room)
    return room;
  for (const HubFile& file : files) {
    if (cached.has(repository.commit, file)) continue;
    FetchWish wish;
    wish.url = file_address(hub, repository, file);
    wish.token = hub.token;
    wish.file = cached.blob(file);
    wish.lock = cached.lock(file);
    wish.bytes = file.bytes;
    wish.hash = file.hash;
    wish.check = check_gguf;
    wish.gated = gated_error(hub, repository.name);
    // Another program may join the parts of a model that is in several files.
    if (files.size() == 1) wish.look = look(file.path);
    const auto done = fetch(transport_, wish, watch(file.path));
    if (!done) return tl::unexpected(done.error());
  }
  // Only a model with all its parts gets names.
  for (const HubFile& file : files)
    if (auto linked = cached.link(repository.commit, file); !linked) return linked;
  return cached.refer(asked_.revision, repository.commit);
}

/// What is here serves if nothing can be asked.
Result<Got> Getting::from_cache(const CachedRepository& cached, const Error* why) {
  const HubRepository known = cached.known(asked_.revision);
  const auto files = choose_files(known, asked_);
  if (files) {
    report_.note(why == nullptr ? "HF_HUB_OFFLINE is set: nothing was asked for"
                                : why->what + "; taking what is here");
    return ready(cached.path(known.commit, files->front().path), true);
  }
  if (why != nullptr) return tl::unexpected(*why);
  return fail(Fault::kNotFound,
              fmt::format("HF_HUB_OFFLINE is set, and {} is not here{}", options_.name,
                          known.files.empty() ? "" : ": " + files.error().remedy),
              "unset it, or see `efimd model list`");
}

/// An address of no hub: efimd's own folder, under the file's own name.
Result<Got> Getting::from_address() {
  const fs::path folder = service::find_model_places().own;
  if (folder.empty()) return fail(Fault::kBadInput, "no home folder is known", "set HOME");
  const fs::path path = folder / asked_.file;
  std::error_code error;
  if (fs::exists(path, error)) {
    report_.note(path.string() + " has this name already; if it is of another address, remove it");
    return ready(path, true);
  }
  if (is_on("HF_HUB_OFFLINE"))
    return fail(Fault::kNotFound,
                "HF_HUB_OFFLINE is set, and " + asked_.file + " is not in " + folder.string(),
                "unset it, or see `efimd model list`");
  Offer offer;
  offer.name = asked_.url;
  offer.folder = folder.string();
  offer.files = {{asked_.file, 0, ""}};
  const auto yes = wanted(offer);
  if (!yes) return tl::unexpected(yes.error());
  if (!*yes) return Got{};
  fs::create_directories(folder, error);
  if (error) return tl::unexpected(get::system_error(folder, error.value()));
  FetchWish wish;
  wish.url = asked_.url;
  wish.file = path;
  wish.lock = path.string() + ".lock";
  wish.check = check_gguf;
  wish.look = look(asked_.file);
  const auto done = fetch(transport_, wish, watch(asked_.file));
  if (done) fs::remove(wish.lock, error);
  if (!done) return tl::unexpected(done.error());
  return ready(path, *done == Fetched::kWasHere);
}

/// Shows the offer, and asks on a terminal; false: it is not to be loaded.
Result<bool> Getting::wanted(Offer& offer) {
  offer.bytes_free = free_bytes(offer.folder);
  if (asked_.offered) {
    offer.restricted = asked_.offered->restricted;
    offer.good_for = asked_.offered->good_for;
  }
  if (!options_.no_speed && offer.bytes > 0) {
    const service::Config config = this->config();
    for (const auto& device :
         service::machine_speed(service::devices_here(config, {&offer.bytes, 1})))
      offer.speeds.push_back(service::guessed_speed(device, cost_of(asked_, offer.files)));
  }
  report_.offer(offer);
  if (options_.dry_run) return false;
  const bool is_asked = !options_.yes && !report_.is_json() && ::isatty(STDIN_FILENO) == 1 &&
                        ::isatty(STDERR_FILENO) == 1;
  if (!is_asked) return true;
  fmt::print(stderr, "Load it? [Y/n] ");
  std::string answer;
  if (!wait_for_input()) return fail(Fault::kStopped, "interrupted", "");
  std::getline(std::cin, answer);
  if (std::cin && (answer.empty() || answer[0] == 'y' || answer[0] == 'Y')) return true;
  return fail(Fault::kStopped, "not loaded", "");
}

/// The file is there; says so if efimd itself cannot run it.
Result<Got> Getting::ready(const fs::path& path, bool was_here) {
  const auto model = engine::Model::open(path, config().fim);
  if (!model)
    return fail(
        model.error().fault,
        path.string() + " is here and whole, but efimd cannot run it: " + model.error().what,
        model.error().remedy);
  return Got{path, was_here};
}

}  // namespace

Result<Got> get(const Options& options, Report& report) { return Getting(options, report).run(); }

}  // namespace efimd::get
