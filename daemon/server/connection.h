#pragma once

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/server/session.h"
#include "lsp/framing.h"

namespace efimd::service {

/// One accepted socket: bytes to frames for its Session, and the session's frames to bytes.
///
/// Thread: io.  Owns: socket and session; keeps itself alive while an operation is in flight.
/// Limits: output_bytes_max of unsent output; past it, a peer that does not read is disconnected.
/// Frames are limited by lsp::FrameReader; after a broken one the connection is closed, because it
/// is unknown where the next one begins. Whatever the reason, the end is one line in the log and
/// one call of `ended`.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;
  struct Settings {
    std::uint64_t id = 0;
    std::size_t output_bytes_max = 0;
    std::function<void(std::uint64_t id)> ended;  ///< from inside an operation, never from start()
  };

  Connection(Socket socket, SessionHost& host, Settings settings);

  void start();
  /// Sends what is queued, then closes.
  void finish();
  Session& session() { return *session_; }

 private:
  void read();
  void take(std::string_view bytes);
  void send(std::string body);
  void write();
  enum class End { kClean, kFault };
  void close(End end, std::string_view why);

  Socket socket_;
  SessionHost& host_;
  Settings settings_;
  std::shared_ptr<Session> session_;
  lsp::FrameReader reader_;
  std::array<char, std::size_t{64} << 10> input_;
  std::deque<std::string> output_;  ///< framed; the first is being written
  std::size_t output_bytes_ = 0;
  bool finishing_ = false;
  bool closed_ = false;
};

}  // namespace efimd::service
