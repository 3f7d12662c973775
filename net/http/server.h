#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "net/http/completer.h"
#include "net/http/connection.h"
#include "net/http/guard.h"

namespace efimd::http {

/// Listens on loopback and serves until SIGINT, SIGTERM, or SIGUSR2, which tells its starter's end.
///
/// Thread: that of run(). Limits: kConnectionsMax. For a further client one that has no request is
/// closed; if all have one, it is told so.
class Server {
 public:
  static constexpr std::size_t kConnectionsMax = 64;

  struct Settings {
    int port = 0;  ///< 0: any; listen() says which
    std::optional<std::string> token;
    Completer::Defaults defaults;
    std::function<Result<service::UniqueFd>(service::Deadline)> connect;  ///< see DaemonLink::Ends
    std::function<void(const std::string&)> log;
  };
  explicit Server(Settings settings);

  /// The port. On 127.0.0.1, and on ::1 where there is one. kIo if another program has the port.
  Result<int> listen();
  void run();

 private:
  using Acceptor = boost::asio::ip::tcp::acceptor;

  Result<void> listen_at(const boost::asio::ip::address& address);
  void accept(Acceptor& acceptor);
  bool make_room();
  void finish();

  boost::asio::io_context io_;
  GuardRules rules_;
  std::function<void(const std::string&)> log_;
  std::size_t open_ = 0;  ///< connections
  std::list<std::weak_ptr<Connection>> served_;
  Completer completer_;
  boost::asio::signal_set signals_;
  std::list<Acceptor> acceptors_;
};

}  // namespace efimd::http
