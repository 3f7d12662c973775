#include "net/http/daemon_link.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <utility>

#include "lsp/excerpt.h"

namespace efimd::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr char kInitializeId[] = "efimd-http";
constexpr auto kRetry = std::chrono::milliseconds(200);

}  // namespace

DaemonLink::DaemonLink(asio::io_context& io, Ends ends)
    : io_(io), ends_(std::move(ends)), retry_(io) {}

DaemonLink::~DaemonLink() {
  hang_up();
  connector_.join();
}

void DaemonLink::say(std::string body) {
  if (!greeted_) greet();
  session_.editor_says(std::move(body));
  pump();
}

void DaemonLink::greet() {
  greeted_ = true;
  failures_ = 0;
  const lsp::Json params = {
      {"processId", nullptr},
      {"rootUri", nullptr},
      {"clientInfo", {{"name", "efimd-http"}}},
      {"initializationOptions", {{"efim", {{"receipts", true}, {"state", true}}}}},
      {"capabilities",
       {{"general", {{"positionEncodings", lsp::Json::array({"utf-8"})}}},
        {"textDocument", {{"inlineCompletion", lsp::Json::object()}}}}}};
  session_.wait_for_status();  // clients ask whether the model is ready, and wait until it is
  session_.editor_says(lsp::request_body(kInitializeId, "initialize", params));
  session_.editor_says(lsp::notification_body("initialized", lsp::Json::object()));
}

void DaemonLink::rest() {
  if (!greeted_) return;
  greeted_ = false;
  ++conversation_;
  session_ = service::BridgeSession();
  retry_.cancel();
  hang_up();
}

/// Moves what the session has said to its ends.
void DaemonLink::pump() {
  for (const std::string& body : session_.take_for_daemon()) {
    output_.push_back(lsp::framed(body));
    output_bytes_ += output_.back().size();
    if (output_.size() == 1 && socket_) write();
  }
  if (output_bytes_ > kQueuedBytesMax) return lost("the daemon does not read what it is sent");
  const std::uint64_t conversation = conversation_;
  for (const std::string& body : session_.take_for_editor()) {
    const auto message = lsp::parse_message(body);
    if (!message) continue;
    if (message->id == lsp::Id(kInitializeId) && message->error)
      return lost("the daemon refused: " + message->error->message);
    ends_.on_message(*message);
    if (conversation != conversation_) return;  // it was ended meanwhile
  }
  look_for_daemon();
}

void DaemonLink::look_for_daemon() {
  if (socket_ || connecting_ || !session_.wants_daemon()) return;
  connecting_ = true;
  asio::post(connector_, [this, conversation = conversation_, connect = ends_.connect] {
    auto connection = std::make_shared<Result<service::UniqueFd>>(
        connect(std::chrono::steady_clock::now() + kConnectMax));
    asio::post(io_, [this, conversation, connection] {
      connecting_ = false;
      if (conversation == conversation_) return connected(std::move(*connection));
      if (greeted_) look_for_daemon();
    });
  });
}

void DaemonLink::connected(Result<service::UniqueFd> connection) {
  if (!connection) return failed(connection.error().message());
  error_code error;
  auto socket = std::make_shared<Socket>(io_);
  socket->assign(asio::local::stream_protocol(), connection->release(), error);
  if (error) return failed(error.message());
  socket_ = std::move(socket);
  frames_ = {};
  output_.clear();
  output_bytes_ = 0;
  connected_at_ = std::chrono::steady_clock::now();
  session_.connected();
  read();
  pump();
}

void DaemonLink::read() {
  socket_->async_read_some(asio::buffer(input_),
                           [this, socket = socket_](error_code error, std::size_t size) {
                             if (socket != socket_) return;
                             if (error) return gone("the daemon ended");
                             take({input_.data(), size});
                             if (socket == socket_) read();
                           });
}

void DaemonLink::take(std::string_view bytes) {
  frames_.feed(bytes);
  const auto socket = socket_;
  while (socket == socket_) {
    auto body = frames_.next();
    if (!body) return gone("the daemon sent what is no LSP");
    if (!*body) return;
    session_.daemon_says(std::move(**body));
    if (const auto why = session_.hang_up_reason()) return gone(*why);
    pump();
  }
}

void DaemonLink::write() {
  asio::async_write(*socket_, asio::buffer(output_.front()),
                    [this, socket = socket_](error_code error, std::size_t size) {
                      if (socket != socket_) return;
                      if (error) return gone("the daemon ended");
                      output_bytes_ -= size;
                      output_.pop_front();
                      if (!output_.empty()) write();
                    });
}

void DaemonLink::gone(const std::string& why) {
  const bool leaves = session_.daemon_leaves();
  if (leaves || std::chrono::steady_clock::now() - connected_at_ >= ends_.steady) failures_ = 0;
  hang_up();
  session_.disconnected();
  if (!leaves) return failed(why);
  pump();
}

void DaemonLink::failed(const std::string& why) {
  ends_.log(why);
  if (++failures_ >= kAttemptsMax) return lost(why);
  retry_.expires_after(kRetry);
  retry_.async_wait([this](error_code error) {
    if (!error) pump();
  });
}

void DaemonLink::lost(const std::string& why) {
  rest();
  ends_.on_lost(why);
}

void DaemonLink::hang_up() {
  const auto socket = std::exchange(socket_, nullptr);
  error_code ignored;
  if (socket) socket->close(ignored);
  // A write that is under way holds the front.
  output_bytes_ = 0;
  frames_ = {};
}

}  // namespace efimd::http
