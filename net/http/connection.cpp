#include "net/http/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace efimd::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Wire = beast::http::response<beast::http::string_body>;

namespace {

constexpr char kNoSuchPath[] =
    "efimd serves /infill, /completion, /v1/completions, /v1/models, /health, /props, "
    "/api/generate, /api/tags and /api/show";

constexpr auto kLeaveMax = std::chrono::seconds(2);
constexpr std::size_t kDrainBytes = std::size_t{64} << 10;
constexpr std::size_t kDrainedBytesMax = Connection::kBodyBytesMax;

template <class Fields>
std::optional<std::string> field(const Fields& fields, beast::string_view name) {
  const auto found = fields.find(name);
  if (found == fields.end()) return std::nullopt;
  return std::string(found->value());
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, Completer& completer, const GuardRules& rules,
                       std::function<void()> ended)
    : stream_(std::move(socket)), completer_(completer), rules_(rules), ended_(std::move(ended)) {
  error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
}

/// While it waits for an answer the completer holds it, so there is nothing to withdraw here.
Connection::~Connection() { ended_(); }

void Connection::read_head() {
  parser_.emplace();
  parser_->header_limit(kHeadBytesMax);
  parser_->body_limit(kBodyBytesMax);
  stream_.expires_after(std::exchange(first_, false) ? kHeadMax : kIdleMax);
  beast::http::async_read_header(stream_, buffer_, *parser_,
                                 [self = shared_from_this()](error_code error, std::size_t) {
                                   if (error) return self->failed_to_read(error);
                                   self->check_head();
                                 });
}

void Connection::check_head() {
  const auto& message = parser_->get();
  Head head{std::string(message.method_string()),
            std::string(message.target()),
            field(message, "Host"),
            field(message, "Origin"),
            field(message, "Sec-Fetch-Site"),
            field(message, "Authorization"),
            field(message, "X-Api-Key"),
            field(message, "Content-Type")};
  // Two of them: a proxy and we might each believe another.
  for (const char* once : {"Host", "Authorization"})
    if (message.count(once) > 1) return refuse(400, std::string("more than one field ") + once);
  take_target(head);
  parser_->get().target(head.target);
  if (const auto why = refused(head, rules_)) return refuse(why->status, why->why);
  known_ = true;
  idle_since_.reset();
  const Routed routed = route_of(head.method, head.target);
  if (routed.status == 405) {
    Answer other =
        refusal(405, "this path wants " + std::string(routed.allowed), form_of_errors(head.target));
    other.allowed = routed.allowed;
    return answer_and_close(other);
  }
  if (routed.route == nullptr) return refuse(routed.status, kNoSuchPath);
  read_body();
}

void Connection::read_body() {
  // curl waits for this before it sends a large body.
  // A client of HTTP/1.0 would take it for the answer.
  const auto expect = field(parser_->get(), "Expect");
  if (expect && beast::iequals(*expect, "100-continue") && parser_->get().version() >= 11) {
    const auto go_on = std::make_shared<beast::http::response<beast::http::empty_body>>(
        beast::http::status::continue_, 11);
    stream_.expires_after(kBodyMax);
    beast::http::async_write(stream_, *go_on,
                             [self = shared_from_this(), go_on](error_code error, std::size_t) {
                               if (error) return;
                               self->parser_->get().erase("Expect");
                               self->read_body();
                             });
    return;
  }
  stream_.expires_after(kBodyMax);
  beast::http::async_read(stream_, buffer_, *parser_,
                          [self = shared_from_this()](error_code error, std::size_t) {
                            if (error) return self->failed_to_read(error);
                            self->serve();
                          });
}

void Connection::failed_to_read(error_code error) {
  using Http = beast::http::error;
  if (error == Http::end_of_stream || error == beast::error::timeout ||
      error == asio::error::operation_aborted || error == asio::error::eof ||
      error == asio::error::connection_reset)
    return close();
  if (error == Http::body_limit)
    return refuse(413, "the body has more than " + std::to_string(kBodyBytesMax) + " bytes");
  if (error == Http::header_limit)
    return refuse(431, "the head has more than " + std::to_string(kHeadBytesMax) + " bytes");
  refuse(400, "this is no HTTP request: " + error.message());
}

void Connection::serve() {
  stream_.expires_never();  // the completer has a limit of its own
  const auto& message = parser_->get();
  const Route& route =
      *route_of(std::string_view(message.method_string().data(), message.method_string().size()),
                std::string_view(message.target().data(), message.target().size()))
           .route;
  if (route.what == Route::What::kCompletion) return complete(route);
  if (route.what == Route::What::kNothing)
    return answer({200, "text/plain; charset=utf-8", "efimd is running\n"});
  look(route);
}

void Connection::complete(const Route& route) {
  auto request = completion_request(route.form, parser_->get().body(), completer_.pages().marks());
  parser_->get().body() = {};
  if (!request) return answer(refusal(400, request.error().message(), route.form));
  request_ = std::move(*request);
  // Without text Ollama's clients have the model loaded.
  if (request_->tokens_max == 0 || request_->text.is_empty()) {
    completer_.wake();
    return answer(answer_of(*request_, {}, completer_.pages().name()));
  }
  watch();
  said_.clear();
  Completer::Begun begun;
  // HTTP/1.0 has no chunks: such a client gets its answer whole.
  if (request_->stream && parser_->get().version() >= 11)
    begun = [self = shared_from_this()](const std::string& text) { self->begun(text); };
  ticket_ = completer_.ask(
      *request_, [self = shared_from_this()](const Outcome& outcome) { self->completed(outcome); },
      std::move(begun));
}

void Connection::begun(const std::string& text) {
  if (!ticket_ || !text.starts_with(said_)) return;
  const std::size_t size = sayable(text, request_->stops);
  if (size <= said_.size()) return;
  if (said_.empty()) {
    beast::http::response<beast::http::empty_body> head(beast::http::status::ok, 11);
    head.set("Content-Type", stream_type(request_->form));
    head.set("Cache-Control", "no-store");
    head.set("X-Content-Type-Options", "nosniff");
    if (!request_->ignored.empty()) head.set("Efimd-Ignored", joined(request_->ignored));
    head.keep_alive(parser_->get().keep_alive());
    head.chunked(true);
    std::ostringstream bytes;
    bytes << head.base();
    unsent_ = bytes.str();
    ended_stream_ = false;
  }
  const std::string more = text.substr(said_.size(), size - said_.size());
  said_ = text.substr(0, size);
  send(stream_piece(*request_, more, completer_.pages().name()));
}

void Connection::end_stream(const Outcome& outcome) {
  const bool whole = outcome.kind == Outcome::Kind::kCompleted;
  const unsigned status = outcome.kind == Outcome::Kind::kTooLate ? 504 : 503;
  send(whole ? stream_end(*request_, outcome.completed, said_, completer_.pages().name())
             : stream_error(outcome.why, status, request_->form));
  send({});
}

void Connection::completed(const Outcome& outcome) {
  ticket_.reset();
  if (!said_.empty()) return end_stream(outcome);
  const Form form = request_->form;
  switch (outcome.kind) {
    case Outcome::Kind::kCompleted:
      return answer(answer_of(*request_, outcome.completed, completer_.pages().name()));
    case Outcome::Kind::kNotReady:
    case Outcome::Kind::kFailed:
      return answer(refusal(503, outcome.why, form));
    case Outcome::Kind::kTooLate:
      return answer(refusal(504, outcome.why, form));
  }
}

void Connection::look(const Route& route) {
  watch();
  ticket_ =
      completer_.look([self = shared_from_this(), what = route.what](const ModelPages& pages) {
        self->ticket_.reset();
        switch (what) {
          case Route::What::kModels:
            return self->answer(pages.models());
          case Route::What::kProps:
            return self->answer(pages.props());
          case Route::What::kTags:
            return self->answer(pages.tags());
          case Route::What::kShow:
            return self->answer(pages.show());
          case Route::What::kVersion:
            return self->answer(pages.server_version());
          default:
            return self->answer(pages.health());
        }
      });
}

/// Whether the client leaves while it waits. What it sends meanwhile is its next request.
void Connection::watch() {
  stream_.socket().async_wait(
      asio::socket_base::wait_read, [weak = weak_from_this()](error_code error) {
        const auto self = weak.lock();
        if (!self || error || !self->ticket_) return;
        char byte = 0;
        const ssize_t size =
            ::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) self->leave();
      });
}

