#include "daemon/server/daemon.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "daemon/config/local_socket.h"
#include "daemon/config/version.h"
#include "daemon/server/connection.h"
#include "daemon/server/status_json.h"

// How a daemon leaves without losing an editor
//
//   D-1  The lock is held from before the socket's file exists until after it is gone and everything
//        is destroyed. Whoever holds the lock owns the name of the socket.
//   D-2  Idle: (a) unlink the socket's file: who comes now finds none and starts a daemon, which
//        waits for the lock; (b) accept what the kernel has queued; (c) where that was nobody, close
//        the socket and let the lock go; else listen under the same name again and serve on: the
//        daemon that waits finds the socket, says that one is running and ends, and its bridge
//        connects here.
//   D-3  A peer that had found the file before (a) but is queued after (b) is closed unanswered with
//        the socket. It sees the end of the stream before its initialize was answered, and starts
//        over: the bridge's part.
//   D-4  Asked to stop: unlink, close the socket, stop pending work, send what is queued (for
//        kDrainMax at most), end.
//   D-5  With a socket that a service manager passed, the name is the manager's: the file is never
//        unlinked, and who comes too late waits in the kernel's queue, for which the manager starts
//        the next daemon. Nobody is closed unanswered, and D-3 has nothing to do.
//   D-6  Asked to retire, for a later build is here (bridge_session.h, B-4): as D-4, but once no
//        request waits and none came for retire_quiet. The next daemon waits for the lock (D-1), so
//        the model is in memory once.

namespace efimd::service {

namespace asio = boost::asio;
using boost::system::error_code;
using LocalSocket = asio::local::stream_protocol::socket;
using Clock = std::chrono::steady_clock;

namespace {

/// A peer that has not read its last answers by then does not get them.
constexpr auto kDrainMax = std::chrono::seconds(1);
/// Before accepting is tried again when the process is out of descriptors.
constexpr auto kAcceptRetry = std::chrono::milliseconds(200);
constexpr auto kLockRetry = std::chrono::milliseconds(5);

/// The daemon's lock, or kNotReady when a daemon listens (D-2 c) or does not let go of it in time.
Result<LockFile> take_lock(const Daemon::Settings& settings) {
  const auto deadline = Clock::now() + settings.lock_wait;
  for (;;) {
    auto held = LockFile::try_lock(settings.lock);
    if (!held) return tl::unexpected(held.error());
    if (*held) return std::move(**held);
    const auto holder = LockFile::last_holder(settings.lock);
    const std::string pid = holder ? std::to_string(*holder) : "?";
    // A passed socket takes connections whoever runs (D-5): it tells nothing about another daemon.
    if (!settings.passed && connect_to(settings.socket))
      return fail(Fault::kNotReady, "a daemon is running already (pid " + pid + ")",
                  "`efimd status` shows it, `efimd stop` ends it");
    if (Clock::now() >= deadline)
      return fail(
          Fault::kNotReady,
          fmt::format("process {} holds {} but does not listen", pid, settings.lock.string()),
          "end that process");
    std::this_thread::sleep_for(kLockRetry);
  }
}

using FileIdentity = std::pair<dev_t, ino_t>;

std::optional<FileIdentity> file_identity(const std::filesystem::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return FileIdentity(info.st_dev, info.st_ino);
}

}  // namespace

class Daemon::Impl : public SessionHost {
 public:
  /// `listening`: of no use where settings has a passed socket.
  Impl(Settings settings, LockFile lock, UniqueFd listening);
  ~Impl() override;

  void run();
  void stop_from_any_thread();
  void stop_on_signals();

