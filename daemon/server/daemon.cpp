#include "daemon/server/daemon.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/memory_reserve.h"
#include "daemon/config/local_socket.h"
#include "daemon/config/printable.h"
#include "daemon/config/version.h"
#include "daemon/server/daemon_impl.h"
#include "daemon/server/status_json.h"

namespace efimd::service {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

namespace {

/// After the last session. glibc keeps what it freed: 252 MiB of 15 after 80 bad clients.
constexpr auto kTrimAfter = std::chrono::seconds(1);

void give_free_memory_back() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace

Daemon::Impl::Impl(Settings settings, LockFile lock, UniqueFd listening)
    : settings_(std::move(settings)),
      lock_(std::move(lock)),
      lifetime_(
          io_, *this,
          {settings_.socket, settings_.idle_exit, settings_.retire_quiet, settings_.before_leaving,
           settings_.log, looks_at_config(), settings_.look_pause}) {
  if (settings_.passed)
    lifetime_.listen_for_manager(std::move(settings_.passed));
  else
    lifetime_.listen(std::move(listening));
  if (!settings_.file_threads) settings_.file_threads = std::make_shared<FileThreads>();
  judge_ = std::make_unique<FileJudge>(
      io_, FileJudge::Settings{
               .exclusions = {settings_.config.cache_exclude, settings_.config.cache_gitignore},
               .threads = settings_.file_threads,
               .facts = settings_.facts});
  if (settings_.store) begin_store();
  completion::CompletionService::Settings limits;
  limits.keeper = settings_.keeper;
  limits.taste = settings_.taste;
  limits.pace = settings_.pace;
  limits.remote = settings_.remote;
  limits.window_tokens = settings_.config.window_tokens;
  limits.may_load_again = settings_.may_load_again;
  limits.shows_edits = settings_.config.context_edits;
  limits.release_after = std::chrono::seconds(settings_.config.device_idle_release_s);
  limits.background = [battery = false, asked = Clock::time_point()]() mutable {
    constexpr auto kAskAgain = std::chrono::seconds(5);
    if (Clock::now() - asked > kAskAgain) {
      battery = on_battery();
      asked = Clock::now();
    }
    return !battery;
  };
  if (settings_.config.context_files && settings_.config.completion.recall) {
    keep_heads();
    limits.ask_head = [this](completion::HeadQuestion asked) { heads_->ask(std::move(asked)); };
  }
  service_ = std::make_unique<completion::CompletionService>(watched(settings_.engine), limits,
                                                             [this] { post_change(); });
  if (settings_.config.completion.recall) read_projects();
}

void Daemon::Impl::keep_heads() {
  const auto threads =
      settings_.project_threads ? settings_.project_threads : settings_.file_threads;
  heads_ = std::make_unique<HeadKeeper>(HeadKeeper::Settings{
      .exclusions = Exclusions(settings_.config.cache_exclude, /*gitignore=*/true),
      .threads = threads,
      .files =
          [this](const std::string& project) {
            return projects_ ? projects_->files(project) : std::vector<std::string>();
          },
      .deliver =
          [this](completion::HeadAnswer head) {
            asio::post(io_, [this, shown = head.shown] { shows(shown); });
            service_->show_head(std::move(head));
          }});
}

void Daemon::Impl::read_projects() {
  projects_ = std::make_unique<ProjectReader>(
      Exclusions(settings_.config.cache_exclude, /*gitignore=*/true),
      [this](ProjectUpdate update) {
        if (update.is_last && heads_) heads_->project_changed(update.project);
        service_->change_index(
            [update = std::move(update)](recall::Index& index) { apply(update, index); });
      },
      ProjectReader::Settings{.threads = settings_.project_threads,
                              .requests = service_->in_flight()});
}

void Daemon::Impl::look_at_project(const completion::TextHome& home) {
  if (projects_) projects_->look_at(home.project, recall::family_of(home.path), home.in_workspace);
}

void Daemon::Impl::file_changed(const std::string& path) {
  if (projects_) projects_->changed(path);
}

void Daemon::Impl::forget_text(const completion::TextHome& home) {
  if (home.path.empty()) return;
  service_->change_index([home](recall::Index& index) { index.forget({home.project, home.path}); });
}

completion::EngineFactory Daemon::Impl::watched(completion::EngineFactory factory) {
  return [this, factory = std::move(factory)](const std::function<void(double)>& progress,
                                              std::stop_token stop) {
    return factory(
        [&](double fraction) {
          progress(fraction);
          post_change();
        },
        stop);
  };
}

void Daemon::Impl::post_change() {
  if (change_posted_.exchange(true)) return;  // many changes while io is busy are one
  asio::post(io_, [this] {
    change_posted_ = false;
    model_changed();
  });
}

Daemon::Impl::~Impl() {
  aside_.stop();
  aside_.join();
  judge_.reset();
  if (heads_) heads_->stop();
  projects_.reset();
  service_.reset();
  // The store's last pages are written while the lock is held: the next daemon finds it free.
  if (settings_.store) settings_.store->listen(nullptr);
  settings_.engine = nullptr;
  settings_.keeper.reset();
  settings_.store.reset();
  connections_.clear();
}

void Daemon::Impl::run() {
  lifetime_.start();
  for (bool ended = false; !ended;) try {
      give_up_stuck();
      lifetime_.go_on();
      io_.run();
      ended = true;
    } catch (const std::bad_alloc&) {
      // What asked for the memory is given up; all others are served.
      log().error("no memory: something was given up");
    }
}

void Daemon::Impl::give_up_stuck() {
  std::vector<std::shared_ptr<Connection>> stuck;
  for (const auto& [id, connection] : connections_)
    if (connection->is_stuck()) stuck.push_back(connection);
  for (const auto& connection : stuck) connection->give_up();
}

void Daemon::Impl::work_for(std::uint64_t session, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    // Its peer waits for an answer that does not come; its bridge begins another session.
    if (const auto found = connections_.find(session); found != connections_.end())
      std::shared_ptr(found->second)->give_up();
  }
}

void Daemon::Impl::judge(const completion::DocumentKey& document, FileJudge::Judged judged) {
  judge_->judge(document.session, document.uri,
                [this, session = document.session, judged = std::move(judged)](
                    const FileFacts& facts) { work_for(session, [&] { judged(facts); }); });
}

void Daemon::Impl::admit(Lifetime::Socket socket) {
  if (!peer_is_this_user(socket.native_handle()))
    return log().warn("closed a connection from another user");
  MemoryReserve::restore();
  if (connections_.size() >= settings_.sessions_max && !make_room())
    return log().warn("closed a connection: {} sessions are open", connections_.size());
  const std::uint64_t id = ++last_session_;
  lifetime_.session_began();
  auto connection = std::make_shared<Connection>(
      std::move(socket), *this,
      Connection::Settings{
          id, settings_.output_bytes_max, [this](std::uint64_t gone) { ended(gone); },
          settings_.silence_max, settings_.frame_max, &unfinished_bytes_, &turns_,
          [this](std::function<void()> work) { asio::post(aside_, std::move(work)); }});
  connections_.emplace(id, connection);
  connection->start();
}

bool Daemon::Impl::make_room() {
  std::shared_ptr<Connection> oldest;
  for (const auto& [id, connection] : connections_)
    if (!connection->session().is_initialized() &&
        (!oldest || connection->last_heard() < oldest->last_heard()))
      oldest = connection;
  if (oldest) oldest->give_way();
  return oldest != nullptr;
}

void Daemon::Impl::ended(std::uint64_t id) {
  connections_.erase(id);
  lifetime_.session_ended();
  trim_clock_.expires_after(kTrimAfter);
  trim_clock_.async_wait([this](error_code cancelled) {
    if (!cancelled) asio::post(aside_, give_free_memory_back);
  });
}

void Daemon::Impl::end_sessions(bool another_comes) {
  for (const auto& [id, connection] : connections_) {
    connection->session().take_leave(another_comes);
    connection->finish();
  }
}

void Daemon::Impl::stop_from_any_thread() {
  asio::post(io_, [this] { stop(); });
}

void Daemon::Impl::stop_on_signals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) signals_.add(signal);
  signals_.async_wait([this](error_code error, int) {
    if (!error) stop();
  });
}

