// The part of the daemon that serves `efimd cache`.
#include <spdlog/logger.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <set>
#include <utility>

#include "daemon/files/file_identity.h"
#include "daemon/files/notebook_file.h"
#include "daemon/server/daemon_impl.h"
#include "daemon/server/status_json.h"
#include "lsp/uri.h"

namespace efimd::service {

namespace asio = boost::asio;

namespace {

/// For finding a file's other names; a command waits for it.
constexpr std::chrono::milliseconds kSpellingsPatience{2000};
/// For judging all files of the store; nobody waits for it.
constexpr std::chrono::milliseconds kPurgePatience{30'000};

tl::unexpected<Error> store_is_busy() {
  return fail(Fault::kNotReady, "KV on disk: too much waits to be done there",
              "run the command again in a moment");
}

}  // namespace

void Daemon::Impl::begin_store() {
  settings_.store->listen([this](const std::string& message) {
    asio::post(io_, [this, message] { log().warn("KV on disk: {}", message); });
  });
  settings_.store->post_command([this](store::Store& store) {
    asio::post(io_, [this, uris = store.document_uris()] { purge_excluded(uris); });
  });
}

void Daemon::Impl::purge_excluded(std::vector<std::string> uris) {
  const Exclusions exclusions(settings_.config.cache_exclude, settings_.config.cache_gitignore);
  // The store is opened for this: what it holds is not used before its file is open and judged.
  judge_->ask<std::vector<std::string>>(
      kPurgePatience,
      [exclusions, uris = std::move(uris)] {
        std::vector<std::string> excluded;
        for (const std::string& uri : uris)
          if (!exclusions.judge(uri).may_be_stored()) excluded.push_back(uri);
        return excluded;
      },
      [this](const std::vector<std::string>& excluded) {
        // Heads that show one of them go, too.
        service_->forget(excluded, [] {});
        if (!settings_.store->post_command(
                [excluded](store::Store& store) { static_cast<void>(store.purge(excluded)); }))
          log().warn("KV on disk: files that were excluded since are still kept");
      },
      [this] {
        log().warn(
            "KV on disk: a file system does not answer, so files that were "
            "excluded since are still kept");
      });
}

void Daemon::Impl::cache(std::uint64_t session, CacheRequest request,
                         std::function<void(Result<lsp::Json>)> answered) {
  Answered done = [this, session, answered = std::move(answered)](Result<lsp::Json> answer) {
    work_for(session, [&] { answered(std::move(answer)); });
  };
  if (request.action == CacheRequest::Action::kPurge && request.uri.empty() &&
      request.model.empty())
    service_->forget_taste();
  const bool purges = request.action == CacheRequest::Action::kPurge;
  if (!purges && !settings_.store)
    return done(fail(Fault::kUnsupported, "nothing is kept on disk",
                     settings_.config.exclusions_known
                         ? "set cache.disk_mb to more than 0"
                         : "correct config.toml; 'efimd doctor' says where"));
  if (!request.uri.empty()) return find_spellings(std::move(request), std::move(done));
  if (!purges) return ask_store(request, std::move(done));
  if (heads_) heads_->forget_all();
  for (const std::string& uri : served_.all()) forget_recalled(uri);
  // First the device, then what waits to be written, then the disk: so that nothing comes back.
  const std::size_t tokens = tokens_in_memory();
  service_->forget({std::string()}, [=, this] {
    asio::post(io_, [=, this] {
      if (settings_.store) settings_.store->forget_queued();
      finish_purge(request, tokens, done);
    });
  });
}

std::size_t Daemon::Impl::tokens_in_memory() const {
  std::size_t tokens = 0;
  for (const auto& file : service_->status().files)
    tokens += static_cast<std::size_t>(file.tokens_device);
  return tokens;
}

void Daemon::Impl::finish_purge(const CacheRequest& request, std::size_t tokens, Answered done) {
  const std::size_t gone = tokens - std::min(tokens, tokens_in_memory());
  if (!settings_.store)
    return done(
        memory_purged(request.spellings ? request.spellings->size() : served_.size(), gone));
  ask_store(request, [gone, done = std::move(done)](Result<lsp::Json> answer) {
    // The disk lags a pause in typing behind.
    if (answer) (*answer)["tokens"] = std::max(answer->value("tokens", std::size_t{0}), gone);
    done(std::move(answer));
  });
}

void Daemon::Impl::find_spellings(CacheRequest request, Answered done) {
  const auto find = [=, this](std::set<std::string> served) {
    const std::vector<std::string> known(served.begin(), served.end());
    const auto serve = [=, this](std::vector<std::string> uris) {
      CacheRequest found = request;
      found.spellings = std::move(uris);
      serve_file(std::move(found), done);
    };
    judge_->ask<std::vector<std::string>>(
        kSpellingsPatience, [=, uri = request.uri] { return uris_within(uri, known); }, serve,
        [=, this] {
          CacheRequest found = request;
          found.spellings = uris_within(request.uri, known, Links::kAsWritten);
          serve_file(std::move(found), [=](const Result<lsp::Json>& answer) {
            if (!answer) return done(answer);
            done(fail(Fault::kIo,
                      "done for the paths as they are written; other names of the file are "
                      "unknown, because a file system does not answer",
                      "run the command again once it does"));
          });
        });
  };
  if (!settings_.store || !settings_.store->is_usable()) return find(served_.all());
  const bool asked =
      settings_.store->post_command([=, this, served = served_.all()](store::Store& store) mutable {
        for (std::string& uri : store.document_uris()) served.insert(std::move(uri));
        asio::post(io_, [=] { find(served); });
      });
  if (!asked) done(store_is_busy());
}

void Daemon::Impl::serve_file(CacheRequest request, Answered done) {
  if (request.action != CacheRequest::Action::kPurge) return ask_store(request, std::move(done));
  for (const std::string& uri : *request.spellings) served_.erase(uri);
  const auto purge = std::make_shared<Purge>();
  purge->tokens = tokens_in_memory();
  purge->uris = *request.spellings;
  purge->request = std::move(request);
  purge->done = std::move(done);
  forget_then_purge(purge);
}

void Daemon::Impl::forget_then_purge(const std::shared_ptr<Purge>& purge) {
  std::vector<std::string>& left = purge->uris;
  if (left.empty()) return finish_purge(purge->request, purge->tokens, purge->done);
  const auto first = left.end() - std::min<std::ptrdiff_t>(kForgottenAtOnce, std::ssize(left));
  std::vector<std::string> uris(first, left.end());
  left.erase(first, left.end());
  for (const std::string& uri : uris) {
    if (heads_) heads_->forget(lsp::text_path_of(uri).value_or(uri));
    forget_recalled(uri);
  }
  service_->forget(uris, [=, this] {
    asio::post(io_, [=, this] {
      if (settings_.store)
        for (const std::string& uri : uris) settings_.store->forget_queued(uri);
      forget_then_purge(purge);
    });
  });
}

void Daemon::Impl::serves(const std::string& uri) {
  if (served_.use(uri) && heads_) heads_->use(lsp::text_path_of(uri).value_or(uri));
  forget_oldest();
}

void Daemon::Impl::shows(const std::vector<std::string>& uris) {
  for (const std::string& uri : uris) served_.use(uri);
  forget_oldest();
}

void Daemon::Impl::forget_oldest() {
  while (const auto uri = served_.take_excess()) {
    forget_recalled(*uri);
    service_->forget({*uri}, [] {});
  }
}

void Daemon::Impl::forget_recalled(const std::string& uri) {
  // Of a part of a file, such as the cells of a notebook, the file that was read from the disk goes, too.
  const std::string file = text_path(lsp::path_of(uri).value_or(uri));
  const std::string text = lsp::text_path_of(uri).value_or(file);
  service_->change_index([file, text](recall::Index& index) {
    index.forget_everywhere(file);
    if (text != file) index.forget_everywhere(text);
  });
}

void Daemon::Impl::leave_project(const std::string& project) {
  const auto is_in = [&](const auto& each) { return each.second->session().is_in(project); };
  if (!projects_ || std::ranges::any_of(connections_, is_in)) return;
  projects_->leave(project);  // first, so that no text of it comes after
  if (heads_) heads_->project_changed(project);
  service_->change_index([project](recall::Index& index) { index.remove_project(project); });
}

void Daemon::Impl::ask_store(const CacheRequest& request, Answered done) {
  const store::StoreStatus status = settings_.store->status();
  if (!settings_.store->is_usable()) return done(fail(Fault::kIo, status.trouble));
  const bool asked = settings_.store->post_command([=, this](store::Store& store) {
    Result<lsp::Json> answer = serve_cache_request(store, request);
    asio::post(io_, [=, this, answer = std::move(answer)]() mutable {
      if (answer) complete_answer(request, *answer);
      done(std::move(answer));
    });
  });
  if (!asked) done(store_is_busy());
}

void Daemon::Impl::complete_answer(const CacheRequest& request, lsp::Json& answer) const {
  const completion::ServiceStatus service = service_->status();
  if (request.action == CacheRequest::Action::kList)
    for (lsp::Json& file : answer["files"])
      for (const auto& each : service.files)
        if (file["uri"] == each.uri) file["tokensDevice"] = each.tokens_device;
  if (request.action == CacheRequest::Action::kStats)
    answer["store"] = store_json(settings_.store->status(), service);
}

}  // namespace efimd::service