  // SessionHost
  const Config& config() const override { return settings_.config; }
  spdlog::logger& log() override { return *settings_.log; }
  void complete(completion::Request request,
                std::function<void(completion::Outcome)> done) override;
  void close_document(completion::DocumentKey document) override;
  void open_document(completion::OpenedDocument opened) override;
  void focus_document(completion::DocumentKey document) override;
  void dismiss_suggestion(completion::Dismissal dismissal) override;
  const Exclusions& exclusions() const override { return exclusions_; }
  void cache(CacheRequest request, std::function<void(Result<lsp::Json>)> done) override;
  void count_silence(const std::string& reason) override { ++silence_[reason]; }
  ModelProgress model_progress() const override;
  lsp::Json status() const override;
  void stop() override;
  void retire() override;

 private:
  enum class Name { kOurs, kOfTheManager };
  void listen(UniqueFd fd, Name name);
  void accept();
  void admit(LocalSocket socket);
  void ended(std::uint64_t id);
  /// `factory` with its progress told to the sessions.
  completion::EngineFactory watched(completion::EngineFactory factory);
  void post_change();  // from the engine thread
  void model_changed();

  /// Listens to what goes wrong, and takes out what has been excluded since it was stored.
  void begin_store();
  void ask_store(const CacheRequest& request, std::function<void(Result<lsp::Json>)> done);
  /// What the store cannot know of the answer: device tokens, speeds.
  void complete_answer(const CacheRequest& request, lsp::Json& answer) const;

  void start_idle_clock();
  void leave_if_alone();
  void retire_when_quiet();
  std::size_t accept_queued();
  /// Removes the socket's file if it is still ours: a cleaner of old files may have let another
  /// daemon in.
  void unlink_socket();