void Daemon::Impl::complete(completion::Request request,
                            std::function<void(completion::Outcome)> done) {
  lifetime_.request_began();
  serves(request.document.uri);
  const std::uint64_t session = request.document.session;
  const auto asking = connections_.find(session);
  request.waits = asking != connections_.end() && asking->second->asks_for_much();
  if (request.partial)
    request.partial = [this, session,
                       partial = std::move(request.partial)](const completion::Item& item) {
      asio::post(io_,
                 [this, session, partial, item] { work_for(session, [&] { partial(item); }); });
    };
  service_->submit(std::move(request), [this, session, done = std::move(done)](
                                           completion::Outcome outcome) mutable {
    asio::post(io_, [this, session, done = std::move(done), outcome = std::move(outcome)] {
      lifetime_.request_answered();
      work_for(session, [&] { done(outcome); });
    });
  });
}

void Daemon::Impl::close_document(completion::DocumentKey document) {
  service_->close(std::move(document));
}

void Daemon::Impl::open_document(completion::OpenedDocument opened) {
  serves(opened.document.uri);
  service_->open(std::move(opened));
}

ModelProgress Daemon::Impl::model_progress() const {
  const completion::ServiceStatus status = service_->status();
  return {status.state, status.load_progress, status.failure, status.remote.trouble};
}

