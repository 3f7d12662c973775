#include "daemon/server/connection.h"

#include <spdlog/logger.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/thread_clock.h"
#include "base/wipe.h"
#include "lsp/excerpt.h"

namespace efimd::service {

namespace asio = boost::asio;
using boost::system::error_code;

void Turns::take(std::function<void()> work) {
  waiting_.push_back(std::move(work));
  if (!posted_) post_next();
}

void Turns::post_next() {
  asio::post(executor_, [this] {
    posted_ = false;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    if (!waiting_.empty()) post_next();
    work();
  });
  posted_ = true;
}

Connection::Connection(Socket socket, SessionHost& host, Settings settings)
    : socket_(std::move(socket)),
      host_(host),
      settings_(std::move(settings)),
      clock_(socket_.get_executor()) {}

void Connection::start() {
  // The session holds no pointer that outlives this object: close() ends it first.
  session_ = std::make_shared<Session>(settings_.id, host_,
                                       [this](std::string body) { send(std::move(body)); });
  watch();
  read();
}

void Connection::read() {
  socket_.async_read_some(asio::buffer(input_),
                          [self = shared_from_this()](error_code error, std::size_t size) {
                            self->reading_ = false;
                            if (self->closed_) return;
                            if (error == asio::error::eof && !self->reader_.inside_frame())
                              return self->close(End::kClean, "the peer left");
                            if (error == asio::error::eof)
                              return self->close(End::kFault, "the peer left inside a message");
                            if (error) return self->close(End::kFault, error.message());
                            self->work([self, size] { self->take_input(size); });
                          });
  reading_ = true;
}

void Connection::work(std::function<void()> work) {
  if (settings_.turns == nullptr || !asks_for_much()) return work_now(work);
  working_ = true;
  took({});
  try {
    settings_.turns->take([self = shared_from_this(), work = std::move(work)] {
      self->taken_at_ = Clock::now();  // nothing is forgotten while it waits
      if (!self->closed_) return self->work_now(work);
      wipe(std::as_writable_bytes(std::span(self->input_)));
    });
  } catch (const std::bad_alloc&) {
    close(End::kFault, "no memory for a message");
  }
}

void Connection::work_now(const std::function<void()>& work) {
  const auto begun = ThreadClock::now();
  working_ = false;
  work();
  took(ThreadClock::now() - begun);
}

void Connection::took(Seconds time) {
  taken_ = std::min<Seconds>(taken() + time, kMost);
  taken_at_ = Clock::now();
}

Connection::Seconds Connection::taken() const {
  return taken_ * std::exp2(-Seconds(Clock::now() - taken_at_).count());
}

void Connection::take_input(std::size_t size) {
  take({input_.data(), size});
  wipe(std::as_writable_bytes(std::span(input_).first(size)));
  if (!closed_ && !finishing_ && !working_) read();
}

void Connection::take(std::string_view bytes) {
  if (!reader_.inside_frame()) frame_began_ = Clock::now();
  try {
    reader_.feed(bytes);
    serve();
  } catch (const std::bad_alloc&) {
    // The session may have missed a change of its text. Its bridge begins another, with what it knows.
    return close(End::kFault, "no memory for a message");
  }
  if (!closed_ && !count_unfinished(reader_.waiting_bytes() + parsed_bytes_))
    return close(End::kFault, "too much of unfinished messages waits");
  watch();
}

void Connection::serve() {
  const auto end = Clock::now() + kTurn;
  const auto begun = ThreadClock::now();
  while (!closed_ && !finishing_ && !working_) {
    if (Clock::now() > end) {
      // Beside hundreds of others that flood, none takes much. The thread may have waited, too.
      if (ThreadClock::now() - begun > kTurn) took(kMost / 2);
      return let_others([] { return Session::Next::kGoOn; });
    }
    auto body = reader_.next_in_parts();
    if (!body) return close(End::kFault, lsp::without_excerpts(body.error().message()));
    if (!*body) return;
    last_heard_ = frame_began_ = Clock::now();
    if ((*body)->size() > kSmallBytes && settings_.aside)
      parse_aside(std::move(**body));
    else
      went(session_->receive(std::move(**body).joined()));
  }
}

void Connection::let_others(std::function<Session::Next()> then) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), then = std::move(then)]() mutable {
    self->go_on(std::move(then));
  });
  working_ = true;
}

void Connection::parse_aside(lsp::Body body) {
  const std::size_t bytes = body.size();
  const auto prepared = std::make_shared<std::optional<Session::Prepared>>();
  work_aside(
      [prepared, body = std::move(body)]() mutable {
        prepared->emplace(Session::prepare(std::exchange(body, {}).joined()));
      },
      [this, prepared] {
        if (!*prepared) throw std::bad_alloc();
        return session_->receive(std::move(**prepared));
      });
  parsed_bytes_ = bytes;
}

