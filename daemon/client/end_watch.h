#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "daemon/config/local_socket.h"

namespace efimd::service {

/// Ends a bridge whose editor is gone while it waits for something else, such as a daemon that hangs.
///
/// Looks at the editor's end of stdin, the process that started the bridge, and the editor that
/// initialize names. That editor counts only if it is one of the processes above the bridge,
/// because a number from another pid namespace names somebody else. Where one of them is gone, the
/// bridge has `grace` to end by itself, then `end` is called.
///
/// Thread: watches on one of its own; watch_editor() may be called by any.
class EndWatch {
 public:
  struct Settings {
    int editor_in = 0;
    std::chrono::milliseconds grace{1500};
    std::function<void()> end;  ///< on the watch's thread
  };
  explicit EndWatch(Settings settings);
  ~EndWatch();
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  /// `process`: processId of initialize.
  void watch_editor(long process);

 private:
  void run();

  Settings settings_;
  long parent_;
  UniqueFd wake_read_, wake_write_;  ///< a process to watch, or the end
  std::thread thread_;
};

}  // namespace efimd::service
