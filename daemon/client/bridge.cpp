#include "daemon/client/bridge.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "base/wipe.h"
#include "lsp/excerpt.h"

namespace efimd::service {

namespace {

/// Waits before the second, third, ... attempt in a row.
constexpr std::array<std::chrono::milliseconds, Bridge::kAttemptsMax - 1> kBackOff = {
    std::chrono::milliseconds(0), std::chrono::milliseconds(100), std::chrono::milliseconds(400)};
constexpr std::size_t kReadBytes = 64 * 1024;
/// For the last answers when the editor is leaving; it may have stopped reading.
constexpr auto kFarewellMax = std::chrono::seconds(1);

/// Makes a descriptor non-blocking, and as it was at the end: a terminal is shared with the shell.
class NonBlocking {
 public:
  explicit NonBlocking(int fd) : fd_(fd), flags_(::fcntl(fd, F_GETFL)) {
    ::fcntl(fd_, F_SETFL, flags_ | O_NONBLOCK);
  }
  NonBlocking(const NonBlocking&) = delete;
  NonBlocking& operator=(const NonBlocking&) = delete;
  ~NonBlocking() { ::fcntl(fd_, F_SETFL, flags_); }

 private:
  int fd_;
  int flags_;
};

enum class Read { kSome, kNothing, kEnd };

Read read_into(int fd, lsp::FrameReader& frames) {
  std::array<char, kReadBytes> bytes;
  const ssize_t size = ::read(fd, bytes.data(), bytes.size());
  if (size > 0) {
    frames.feed({bytes.data(), static_cast<std::size_t>(size)});
    wipe(std::as_writable_bytes(std::span(bytes)));
    return Read::kSome;
  }
  const bool later = size < 0 && (errno == EAGAIN || errno == EINTR);
  return later ? Read::kNothing : Read::kEnd;
}

}  // namespace

void Bridge::Outbox::add(std::string_view body) {
  if (written > 0) bytes.erase(0, std::exchange(written, 0));
  bytes += lsp::framed(body);
}

bool Bridge::Outbox::flush(int fd) {
  while (size() > 0) {
    const ssize_t sent = ::write(fd, bytes.data() + written, size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    written += static_cast<std::size_t>(sent);
  }
  wipe(std::as_writable_bytes(std::span(bytes)));
  *this = {};
  return true;
}

int Bridge::run() {
  const NonBlocking in(ends_.editor_in);
  const NonBlocking out(ends_.editor_out);
  while (!code_) {
    look_for_daemon();
    pump();
    note_silence();
    if (!code_) wait();
  }
  flush_before_exit();
  return *code_;
}

/// Moves what the session has said into the outboxes and what it can of these to their ends.
void Bridge::pump() {
  // The daemon first: its end may be found here, and then there is more to say to the editor.
  for (const std::string& body : session_.take_for_daemon()) to_daemon_.add(body);
  if (daemon_ && !to_daemon_.flush(daemon_.get())) daemon_gone("the daemon closed its end");
  for (const std::string& body : session_.take_for_editor()) to_editor_.add(body);
  if (!to_editor_.flush(ends_.editor_out)) finish(0);
}

void Bridge::wait() {
  const bool read_from_editor =
      to_daemon_.size() < kQueuedBytesMax && to_editor_.size() < kQueuedBytesMax;
  const auto wanted = [](bool read, const Outbox& outbox) {
    return static_cast<short>((read ? POLLIN : 0) | (outbox.size() > 0 ? POLLOUT : 0));
  };
  std::array<pollfd, 3> ends = {
      pollfd{ends_.editor_in, static_cast<short>(read_from_editor ? POLLIN : 0), 0},
      pollfd{ends_.editor_out, static_cast<short>(to_editor_.size() > 0 ? POLLOUT : 0), 0},
      pollfd{daemon_.get(), wanted(to_editor_.size() < kQueuedBytesMax, to_daemon_), 0}};
  if (::poll(ends.data(), ends.size(), timeout_ms()) < 0) return;
  if ((ends[1].revents & (POLLERR | POLLNVAL)) != 0) return finish(0);
  if ((ends[2].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
    read_daemon();
  else if (const auto left = greeting_left(); left && *left <= left->zero())
    daemon_hangs();
  else if (const auto silence = silence_left(); silence && *silence <= silence->zero())
    silence_is_long();
  if ((ends[0].revents & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) != 0) read_editor();
}

/// -1, forever, but while a greeting, another answer or an attempt to connect has its time.
int Bridge::timeout_ms() const {
  auto left = greeting_left();
  if (!left) left = silence_left();
  if (!left && (daemon_ || !session_.wants_daemon())) return -1;
  if (!left) left = next_attempt_ - Clock::now();
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(*left);
  return static_cast<int>(std::max<std::int64_t>(rounded.count(), 0));
}

std::optional<Bridge::Clock::duration> Bridge::greeting_left() const {
  // An answer is not read while the editor takes nothing.
  if (!daemon_ || !session_.is_greeting() || to_editor_.size() >= kQueuedBytesMax)
    return std::nullopt;
  return connected_at_ + ends_.greeting_max - Clock::now();
}

std::optional<Bridge::Clock::duration> Bridge::silence_left() const {
  if (!daemon_ || !silent_since_) return std::nullopt;
  return *silent_since_ + ends_.silence_max - Clock::now();
}

void Bridge::note_silence() {
  // An answer is not read while the editor takes nothing.
  const bool owes = daemon_ && session_.is_asking() && to_editor_.size() < kQueuedBytesMax;
  if (owes && silent_since_) return;
  silent_since_ = owes ? std::optional(Clock::now()) : std::nullopt;
  asked_sign_of_life_ = false;
}

void Bridge::silence_is_long() {
  if (std::exchange(asked_sign_of_life_, true)) return daemon_hangs();
  silent_since_ = Clock::now();
  session_.ask_sign_of_life();
}

void Bridge::daemon_hangs() {
  failures_ = kAttemptsMax - 1;
  daemon_gone("the daemon (process " + std::to_string(process_) +
              ") does not answer; 'efimd stop' ends it");
}

void Bridge::read_editor() {
  const Read read = read_into(ends_.editor_in, from_editor_);
  for (;;) {
    auto body = from_editor_.next();
    if (!body) {
      ends_.log("the editor sent something that is not LSP: " +
                lsp::without_excerpts(body.error().message()));
      return finish(1);
    }
    if (!*body) break;
    session_.editor_says(std::move(**body));
    if (const auto process = editor_told_ ? std::nullopt : session_.editor_process()) {
      editor_told_ = true;
      if (ends_.editor_is) ends_.editor_is(static_cast<long>(*process));
    }
    if (const auto code = session_.exit_code()) return finish(*code);
  }
  if (const std::size_t bytes = from_editor_.take_skipped()) session_.skipped(bytes);
  if (read != Read::kEnd) return;
  if (from_editor_.inside_frame()) ends_.log("the editor closed its end inside a message");
  finish(0);
}

void Bridge::read_daemon() {
  const Read read = read_into(daemon_.get(), from_daemon_);
  silent_since_.reset();
  for (;;) {
    auto body = from_daemon_.next();
    if (!body)
      return daemon_gone("the daemon sent something that is not LSP: " +
                         lsp::without_excerpts(body.error().message()));
    if (!*body) break;
    heard_ = true;
    session_.daemon_says(std::move(**body));
    if (const auto reason = session_.hang_up_reason()) return daemon_gone(*reason);
  }
  if (read == Read::kEnd) daemon_gone("the daemon ended");
}

void Bridge::look_for_daemon() {
  if (daemon_ || !session_.wants_daemon()) return;
  if (Clock::now() < next_attempt_) {
    if (resting_) session_.give_up("the daemon cannot be reached");
    return;
  }
  const Clock::time_point begun = Clock::now();
  auto connection = ends_.connect(begun + kConnectMax);
  if (!connection) {
    // One that hangs would take as long again, and an editor waits for its answer.
    if (Clock::now() - begun >= kHangs) failures_ = kAttemptsMax - 1;
    return failed(connection.error().message());
  }
  daemon_ = std::move(*connection);
  ::fcntl(daemon_.get(), F_SETFL, ::fcntl(daemon_.get(), F_GETFL) | O_NONBLOCK);
  connected_at_ = Clock::now();
  const long last = std::exchange(process_, peer_process(daemon_.get()).value_or(0));
  if (last != process_) died_at_ = {};
  heard_ = false;
  session_.connected();
}

void Bridge::daemon_gone(const std::string& why) {
  daemon_.reset();
  from_daemon_ = {};
  to_daemon_ = {};
  session_.disconnected();
  if (session_.daemon_leaves() || Clock::now() - connected_at_ >= kSteady) {
    failures_ = 0;
    resting_ = false;
    session_.forget_outage();
  }
  if (is_still_dying()) {
    next_attempt_ = Clock::now() + kDyingRetry;
    return;
  }
  died_at_ = Clock::now();
  if (!session_.daemon_leaves()) return failed(why);
  ends_.log("the daemon was asked to finish");
  next_attempt_ = Clock::now();
}

/// Whether what took the connection was the daemon whose death is counted already.
bool Bridge::is_still_dying() const {
  return process_ != 0 && !heard_ && Clock::now() - died_at_ < ends_.dying_max;
}

void Bridge::failed(const std::string& reason) {
  ends_.log(reason);
  ++failures_;
  if (failures_ < kAttemptsMax) {
    next_attempt_ = Clock::now() + kBackOff[static_cast<std::size_t>(failures_ - 1)];
    return;
  }
  failures_ = kAttemptsMax - 1;
  resting_ = true;
  next_attempt_ = Clock::now() + kRest;
  session_.give_up(reason);
}

void Bridge::finish(int code) {
  if (!code_) code_ = code;
}

void Bridge::flush_before_exit() {
  for (const std::string& body : session_.take_for_editor()) to_editor_.add(body);
  for (const std::string& body : session_.take_for_daemon()) to_daemon_.add(body);
  if (daemon_) to_daemon_.flush(daemon_.get());
  const Clock::time_point deadline = Clock::now() + kFarewellMax;
  while (to_editor_.flush(ends_.editor_out) && to_editor_.size() > 0 && Clock::now() < deadline) {
    pollfd end{ends_.editor_out, POLLOUT, 0};
    if (::poll(&end, 1, 100) < 0 || (end.revents & POLLERR) != 0) return;
  }
}

}  // namespace efimd::service
