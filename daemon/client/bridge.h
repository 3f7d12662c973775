#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "daemon/client/bridge_session.h"
#include "daemon/config/local_socket.h"
#include "lsp/framing.h"

namespace efimd::service {

/// The two sides of a bridge.
struct BridgeEnds {
  int editor_in = 0;  ///< the editor's bytes; made non-blocking while the bridge runs
  int editor_out = 1;
  /// Connects to the daemon and starts it if none runs; blocks at most until the deadline.
  std::function<Result<UniqueFd>(Deadline)> connect;
  std::function<void(const std::string&)> log;  ///< one line for the editor's log of this process
  /// Told once which process initialize names as the editor.
  std::function<void(long)> editor_is = {};
  std::optional<Build> build = {};  ///< that daemons should have; none: any will do
  /// The system closes a killed daemon's sockets one after another, its listening one perhaps last.
  std::chrono::milliseconds dying_max = std::chrono::milliseconds(250);
  /// For the answer to initialize, which needs no model: milliseconds, and seconds where memory is
  /// short. A daemon that takes longer hangs.
  std::chrono::milliseconds greeting_max = std::chrono::seconds(10);
  /// A daemon that owes an answer and says nothing for so long is asked for a sign of life. If it
  /// says nothing for as long again, it hangs.
  std::chrono::milliseconds silence_max = std::chrono::seconds(10);
};

/// `efimd lsp`: an editor's stdin and stdout on one side, the user's daemon on the other.
///
/// Lives as long as the editor, even if the daemon dies. bridge_session.h says what the editor
/// sees.
///
///   A daemon was asked to finish: looks for the next one as soon as the editor says something.
///   A daemon ends: looks for one at once, then after 100 ms, then after 400 ms. After kAttemptsMax
///   failures in a row, pending requests are answered with nothing. The next request tries again,
///   at most every kRest. Failures are in a row if less than kSteady of service lies between them.
///   A daemon hangs: given up at once, because the next attempt would take as long.
///
/// Thread: that of run(), which polls three descriptors; there is no other.
/// Limits: while kQueuedBytesMax wait to be written to one side, it does not read the other.
class Bridge {
 public:
  static constexpr std::size_t kQueuedBytesMax = std::size_t{16} << 20;
  static constexpr int kAttemptsMax = 4;
  static constexpr auto kSteady = std::chrono::seconds(30);
  static constexpr auto kRest = std::chrono::seconds(2);
  static constexpr auto kDyingRetry = std::chrono::milliseconds(5);
  static constexpr auto kConnectMax = std::chrono::seconds(10);
  /// A daemon that took so long to fail is not looked for again before the next rest is over.
  static constexpr auto kHangs = std::chrono::seconds(4);

  explicit Bridge(BridgeEnds ends)
      : ends_(std::move(ends)),
        session_(ends_.build ? BridgeSession(*ends_.build) : BridgeSession()) {}

  /// Returns when the editor sends `exit` (0 after shutdown, else 1), closes its end (0), or sends
  /// something that is not LSP (1, logged).
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  /// Bytes on their way out; of the first message `written` bytes are out.
  struct Outbox {
    std::string bytes;
    std::size_t written = 0;
    std::size_t size() const { return bytes.size() - written; }
    void add(std::string_view body);
    /// Writes what `fd` takes now; false if the other end is gone.
    bool flush(int fd);
  };

  void wait();
  void read_editor();
  void read_daemon();
  void pump();
  void look_for_daemon();
  void daemon_gone(const std::string& why);
  bool is_still_dying() const;
  /// Until the daemon has to answer initialize; nullopt if it need not.
  std::optional<Clock::duration> greeting_left() const;
  /// Until a silent daemon is asked, or given up; nullopt if it owes nothing.
  std::optional<Clock::duration> silence_left() const;
  void note_silence();
  void silence_is_long();
  void daemon_hangs();
  void failed(const std::string& reason);
  void finish(int code);
  void flush_before_exit();
  int timeout_ms() const;

  BridgeEnds ends_;
  BridgeSession session_;
  UniqueFd daemon_;
  lsp::FrameReader from_editor_{lsp::FrameReader::Oversized::kSkipped};
  lsp::FrameReader from_daemon_;
  Outbox to_editor_;
  Outbox to_daemon_;
  std::optional<int> code_;
  bool editor_told_ = false;
  long process_ = 0;    ///< of the daemon that it is connected to, or was last
  bool heard_ = false;  ///< anything from it, since it was connected
  std::optional<Clock::time_point> silent_since_;  ///< while it owes an answer
  bool asked_sign_of_life_ = false;                ///< in this silence
  Clock::time_point died_at_{};
  int failures_ = 0;      ///< in a row
  bool resting_ = false;  ///< after giving up: one attempt per kRest
  Clock::time_point next_attempt_{};
  Clock::time_point connected_at_{};
};

}  // namespace efimd::service
