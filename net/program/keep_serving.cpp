#include "net/program/keep_serving.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

namespace efimd::net {

namespace {

/// If something kills one that lived no longer than this, the next one waits kPause, so that a cause
/// that lasts costs little.
constexpr auto kShortLife = std::chrono::seconds(10);
constexpr auto kPause = std::chrono::seconds(1);

volatile std::sig_atomic_t to_end = 0;  ///< in a serving process

/// The starter takes its signals one by one, by wait().
class Signals {
 public:
  Signals() {
    ::sigemptyset(&taken_);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) ::sigaddset(&taken_, signal);
    ::sigprocmask(SIG_BLOCK, &taken_, &before_);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int wait() const {
    int signal = 0;
    ::sigwait(&taken_, &signal);
    return signal;
  }

  /// In a serving process.
  void leave_to_server() const {
    for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, [](int) { to_end = 1; });
    std::signal(SIGUSR1, SIG_IGN);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t taken_, before_;
};

struct End {
  bool asked = false;    ///< by SIGTERM or SIGINT
  bool changed = false;  ///< what to serve
  int status = 0;        ///< as waitpid has it
};

End wait_for_end(pid_t serving, const Signals& signals, const ToServe& what) {
  End end;
  for (;;) {
    const int signal = signals.wait();
    if (signal == SIGCHLD && ::waitpid(serving, &end.status, WNOHANG) == serving) return end;
    if (signal == SIGTERM || signal == SIGINT) end.asked = true;
    if (signal == SIGUSR1 && what.has_changed()) end.changed = true;
    if (end.asked || end.changed) ::kill(serving, SIGTERM);
  }
}

}  // namespace

Ended keep_serving(const char* name, const ToServe& what) {
  const Signals signals;
  const pid_t starter = ::getpid();
  for (;;) {
    const auto begin = std::chrono::steady_clock::now();
    const auto serve = what.prepare();
    const pid_t serving = serve ? ::fork() : -1;
    if (serving < 0) {
      std::fprintf(stderr, "%s: %s\n", name,
                   serve ? "no process can be made" : serve.error().message().c_str());
      return {.status = 1};
    }
    if (serving == 0) {
      signals.leave_to_server();
      return {.status = (*serve)(starter), .starter = false};
    }
    const End end = wait_for_end(serving, signals, what);
    if (end.asked) return {.asked = true};
    if (end.changed) continue;
    if (!WIFSIGNALED(end.status)) return {.status = WEXITSTATUS(end.status)};
    std::fprintf(stderr, "%s: signal %d ended it; it starts again\n", name, WTERMSIG(end.status));
    if (std::chrono::steady_clock::now() - begin < kShortLife) std::this_thread::sleep_for(kPause);
  }
}

bool asked_to_end() { return to_end != 0; }

}  // namespace efimd::net
