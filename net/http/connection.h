#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "net/http/completer.h"
#include "net/http/guard.h"
#include "net/http/routes.h"

namespace efimd::http {

/// One client's connection: requests one after another, each checked before its body is read.
///
/// If the client closes while its request is being answered, the request is withdrawn (C-2). A
/// stream begins with the first piece of the answer.
///
/// Thread: that of the io context. Held by its own handlers. Limits: below; what is over them is
/// refused with the reason, and the connection ends.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  static constexpr std::size_t kHeadBytesMax = std::size_t{16} << 10;
  static constexpr std::size_t kBodyBytesMax = std::size_t{8} << 20;
  static constexpr auto kHeadMax = std::chrono::seconds(10);
  static constexpr auto kBodyMax = std::chrono::seconds(30);
  static constexpr auto kIdleMax = std::chrono::seconds(60);

  /// `ended` is called once, when the connection is over. The references outlive it.
  Connection(boost::asio::ip::tcp::socket socket, Completer& completer, const GuardRules& rules,
             std::function<void()> ended);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start() { read_head(); }
  /// Refuses whatever comes: there are too many connections.
  void turn_away();
  /// The server ends, or another client needs the place.
  void close();
  /// No request of it is being served.
  bool is_idle() const { return idle_since_.has_value(); }
  /// Of two idle ones the lesser gives way: a stranger's, or the one that is idle for longer.
  auto place() const { return std::pair(known_, idle_since_); }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using error_code = boost::system::error_code;

  void read_head();
  void check_head();
  void read_body();
  void serve();
  void complete(const Route& route);
  void look(const Route& route);
  void begun(const std::string& text);
  void completed(const Outcome& outcome);
  void end_stream(const Outcome& outcome);
  void watch();
  void leave();
  void answer(const Answer& answer);
  /// Sends a chunk of a stream, after those before it; "" ends the stream.
  void send(const std::string& data);
  void write();
  void answered(bool keep_alive);
  void drain(std::size_t bytes_left);
  void answer_and_close(const Answer& answer);
  void refuse(unsigned status, std::string_view why);
  void failed_to_read(error_code error);

  boost::beast::tcp_stream stream_;
  Completer& completer_;
  const GuardRules& rules_;
  std::function<void()> ended_;
  boost::beast::flat_buffer buffer_{kHeadBytesMax + kBodyBytesMax};
  std::optional<Parser> parser_;
  std::optional<CompletionRequest> request_;
  std::optional<Completer::Ticket> ticket_;
  std::string said_;              ///< text of the stream's pieces; empty: none was begun
  std::string writing_, unsent_;  ///< bytes of the stream
  bool ended_stream_ = false;     ///< its last chunk is among them
  bool close_after_ = false;
  bool known_ = false;  ///< a request of it has passed the guard
  std::optional<Completer::Clock::time_point> idle_since_ = Completer::Clock::now();
  bool first_ = true;
};

}  // namespace efimd::http
