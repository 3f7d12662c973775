#include "net/http/server.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <utility>

namespace efimd::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

Server::Server(Settings settings)
    : rules_{settings.port, std::move(settings.token)},
      log_(settings.log),
      completer_(io_, {std::move(settings.connect), {}, {}, settings.log}, settings.defaults),
      signals_(io_, SIGINT, SIGTERM, SIGUSR2) {}

Result<int> Server::listen() {
  if (auto done = listen_at(asio::ip::address_v4::loopback()); !done)
    return tl::unexpected(done.error());
  rules_.port = acceptors_.front().local_endpoint().port();
  // "localhost" is ::1 for some clients; a machine may have none.
  if (const auto done = listen_at(asio::ip::address_v6::loopback()); !done)
    log_("not on ::1: " + done.error().what);
  return rules_.port;
}

Result<void> Server::listen_at(const asio::ip::address& address) {
  const tcp::endpoint endpoint(address, static_cast<std::uint16_t>(rules_.port));
  Acceptor acceptor(io_);
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(Acceptor::reuse_address(true), error);
  if (!error && address.is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return fail(Fault::kIo,
                "port " + std::to_string(rules_.port) + " cannot be used: " + error.message(),
                "set http.port in config.toml, or 'efimd http --port', to a port that is free");
  acceptors_.push_back(std::move(acceptor));
  return {};
}

void Server::run() {
  for (Acceptor& acceptor : acceptors_) accept(acceptor);
  signals_.async_wait([this](error_code error, int) {
    if (!error) finish();
  });
  io_.run();
}

void Server::accept(Acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {  // no descriptors are left, perhaps: some will be
      const auto later = std::make_shared<asio::steady_timer>(io_, std::chrono::milliseconds(100));
      later->async_wait([this, &acceptor, later](error_code ended) {
        if (!ended) accept(acceptor);
      });
      return;
    }
    const bool too_many = open_ >= kConnectionsMax && !make_room();
    ++open_;
    const auto connection =
        std::make_shared<Connection>(std::move(socket), completer_, rules_, [this] { --open_; });
    if (too_many) {
      connection->turn_away();
    } else {
      served_.push_back(connection);
      connection->start();
    }
    accept(acceptor);
  });
}

/// Some clients leave connections open, and anyone on this machine may open some.
bool Server::make_room() {
  std::erase_if(served_, [](const auto& each) { return each.expired(); });
  std::shared_ptr<Connection> first;
  for (const auto& each : served_)
    if (auto other = each.lock(); other && other->is_idle())
      if (!first || other->place() < first->place()) first = std::move(other);
  if (first) first->close();
  return first != nullptr;
}

/// What is being answered is broken off: its clients see the connection end.
void Server::finish() { io_.stop(); }

}  // namespace efimd::http
