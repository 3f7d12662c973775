#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/server/session.h"
#include "lsp/framing.h"

namespace efimd::service {

/// Work of connections that ask for much: one piece after another, and between two of them whatever
/// else waits for the thread. So each of a hundred such connections waits for the others, and an
/// editor for one piece.
///
/// Thread: the executor's.  Lives until its executor runs nothing any more.
class Turns {
 public:
  explicit Turns(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  void take(std::function<void()> work);

 private:
  void post_next();

  boost::asio::any_io_executor executor_;
  std::deque<std::function<void()>> waiting_;
  bool posted_ = false;
};

/// One accepted socket: bytes to frames for its Session, and the session's frames to bytes.
///
/// Thread: io.  Owns: socket and session; keeps itself alive while an operation is in flight.
/// Limits: output_bytes_max of unsent output; past it, a peer that does not read is disconnected. So
/// is one that sends no whole message within silence_max before initialize, or frame_max for one.
/// lsp::FrameReader limits frames. A large one is parsed on another thread, and while the session is
/// at work on one in parts, no other is taken. After a broken one the connection is closed, because nobody
/// knows where the next one begins. For any reason, the end is one line in the log and one call of
/// `ended`.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;
  struct Settings {
    std::uint64_t id = 0;
    std::size_t output_bytes_max = 0;
    std::function<void(std::uint64_t id)> ended;  ///< from inside an operation, never from start()
    std::chrono::milliseconds silence_max{60'000};
    std::chrono::milliseconds frame_max{60'000};
    std::size_t* unfinished_bytes = nullptr;  ///< of all connections; null: they are not bounded
    Turns* turns = nullptr;                   ///< of all connections; null: there is no other
    /// Runs work on another thread, soon; null: there is none.
    std::function<void(std::function<void()> work)> aside = nullptr;
  };

  Connection(Socket socket, SessionHost& host, Settings settings);

  void start();
  /// Sends what is queued, then closes.
  void finish();
  /// For another, when there are too many.
  void give_way();
  /// An allocation failed in its work, so its peer may wait for what does not come.
  void give_up();
  /// Whether its peer took so much of the thread's time lately that others go first.
  bool asks_for_much() const { return taken() >= kMuch; }
  /// Whether nothing would ever go on here, because its next operation could not be begun.
  bool is_stuck() const;
  Session& session() { return *session_; }
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_heard() const { return last_heard_; }
  /// Large messages that are on their way, of all connections; who passes it is disconnected.
  static constexpr std::size_t kUnfinishedBytesMax = std::size_t{256} << 20;
  /// A smaller one does not count, and is parsed at once.
  static constexpr std::size_t kSmallBytes = std::size_t{256} << 10;
  /// What small messages may take before others have their turn: 500 edits in a line of 4 MiB had taken 2 s.
  static constexpr std::chrono::milliseconds kTurn{1};
  /// Who took so much of the thread lately asks for much: half is forgotten each second. Who types takes
  /// less than a hundredth of it.
  static constexpr std::chrono::milliseconds kMuch{20};
  /// What is remembered at most. Who has more to say after a turn is taken for half of it.
  static constexpr std::chrono::milliseconds kMost{80};

 private:
  void read();
  void take_input(std::size_t size);
  void take(std::string_view bytes);
  /// Does `work`, at once or, after much of it, when this connection's turn comes.
  void work(std::function<void()> work);
  void work_now(const std::function<void()>& work);
  using Seconds = std::chrono::duration<double>;
  /// CPU time of the thread that this connection took and that is not forgotten.
  Seconds taken() const;
  void took(Seconds time);
  /// Serves the frames that are there, until the session is at work on one or kTurn is over.
  void serve();
  /// Goes on with `then` after whatever else waits for the thread.
  void let_others(std::function<Session::Next()> then);
  void parse_aside(lsp::Body body);
  /// Does `work` on another thread, and then goes on with `then`.
  void work_aside(std::function<void()> work, std::function<Session::Next()> then);
  /// After what the session was at work on: `then`, and what came meanwhile.
  void go_on(std::function<Session::Next()> then);
  void resume(const std::function<Session::Next()>& then);
  void went(Session::Next next);
  void send(std::string body);
  void write();
  /// Sets the clock to the end of the peer's time.
  void watch();
  bool count_unfinished(std::size_t bytes);
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
  boost::asio::steady_timer clock_;
  Clock::time_point last_heard_ = Clock::now();  ///< the last whole message, or the beginning
  Clock::time_point frame_began_ = Clock::now();
  Seconds taken_{0};  ///< at taken_at_
  Clock::time_point taken_at_ = Clock::now();
  std::size_t parsed_bytes_ = 0;  ///< of a message that is parsed on another thread
  std::size_t unfinished_ = 0;    ///< its part of settings_.unfinished_bytes
  bool reading_ = false;          ///< these three: an operation is on its way
  bool writing_ = false;
  bool working_ = false;  ///< at a message that takes long, or waiting for its turn
  bool finishing_ = false;
  bool closed_ = false;
};

}  // namespace efimd::service
