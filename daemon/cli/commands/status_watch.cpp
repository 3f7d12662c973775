#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/commands/status_text.h"
#include "daemon/client/client.h"

namespace efimd::service {

namespace {

constexpr int kEveryMs = 1000;

volatile std::sig_atomic_t asked_to_end = 0;
volatile std::sig_atomic_t asked_to_stop = 0;  // Ctrl-Z

void on_signal(int signal) {
  if (signal == SIGWINCH) return;  // a new size only ends the wait
  (signal == SIGTSTP ? asked_to_stop : asked_to_end) = 1;
}

/// The terminal while the view lasts: its other screen, no cursor, keys as they are pressed. As it was at the end.
class LiveScreen {
 public:
  LiveScreen() {
    struct sigaction action {};
    action.sa_handler = on_signal;  // without SA_RESTART: poll() wakes
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP})
      ::sigaction(signal, &action, nullptr);
    enter();
  }
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;
  ~LiveScreen() { leave(); }

  static Screen size() {
    winsize found{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) != 0 || found.ws_row == 0) return {};
    return {found.ws_row, found.ws_col};
  }

  /// One write, which overwrites line by line: nothing is blank in between. False when nobody reads any more.
  static bool draw(const std::vector<std::string>& lines) {
    std::string text = "\033[H";
    for (std::size_t i = 0; i < lines.size(); ++i)
      text += (i > 0 ? "\r\n" : "") + lines[i] + "\033[K";
    return write(text + "\033[J");
  }

  /// Until the next look; false to end: q or a signal.
  bool wait() {
    pollfd keyboard{keys_ ? STDIN_FILENO : -1, POLLIN, 0};
    if (asked_to_end == 0 && ::poll(&keyboard, 1, kEveryMs) > 0) {
      char key = 'q';
      if (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q') return false;
    }
    if (asked_to_stop != 0) {  // the shell gets its terminal back, and this view takes it again
      asked_to_stop = 0;
      leave();
      ::raise(SIGSTOP);
      enter();
    }
    return asked_to_end == 0;
  }

 private:
  void enter() {
    keys_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
    write("\033[?1049h\033[?25l");
  }

  void leave() const {
    write("\033[?25h\033[?1049l");
    if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  static bool write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t size = ::write(STDOUT_FILENO, text.data(), text.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(size));
    }
    return true;
  }

  bool keys_ = false;
  termios before_{};
};

/// Asks the daemon, over a connection that is kept while it lasts.
class Asker {
 public:
  explicit Asker(const Paths& paths) : paths_(paths) {}

  Result<lsp::Json> status() {
    if (!client_) {
      auto socket = connect_to_daemon(paths_);
      if (!socket && socket.error().fault == Fault::kNotFound)
        return tl::unexpected(none_listens(paths_));
      if (!socket) return tl::unexpected(socket.error());
      client_.emplace(std::move(*socket));
    }
    auto answer = client_->request("efim/status", nullptr,
                                   std::chrono::steady_clock::now() + kStatusAnswerMax);
    if (!answer) client_.reset();
    return answer;
  }

 private:
  const Paths& paths_;
  std::optional<RpcClient> client_;
};

std::string reason(const Error& error) {
  return error.fault == Fault::kNotFound ? "no daemon is running; waiting for one"
                                         : error.message();
}

int watch_in_terminal(Asker& asker, bool why) {
  LiveScreen screen;
  do {
    const auto status = asker.status();
    const auto show = why ? plans_screen : status_screen;
    const auto lines = status ? show(*status, LiveScreen::size())
                              : std::vector{"efimd: " + reason(status.error())};
    if (!LiveScreen::draw(lines)) break;
  } while (screen.wait());
  return 0;
}

/// Whether stdout takes the orders of a LiveScreen; Emacs' shell and a build's log do not.
bool is_screen() {
  const char* const terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb";
}

/// For a pipe or a file: one report after another, as `efimd status` prints them.
int watch_plainly(Asker& asker, const CommandLine& line) {
  for (;; ::poll(nullptr, 0, kEveryMs)) {
    const auto status = asker.status();
    if (!status)
      fmt::print(stderr, "efimd: {}\n", reason(status.error()));
    else if (line.json)
      fmt::print("{}\n", lsp::json_text(*status));
    else
      fmt::print("{}\n", line.why ? plans_text(*status) : status_text(*status));
    if (std::fflush(stdout) != 0) return 0;
  }
}

}  // namespace

int run_status_watch(const Paths& paths, const CommandLine& line) {
  Asker asker(paths);
  if (line.json || !is_screen()) return watch_plainly(asker, line);
  return watch_in_terminal(asker, line.why);
}

}  // namespace efimd::service