void Daemon::Impl::model_changed() {
  const ModelProgress model = model_progress();
  if (model.state == completion::EngineState::kFailed)
    log().error("no model: {}", printable(model.failure));
  if (model.remote_trouble != remote_trouble_) {
    remote_trouble_ = model.remote_trouble;
    if (remote_trouble_.empty())
      log().info("the engine elsewhere answers again");
    else
      log().warn("the engine elsewhere: {}", printable(remote_trouble_));
  } else if (model.state == completion::EngineState::kReady) {
    log().info("the model is ready");
  }
  for (const auto& [id, connection] : connections_) connection->session().model_changed();
}

lsp::Json Daemon::Impl::status() const {
  StatusParts parts;
  parts.version = version();
  parts.pid = ::getpid();
  parts.uptime_s =
      std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_).count();
  parts.model = settings_.opened_model->get();
  parts.model_path = settings_.model_path;
  parts.model_reason = settings_.model_reason;
  parts.device_reason = settings_.opened_model->device_reason();
  parts.weights = settings_.opened_model->weights();
  parts.service = service_->status();
  if (projects_) parts.projects = projects_->status();
  for (const auto& [reason, count] : silence_) parts.service.silence[reason] += count;
  parts.config = settings_.config;
  if (settings_.http) parts.http = settings_.http();
  parts.sandbox = settings_.sandbox;
  if (settings_.store) parts.store = settings_.store->status();
  for (const auto& [id, connection] : connections_)
    parts.sessions.push_back(connection->session().info());
  return status_json(parts);
}

Result<std::unique_ptr<Daemon>> Daemon::open(Settings settings) {
  auto lock = take_lock(
      {settings.lock, settings.socket, static_cast<bool>(settings.passed), settings.lock_wait});
  if (!lock) return tl::unexpected(lock.error());
  auto listening = settings.passed ? Result<UniqueFd>(UniqueFd()) : listen_at(settings.socket);
  if (!listening) return tl::unexpected(listening.error());
  return std::unique_ptr<Daemon>(new Daemon(
      std::make_unique<Impl>(std::move(settings), std::move(*lock), std::move(*listening))));
}

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() = default;
void Daemon::run() { impl_->run(); }
void Daemon::stop() { impl_->stop_from_any_thread(); }
void Daemon::stop_on_signals() { impl_->stop_on_signals(); }

}  // namespace efimd::service
