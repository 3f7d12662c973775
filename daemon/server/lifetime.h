#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "daemon/config/local_socket.h"
#include "daemon/models/config_watch.h"

namespace spdlog {
class logger;
}

// How a daemon leaves without losing an editor
//
//   D-1  The lock is held from before the socket's file exists until after it is gone and everything
//        is destroyed. Whoever holds the lock owns the name of the socket.
//   D-2  Idle: (a) unlink the socket's file: who comes now finds none and starts a daemon, which
//        waits for the lock; (b) accept what the kernel has queued; (c) if that was nobody, close
//        the socket and let the lock go; else listen under the same name again and serve on: the
//        daemon that waits finds the socket, says that one is running and ends, and its bridge
//        connects here.
//   D-3  A peer that had found the file before (a) but is queued after (b) is closed unanswered with
//        the socket. It sees the end of the stream before an answer to its initialize, and starts
//        over; the bridge does that.
//   D-4  Asked to stop: unlink, close the socket, stop pending work, send what is queued (for
//        kDrainMax at most), end.
//   D-5  With a socket that a service manager passed, the name is the manager's, and the file is
//        never unlinked. A late peer waits in the kernel's queue, and the manager starts the next
//        daemon for it. Nobody is closed unanswered, and D-3 has nothing to do.
//   D-6  Asked to retire, because a later build is here (bridge_session.h, BR-4): as D-4, but only
//        after no request waits and none came for retire_quiet. The next daemon waits for the lock
//        (D-1), so the model is in memory once.
//   D-7  A start would find another configuration: as D-6. Sessions that begin and requests look for
//        that, once in look_pause at most. One that a start could not read changes nothing.

namespace efimd::service {

struct LifetimeSettings {
  std::filesystem::path socket;
  std::chrono::milliseconds idle_exit{0};        ///< 0: never
  std::chrono::milliseconds retire_quiet{1500};  ///< D-6
  std::function<void()> before_leaving;          ///< between the decision to leave and D-2 a
  std::shared_ptr<spdlog::logger> log;
  /// D-7: looks, and calls on io with what was found, perhaps never. Empty: nobody looks.
  std::function<void(std::function<void(const ConfigLook&)>)> look_at_config;
  std::chrono::milliseconds look_pause{1000};
};

/// The daemon's lock, or kNotReady if a daemon listens at `socket` (D-2 c) or does not let go of the
/// lock within `wait`. `passed`: the socket takes connections without a daemon (D-5), and so tells
/// nothing.
struct LockRequest {
  std::filesystem::path lock;
  std::filesystem::path socket;
  bool passed = false;
  std::chrono::milliseconds wait{5000};
};
Result<LockFile> take_lock(const LockRequest& request);

/// The listening socket and the ways in which a daemon ends (D-2 … D-6).
///
/// Thread: io. Owns: the acceptor, the clocks, the socket's file. The lock (D-1) is the host's.
class Lifetime {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;

  /// The daemon, as far as its end concerns it.
  class Host {
   public:
    virtual ~Host() = default;
    virtual void admit(Socket socket) = 0;
    virtual std::size_t session_count() const = 0;
    /// Stops the sessions' pending work and closes each after its output is sent. `another_comes`:
    /// they should look for the next daemon at once.
    virtual void end_sessions(bool another_comes) = 0;
    /// Why the configuration that is there now is not taken; none if it is, or is the same.
    virtual void show_config_trouble(const std::optional<ConfigWarning>& trouble) = 0;
  };

  Lifetime(boost::asio::io_context& io, Host& host, LifetimeSettings settings);
  ~Lifetime();

  void listen(UniqueFd listening);           ///< at our own file
  void listen_for_manager(UniqueFd passed);  ///< D-5
  /// Accepts; without peers, the idle clock runs.
  void start();
  /// Accepts again if that could not be begun: an allocation may have failed.
  void go_on();

  void session_began();
  void session_ended();
  void request_began();
  void request_answered();

  void stop();                        ///< D-4
  void retire(std::string_view why);  ///< D-6
  bool is_stopping() const { return stopping_; }

 private:
  using Clock = std::chrono::steady_clock;
  using FileIdentity = std::pair<dev_t, ino_t>;

  static std::optional<FileIdentity> identity_of(const std::filesystem::path& path);
  void assign(UniqueFd fd);
  void accept();
  void start_idle_clock();
  void leave_if_alone();
  std::size_t accept_queued();
  void retire_when_quiet();
  void look_at_config();
  void judge_config(const ConfigLook& look);
  /// Removes the socket's file if it is still ours, because a cleaner of old files may have let
  /// another daemon in.
  void unlink_socket();

  boost::asio::io_context& io_;
  Host& host_;
  const LifetimeSettings settings_;
  std::optional<boost::asio::local::stream_protocol::acceptor> acceptor_;
  std::optional<FileIdentity> socket_file_;  ///< ours to unlink; none if it was passed
  boost::asio::steady_timer idle_clock_{io_};
  boost::asio::steady_timer retry_clock_{io_};
  boost::asio::steady_timer drain_clock_{io_};
  boost::asio::steady_timer retire_clock_{io_};
  boost::asio::steady_timer look_clock_{io_};
  std::size_t unanswered_ = 0;  ///< requests that the completion service has
  Clock::time_point last_request_{};
  Clock::time_point next_look_{};
  bool accepting_ = false;  ///< or waiting to
  bool stopping_ = false;
  bool retiring_ = false;
};

}  // namespace efimd::service