/// The client is gone.
void Connection::leave() {
  if (const auto ticket = std::exchange(ticket_, std::nullopt)) completer_.withdraw(*ticket);
  close();
}

void Connection::send(const std::string& data) {
  ended_stream_ = data.empty();
  unsent_ += data.empty() ? beast::buffers_to_string(beast::http::make_chunk_last())
                          : beast::buffers_to_string(beast::http::make_chunk(asio::buffer(data)));
  if (writing_.empty()) write();
}

void Connection::write() {
  writing_ = std::exchange(unsent_, {});
  stream_.expires_after(kBodyMax);
  asio::async_write(stream_, asio::buffer(writing_),
                    [self = shared_from_this()](error_code error, std::size_t) {
                      self->writing_.clear();
                      if (error) return self->leave();
                      if (!self->unsent_.empty()) return self->write();
                      self->stream_.expires_never();
                      if (self->ended_stream_) self->answered(self->parser_->get().keep_alive());
                    });
}

void Connection::answer(const Answer& answer) {
  const auto& asked = parser_->get();
  const auto wire = std::make_shared<Wire>(static_cast<beast::http::status>(answer.status), 11);
  wire->set("Content-Type", answer.type);
  wire->set("Cache-Control", "no-store");
  wire->set("X-Content-Type-Options", "nosniff");
  if (answer.status == 503) wire->set("Retry-After", "1");
  if (!answer.allowed.empty()) wire->set("Allow", answer.allowed);
  if (!answer.ignored.empty()) wire->set("Efimd-Ignored", joined(answer.ignored));
  const bool stays = parser_->is_header_done() && asked.keep_alive() && !close_after_;
  wire->keep_alive(stays);
  // Without it, a client of HTTP/1.0 waits for the connection's end.
  if (stays && asked.version() < 11) wire->set("Connection", "keep-alive");
  wire->body() = answer.body;
  wire->prepare_payload();
  const bool head_only = asked.method() == beast::http::verb::head;
  if (head_only) wire->body().clear();
  stream_.expires_after(kBodyMax);
  beast::http::async_write(stream_, *wire,
                           [self = shared_from_this(), wire](error_code error, std::size_t) {
                             if (error) return self->close();
                             self->answered(wire->keep_alive());
                           });
}

void Connection::answered(bool keep_alive) {
  request_.reset();
  idle_since_ = Completer::Clock::now();
  if (keep_alive) return read_head();
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.expires_after(kLeaveMax);
  drain(kDrainedBytesMax);
}

/// A client that is still sending would lose its answer if the connection ended at once.
void Connection::drain(std::size_t bytes_left) {
  buffer_.clear();
  stream_.async_read_some(
      buffer_.prepare(std::min(bytes_left, kDrainBytes)),
      [self = shared_from_this(), bytes_left](error_code error, std::size_t size) {
        if (error || size >= bytes_left) return self->close();
        self->drain(bytes_left - size);
      });
}

void Connection::answer_and_close(const Answer& answer_) {
  close_after_ = true;
  answer(answer_);
}

void Connection::refuse(unsigned status, std::string_view why) {
  const auto target = parser_->get().target();
  answer_and_close(refusal(status, why, form_of_errors({target.data(), target.size()})));
}

void Connection::turn_away() {
  parser_.emplace();
  refuse(503, "too many connections");
}

void Connection::close() {
  idle_since_.reset();
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace efimd::http
