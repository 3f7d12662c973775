#include "daemon/server/lifetime.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>
#include <thread>

namespace efimd::service {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

/// A peer that has not read its last answers by then does not get them.
constexpr auto kDrainMax = std::chrono::seconds(1);
/// Before accepting is tried again when the process is out of descriptors.
constexpr auto kAcceptRetry = std::chrono::milliseconds(200);
constexpr auto kLockRetry = std::chrono::milliseconds(5);

}  // namespace

Result<LockFile> take_lock(const LockRequest& request) {
  const auto deadline = std::chrono::steady_clock::now() + request.wait;
  for (;;) {
    auto held = LockFile::try_lock(request.lock);
    if (!held) return tl::unexpected(held.error());
    if (*held) return std::move(**held);
    const auto holder = LockFile::last_holder(request.lock);
    const std::string pid = holder ? std::to_string(*holder) : "?";
    // A passed socket takes connections without a daemon (D-5), so it tells nothing about another
    // daemon.
    if (!request.passed && connect_to(request.socket))
      return fail(Fault::kNotReady, "a daemon is running already (pid " + pid + ")",
                  "`efimd status` shows it, `efimd stop` ends it");
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(
          Fault::kNotReady,
          fmt::format("process {} holds {} but does not listen", pid, request.lock.string()),
          "`efimd stop` ends it");
    std::this_thread::sleep_for(kLockRetry);
  }
}

Lifetime::Lifetime(asio::io_context& io, Host& host, LifetimeSettings settings)
    : io_(io), host_(host), settings_(std::move(settings)) {}

Lifetime::~Lifetime() { unlink_socket(); }

std::optional<Lifetime::FileIdentity> Lifetime::identity_of(const std::filesystem::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return FileIdentity(info.st_dev, info.st_ino);
}

void Lifetime::assign(UniqueFd fd) {
  acceptor_.emplace(io_, asio::local::stream_protocol(), fd.release());
  acceptor_->non_blocking(true);
}

void Lifetime::listen(UniqueFd listening) {
  assign(std::move(listening));
  socket_file_ = identity_of(settings_.socket);
}

void Lifetime::listen_for_manager(UniqueFd passed) { assign(std::move(passed)); }

void Lifetime::start() {
  accept();
  start_idle_clock();
}

void Lifetime::session_began() {
  idle_clock_.cancel();
  look_at_config();
}

void Lifetime::session_ended() {
  if (host_.session_count() > 0) return;
  if (stopping_ || !acceptor_) return io_.stop();
  start_idle_clock();
}

void Lifetime::request_began() {
  ++unanswered_;
  last_request_ = Clock::now();
  look_at_config();
}

void Lifetime::request_answered() { --unanswered_; }

void Lifetime::accept() {
  acceptor_->async_accept([this](error_code error, Socket socket) {
    accepting_ = false;
    if (stopping_ || error == asio::error::operation_aborted) return;
    if (!error) {
      host_.admit(std::move(socket));
      if (acceptor_) accept();
      return;
    }
    settings_.log->error("cannot accept a connection: {}", error.message());
    retry_clock_.expires_after(kAcceptRetry);
    retry_clock_.async_wait([this](error_code cancelled) {
      if (!cancelled && acceptor_) accept();
    });
    accepting_ = true;
  });
  accepting_ = true;
}

void Lifetime::go_on() {
  if (acceptor_ && !accepting_ && !stopping_) accept();
}

void Lifetime::start_idle_clock() {
  if (settings_.idle_exit.count() == 0 || stopping_) return;
  idle_clock_.expires_after(settings_.idle_exit);
  idle_clock_.async_wait([this](error_code cancelled) {
    if (!cancelled && !stopping_) leave_if_alone();
  });
}

void Lifetime::leave_if_alone() {
  if (host_.session_count() > 0) return;
  if (settings_.before_leaving) settings_.before_leaving();
  const bool name_is_ours = socket_file_.has_value();
  unlink_socket();                               // D-2 a
  const std::size_t accepted = accept_queued();  // D-2 b
  if (accepted > 0 && !name_is_ours) return;     // D-5: serve on, accepting still waits
  acceptor_.reset();
  if (accepted == 0) {  // D-2 c
    settings_.log->info("idle for {} s: leaving", settings_.idle_exit.count() / 1000);
    return io_.stop();
  }
  auto listening = listen_at(settings_.socket);
  if (!listening) {
    settings_.log->error("{}; leaving after the sessions that are open",
                         listening.error().message());
    return;
  }
  listen(std::move(*listening));
  accept();
}

std::size_t Lifetime::accept_queued() {
  for (std::size_t accepted = 0;; ++accepted) {
    error_code error;
    Socket socket = acceptor_->accept(error);
    if (error) return accepted;
    host_.admit(std::move(socket));
  }
}

void Lifetime::unlink_socket() {
  if (!socket_file_ || identity_of(settings_.socket) != socket_file_) return;
  ::unlink(settings_.socket.c_str());
  socket_file_.reset();
}

void Lifetime::stop() {
  if (stopping_) return;
  stopping_ = true;
  settings_.log->info("asked to stop");
  unlink_socket();
  acceptor_.reset();
  idle_clock_.cancel();
  if (host_.session_count() == 0) return io_.stop();
  host_.end_sessions(retiring_);
  drain_clock_.expires_after(kDrainMax);
  drain_clock_.async_wait([this](error_code) { io_.stop(); });
}

void Lifetime::retire(std::string_view why) {
  if (std::exchange(retiring_, true)) return;
  settings_.log->info("leaves when nobody asks for anything: {}", why);
  retire_when_quiet();
}

void Lifetime::look_at_config() {
  if (!settings_.look_at_config || retiring_ || stopping_ || Clock::now() < next_look_) return;
  next_look_ = Clock::now() + settings_.look_pause;
  try {
    settings_.look_at_config([this](const ConfigLook& look) { judge_config(look); });
  } catch (const std::bad_alloc&) {
    // The next request looks.
  }
}

void Lifetime::judge_config(const ConfigLook& look) {
  if (look.found == ConfigLook::Found::kBeingWritten) {
    look_clock_.expires_at(next_look_);
    return look_clock_.async_wait([this](error_code cancelled) {
      if (!cancelled) look_at_config();
    });
  }
  host_.show_config_trouble(look.trouble);
  if (look.found == ConfigLook::Found::kOther) retire("the configuration has changed");
}

/// D-6. By the clock even when it is quiet already: who asked has its answer by then.
void Lifetime::retire_when_quiet() {
  const Clock::time_point heard = unanswered_ > 0 ? Clock::now() : last_request_;
  retire_clock_.expires_at(std::max(heard + settings_.retire_quiet, Clock::now()));
  retire_clock_.async_wait([this](error_code cancelled) {
    if (cancelled || stopping_) return;
    const bool quiet = unanswered_ == 0 && Clock::now() >= last_request_ + settings_.retire_quiet;
    return quiet ? stop() : retire_when_quiet();
  });
}

}  // namespace efimd::service
