#pragma once

#include <sys/socket.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "daemon/config/local_socket.h"
#include "lsp/framing.h"
#include "lsp/json_rpc.h"

namespace efimd::test {

/// A daemon on the test's own io context. It answers initialize, and leaves the rest to `heard`.
///
/// Thread: that of the io context, but for connect(). It outlives who connects.
class FakeDaemon {
 public:
  explicit FakeDaemon(boost::asio::io_context& io) : io_(io) {}

  std::function<void(const lsp::Message&)> heard = [](const lsp::Message&) {};
  int connections = 0;

  /// The client's end of a new connection; any thread.
  Result<service::UniqueFd> connect() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return fail(Fault::kIo, "no socket pair");
    boost::asio::post(io_, [this, fd = ends[1]] { accept(fd); });
    return service::UniqueFd(ends[0]);
  }
  void say(const std::string& body) {
    boost::asio::write(*socket_, boost::asio::buffer(lsp::framed(body)));
  }
  void hang_up() { socket_ = nullptr; }

 private:
  using Socket = boost::asio::local::stream_protocol::socket;

  void accept(int fd) {
    ++connections;
    socket_ = std::make_shared<Socket>(io_, boost::asio::local::stream_protocol(), fd);
    frames_ = {};
    read();
  }
  void read() {
    socket_->async_read_some(boost::asio::buffer(input_),
                             [this, socket = socket_](const auto& error, std::size_t size) {
                               if (error || socket != socket_) return;
                               frames_.feed({input_.data(), size});
                               take();
                               if (socket == socket_) read();
                             });
  }
  void take() {
    while (socket_) {
      const auto body = frames_.next();
      if (!body || !*body) return;
      const auto message = lsp::parse_message(**body);
      if (!message) return;
      if (message->method == "initialize")
        say(lsp::response_body(message->id, {{"capabilities", {{"positionEncoding", "utf-8"}}}}));
      else
        heard(*message);
    }
  }

  boost::asio::io_context& io_;
  /// Who connects does so on a thread that the io context does not know.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  std::shared_ptr<Socket> socket_;  ///< null: none
  lsp::FrameReader frames_;
  std::array<char, 4096> input_{};
};

}  // namespace efimd::test