void Connection::work_aside(std::function<void()> work, std::function<Session::Next()> then) {
  std::function<void()> resumed = [self = shared_from_this(), then = std::move(then)] {
    self->go_on(then);
  };
  // The other thread must not be the one that frees this.
  settings_.aside([executor = socket_.get_executor(), work = std::move(work),
                   resumed = std::move(resumed)]() mutable {
    try {
      std::exchange(work, nullptr)();
    } catch (const std::bad_alloc&) {
      // Who goes on from here finds nothing done.
    }
    asio::post(executor, std::move(resumed));
  });
  working_ = true;
}

void Connection::go_on(std::function<Session::Next()> then) {
  if (closed_) return;
  work([this, then = std::move(then)] { resume(then); });
}

void Connection::resume(const std::function<Session::Next()>& then) {
  parsed_bytes_ = 0;
  try {
    went(then());
    serve();
  } catch (const std::bad_alloc&) {
    return close(End::kFault, "no memory for a message");
  }
  if (!count_unfinished(reader_.waiting_bytes() + parsed_bytes_))
    return close(End::kFault, "too much of unfinished messages waits");
  if (closed_ || finishing_ || working_) return;
  watch();
  read();
}

void Connection::went(Session::Next next) {
  const auto go_on = [this] { return session_->go_on(); };
  switch (next) {
    case Session::Next::kGoOn:
      return;
    case Session::Next::kClose:
      return finish();
    case Session::Next::kAside:
      if (settings_.aside) return work_aside(session_->work_aside(), go_on);
      [[fallthrough]];
    case Session::Next::kUnfinished:
      return let_others(go_on);
  }
}

bool Connection::count_unfinished(std::size_t bytes) {
  if (settings_.unfinished_bytes == nullptr) return true;
  std::size_t& sum = *settings_.unfinished_bytes;
  sum -= unfinished_;
  unfinished_ = bytes > kSmallBytes ? bytes : 0;
  sum += unfinished_;
  return unfinished_ == 0 || sum <= kUnfinishedBytesMax;
}

void Connection::watch() {
  if (closed_ || finishing_) return;
  const bool inside = reader_.inside_frame();
  if (session_->is_initialized() && !inside) {
    clock_.cancel();
    return;
  }
  clock_.expires_at(inside ? frame_began_ + settings_.frame_max
                           : last_heard_ + settings_.silence_max);
  clock_.async_wait([self = weak_from_this()](error_code cancelled) {
    const auto connection = self.lock();
    if (cancelled || !connection) return;
    connection->close(End::kFault, connection->reader_.inside_frame()
                                       ? "the peer does not finish its message"
                                       : "the peer says nothing");
  });
}

bool Connection::is_stuck() const {
  return !closed_ && ((!reading_ && !working_ && !finishing_) || (!output_.empty() && !writing_));
}

void Connection::give_up() { close(End::kFault, "no memory for it"); }

void Connection::give_way() { close(End::kFault, "silent, it gives way to another"); }

void Connection::send(std::string body) {
  if (closed_) return;
  output_.push_back(lsp::framed(body));
  output_bytes_ += output_.back().size();
  if (output_bytes_ > settings_.output_bytes_max) {
    // Not from inside the session's own call: it may be about to send more.
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      self->close(End::kFault, "the peer does not read its messages");
    });
    return;
  }
  if (output_.size() == 1) write();
}

void Connection::write() {
  asio::async_write(socket_, asio::buffer(output_.front()),
                    [self = shared_from_this()](error_code error, std::size_t size) {
                      self->writing_ = false;
                      if (self->closed_) return;
                      if (error) return self->close(End::kFault, error.message());
                      self->output_bytes_ -= size;
                      self->output_.pop_front();
                      if (!self->output_.empty()) return self->write();
                      if (self->finishing_) self->close(End::kClean, "finished");
                    });
  writing_ = true;
}

void Connection::finish() {
  if (closed_ || finishing_) return;
  finishing_ = true;
  if (!output_.empty()) return;
  asio::post(socket_.get_executor(),
             [self = shared_from_this()] { self->close(End::kClean, "finished"); });
}

void Connection::close(End end, std::string_view why) {
  if (closed_) return;
  closed_ = true;
  clock_.cancel();
  static_cast<void>(count_unfinished(0));
  // Commands come and go without initializing; only editors are worth a line, and what went wrong.
  const auto level = end == End::kFault                ? spdlog::level::warn
                     : session_->info().client.empty() ? spdlog::level::debug
                                                       : spdlog::level::info;
  host_.log().log(level, "session {}: closed: {}", settings_.id, why);
  try {
    session_->end();
    // Half a message of 128 MiB takes 40 ms to overwrite and to free.
    if (settings_.aside && reader_.waiting_bytes() > kSmallBytes)
      settings_.aside([unfinished = std::make_shared<lsp::FrameReader>(std::exchange(
                           reader_, lsp::FrameReader()))]() mutable { unfinished.reset(); });
  } catch (const std::bad_alloc&) {
    // What it had open stays until the daemon ends.
  }
  error_code ignored;
  socket_.close(ignored);
  settings_.ended(settings_.id);
}

}  // namespace efimd::service