  Settings settings_;
  const LockFile lock_;  // D-1: the first in, the last out
  const Clock::time_point started_ = Clock::now();
  asio::io_context io_{1};
  std::optional<asio::local::stream_protocol::acceptor> acceptor_;
  std::optional<FileIdentity> socket_file_;  ///< ours to unlink; none where it was passed
  asio::steady_timer idle_clock_{io_};
  asio::steady_timer retry_clock_{io_};
  asio::steady_timer drain_clock_{io_};
  asio::steady_timer retire_clock_{io_};
  asio::signal_set signals_{io_};
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;
  std::uint64_t last_session_ = 0;
  std::map<std::string, std::uint64_t> silence_;
  Exclusions exclusions_;
  std::size_t unanswered_ = 0;  ///< requests that the completion service has
  Clock::time_point last_request_{};
  bool stopping_ = false;
  bool retiring_ = false;
  std::atomic<bool> change_posted_ = false;
  std::unique_ptr<completion::CompletionService> service_;  // its thread posts to io_: ends first
};

Daemon::Impl::Impl(Settings settings, LockFile lock, UniqueFd listening)
    : settings_(std::move(settings)), lock_(std::move(lock)) {
  if (settings_.passed)
    listen(std::move(settings_.passed), Name::kOfTheManager);
  else
    listen(std::move(listening), Name::kOurs);
  exclusions_ = Exclusions(settings_.config.cache_exclude, settings_.config.cache_gitignore);
  if (settings_.store) begin_store();
  completion::CompletionService::Settings limits;
  limits.keeper = settings_.keeper;
  limits.cold_prompt_ms = settings_.config.cold_prompt_ms;
  limits.release_after = std::chrono::seconds(settings_.config.device_idle_release_s);
  limits.background = [battery = false, asked = Clock::time_point()]() mutable {
    constexpr auto kAskAgain = std::chrono::seconds(5);
    if (Clock::now() - asked > kAskAgain) {
      battery = on_battery();
      asked = Clock::now();
    }
    return !battery;
  };
  service_ = std::make_unique<completion::CompletionService>(watched(settings_.engine), limits,
                                                             [this] { post_change(); });
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
  service_.reset();
  // The store's last pages are written while the lock is held: the next daemon finds it free.
  if (settings_.store) settings_.store->listen(nullptr);
  settings_.engine = nullptr;
  settings_.keeper.reset();
  settings_.store.reset();
  connections_.clear();
  unlink_socket();
}

void Daemon::Impl::run() {
  accept();
  start_idle_clock();
  io_.run();
}

void Daemon::Impl::listen(UniqueFd fd, Name name) {
  acceptor_.emplace(io_, asio::local::stream_protocol(), fd.release());
  acceptor_->non_blocking(true);
  if (name == Name::kOurs) socket_file_ = file_identity(settings_.socket);
}

void Daemon::Impl::accept() {
  acceptor_->async_accept([this](error_code error, LocalSocket socket) {
    if (stopping_ || error == asio::error::operation_aborted) return;
    if (!error) {
      admit(std::move(socket));
      if (acceptor_) accept();
      return;
    }
    log().error("cannot accept a connection: {}", error.message());
    retry_clock_.expires_after(kAcceptRetry);
    retry_clock_.async_wait([this](error_code cancelled) {
      if (!cancelled && acceptor_) accept();
    });
  });
}

void Daemon::Impl::admit(LocalSocket socket) {
  if (!peer_is_this_user(socket.native_handle()))
    return log().warn("closed a connection from another user");
  if (connections_.size() >= settings_.sessions_max)
    return log().warn("closed a connection: {} sessions are open", connections_.size());
  const std::uint64_t id = ++last_session_;
  idle_clock_.cancel();
  auto connection = std::make_shared<Connection>(
      std::move(socket), *this,
      Connection::Settings{id, settings_.output_bytes_max,
                           [this](std::uint64_t gone) { ended(gone); }});
  connections_.emplace(id, connection);
  connection->start();
}

void Daemon::Impl::ended(std::uint64_t id) {
  connections_.erase(id);
  if (!connections_.empty()) return;
  if (stopping_ || !acceptor_) return io_.stop();
  start_idle_clock();
}

void Daemon::Impl::start_idle_clock() {
  if (settings_.idle_exit.count() == 0 || stopping_) return;
  idle_clock_.expires_after(settings_.idle_exit);
  idle_clock_.async_wait([this](error_code cancelled) {
    if (!cancelled && !stopping_) leave_if_alone();
  });
}

void Daemon::Impl::leave_if_alone() {
  if (!connections_.empty()) return;
  if (settings_.before_leaving) settings_.before_leaving();
  const bool name_is_ours = socket_file_.has_value();
  unlink_socket();                               // D-2 a
  const std::size_t accepted = accept_queued();  // D-2 b
  if (accepted > 0 && !name_is_ours) return;     // D-5: serve on, accepting still waits
  acceptor_.reset();
  if (accepted == 0) {  // D-2 c
    log().info("idle for {} s: leaving", settings_.idle_exit.count() / 1000);
    return io_.stop();
  }
  auto listening = listen_at(settings_.socket);
  if (!listening) {
    log().error("{}; leaving after the sessions that are open", listening.error().message());
    return;
  }
  listen(std::move(*listening), Name::kOurs);
  accept();
}

std::size_t Daemon::Impl::accept_queued() {
  for (std::size_t accepted = 0;; ++accepted) {
    error_code error;
    LocalSocket socket = acceptor_->accept(error);
    if (error) return accepted;
    admit(std::move(socket));
  }
}

void Daemon::Impl::unlink_socket() {
  if (!socket_file_ || file_identity(settings_.socket) != socket_file_) return;
  ::unlink(settings_.socket.c_str());
  socket_file_.reset();
}

void Daemon::Impl::stop() {
  if (stopping_) return;
  stopping_ = true;
  log().info("asked to stop");
  unlink_socket();
  acceptor_.reset();
  idle_clock_.cancel();
  if (connections_.empty()) return io_.stop();
  for (const auto& [id, connection] : connections_) {
    connection->session().take_leave();
    connection->finish();
  }
  drain_clock_.expires_after(kDrainMax);
  drain_clock_.async_wait([this](error_code) { io_.stop(); });
}

void Daemon::Impl::retire() {
  if (std::exchange(retiring_, true)) return;
  log().info("asked to make way for a later build");
  retire_when_quiet();
}

/// D-6. By the clock even when it is quiet already: who asked has its answer by then.
void Daemon::Impl::retire_when_quiet() {
  const Clock::time_point heard = unanswered_ > 0 ? Clock::now() : last_request_;
  retire_clock_.expires_at(std::max(heard + settings_.retire_quiet, Clock::now()));
  retire_clock_.async_wait([this](error_code cancelled) {
    if (cancelled || stopping_) return;
    const bool quiet = unanswered_ == 0 && Clock::now() >= last_request_ + settings_.retire_quiet;
    return quiet ? stop() : retire_when_quiet();
  });
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
  ++unanswered_;
  last_request_ = Clock::now();
  service_->submit(std::move(request),
                   [this, done = std::move(done)](completion::Outcome outcome) mutable {
                     asio::post(io_, [this, done = std::move(done), outcome = std::move(outcome)] {
                       --unanswered_;
                       done(outcome);
                     });
                   });
}

void Daemon::Impl::close_document(completion::DocumentKey document) {
  service_->close(std::move(document));
}

void Daemon::Impl::open_document(completion::OpenedDocument opened) {
  service_->open(std::move(opened));
}

void Daemon::Impl::focus_document(completion::DocumentKey document) {
  service_->focus(std::move(document));
}

void Daemon::Impl::dismiss_suggestion(completion::Dismissal dismissal) {
  service_->dismiss(std::move(dismissal));
}

void Daemon::Impl::begin_store() {
  settings_.store->listen([this](const std::string& message) {
    asio::post(io_, [this, message] { log().warn("KV on disk: {}", message); });
  });
  settings_.store->post([exclusions = exclusions_](store::Store& store) {
    for (const std::string& uri : store.document_uris())
      if (!exclusions.judge(uri).may_be_stored()) static_cast<void>(store.purge(uri));
  });
}

void Daemon::Impl::cache(CacheRequest request, std::function<void(Result<lsp::Json>)> done) {
  if (!settings_.store)
    return done(
        fail(Fault::kUnsupported, "nothing is kept on disk", "set cache.disk_mb to more than 0"));
  if (request.action != CacheRequest::Action::kPurge) return ask_store(request, std::move(done));
  // First the device, then what waits to be written, then the disk: so that nothing comes back.
  service_->forget(request.model.empty() ? request.uri : std::string(), [=, this] {
    asio::post(io_, [=, this] {
      if (request.uri.empty()) {
        settings_.store->forget_queued();
      } else {
        settings_.store->forget_queued(request.uri);
      }
      ask_store(request, done);
    });
  });
}

void Daemon::Impl::ask_store(const CacheRequest& request,
                             std::function<void(Result<lsp::Json>)> done) {
  const store::StoreStatus status = settings_.store->status();
  if (!settings_.store->is_usable()) return done(fail(Fault::kIo, status.trouble));
  settings_.store->post([=, this](store::Store& store) {
    Result<lsp::Json> answer = serve_cache_request(store, request);
    asio::post(io_, [=, this, answer = std::move(answer)]() mutable {
      if (answer) complete_answer(request, *answer);
      done(std::move(answer));
    });
  });
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

ModelProgress Daemon::Impl::model_progress() const {
  const completion::ServiceStatus status = service_->status();
  return {status.state, status.load_progress, status.failure};
}

void Daemon::Impl::model_changed() {
  const ModelProgress model = model_progress();
  if (model.state == completion::EngineState::kReady) log().info("the model is ready");
  if (model.state == completion::EngineState::kFailed) log().error("no model: {}", model.failure);
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
  for (const auto& [reason, count] : silence_) parts.service.silence[reason] += count;
  parts.config = settings_.config;
  if (settings_.store) parts.store = settings_.store->status();
  for (const auto& [id, connection] : connections_)
    parts.sessions.push_back(connection->session().info());
  return status_json(parts);
}

Result<std::unique_ptr<Daemon>> Daemon::open(Settings settings) {
  auto lock = take_lock(settings);
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
