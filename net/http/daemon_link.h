#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "daemon/client/bridge.h"
#include "daemon/client/bridge_session.h"
#include "daemon/config/local_socket.h"
#include "lsp/framing.h"
#include "lsp/json_rpc.h"

namespace efimd::http {

/// A conversation with the user's daemon, as `efimd lsp` has it: BridgeSession keeps it over the
/// death of a daemon (BR-1 to BR-5), and this moves its bytes.
///
///   The daemon is looked for, and started if need be, when there is something to say. After
///   kAttemptsMax failures in a row on_lost is called, and what was said is forgotten. Failures are
///   in a row if less than `steady` of service lies between them: an answer to initialize is none,
///   because a request that ends the daemon's session is asked again behind it.
///
/// Thread: that of the io context; connecting has one of its own, because it may wait for a daemon
/// to start. Limits: kQueuedBytesMax to the daemon, beyond which it counts as lost.
class DaemonLink {
 public:
  static constexpr std::size_t kQueuedBytesMax = std::size_t{64} << 20;
  static constexpr int kAttemptsMax = 3;
  static constexpr auto kConnectMax = std::chrono::seconds(10);

  struct Ends {
    /// Connects to the daemon and starts it if none runs; blocks at most until the deadline.
    std::function<Result<service::UniqueFd>(service::Deadline)> connect;
    std::function<void(const lsp::Message&)> on_message;  ///< answers and notifications
    /// No daemon can be had, or it hung up for good: nothing that was asked will be answered.
    std::function<void(const std::string& why)> on_lost;
    std::function<void(const std::string&)> log;
    std::chrono::milliseconds steady = service::Bridge::kSteady;
  };

  DaemonLink(boost::asio::io_context& io, Ends ends);
  ~DaemonLink();
  DaemonLink(const DaemonLink&) = delete;
  DaemonLink& operator=(const DaemonLink&) = delete;

  /// A message body to the daemon. The first one begins the conversation.
  void say(std::string body);
  /// Ends the conversation; the next say() begins another. An idle daemon can end then.
  void rest();
  bool is_resting() const { return !greeted_; }

 private:
  using Socket = boost::asio::local::stream_protocol::socket;

  void greet();
  void pump();
  void look_for_daemon();
  void connected(Result<service::UniqueFd> connection);
  void read();
  void write();
  void take(std::string_view bytes);
  void gone(const std::string& why);
  void failed(const std::string& why);
  void lost(const std::string& why);
  void hang_up();

  boost::asio::io_context& io_;
  Ends ends_;
  service::BridgeSession session_;
  boost::asio::thread_pool connector_{1};
  boost::asio::steady_timer retry_;
  std::shared_ptr<Socket>
      socket_;  ///< null: none; handlers of an older one see that it is not this
  lsp::FrameReader frames_;
  std::deque<std::string> output_;
  std::size_t output_bytes_ = 0;
  std::array<char, 64 * 1024> input_{};
  bool greeted_ = false;
  bool connecting_ = false;
  std::uint64_t conversation_ = 0;  ///< answers to an older one's attempts are dropped
  int failures_ = 0;                ///< in a row
  std::chrono::steady_clock::time_point connected_at_;
};

}  // namespace efimd::http
