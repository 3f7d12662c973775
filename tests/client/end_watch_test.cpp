#include "daemon/client/end_watch.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <future>

using namespace efimd::service;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 60s;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
  }
  UniqueFd read, write;
};

/// A watch that says when it would end the bridge.
struct Watched {
  explicit Watched(int editor_in)
      : watch({.editor_in = editor_in, .grace = 1ms, .end = [this] { ended.set_value(); }}) {}
  bool ends() { return future.wait_for(kPatience) == std::future_status::ready; }
  std::promise<void> ended;
  std::future<void> future = ended.get_future();
  EndWatch watch;
};

}  // namespace

TEST_CASE("a bridge whose editor closed its end of a pipe is ended, though nobody reads") {
  Pipe editor;
  REQUIRE(::write(editor.write.get(), "unread", 6) == 6);
  Watched bridge(editor.read.get());
  editor.write.reset();
  CHECK(bridge.ends());
}

TEST_CASE("a bridge whose editor closed its end of a socket is ended, though nobody reads") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  const UniqueFd bridge_end(ends[0]);
  UniqueFd editor(ends[1]);
  REQUIRE(::write(editor.get(), "unread", 6) == 6);
  Watched bridge(bridge_end.get());
  editor.reset();
  CHECK(bridge.ends());
}

TEST_CASE("a bridge that ends by itself in time is left alone") {
  Pipe editor;
  std::promise<void> ended;
  {
    EndWatch watch(
        {.editor_in = editor.read.get(), .grace = 60s, .end = [&] { ended.set_value(); }});
    editor.write.reset();
  }
  CHECK(ended.get_future().wait_for(0s) == std::future_status::timeout);
}

TEST_CASE("a process that is not above the bridge is not taken for its editor") {
  Pipe editor;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  Watched bridge(editor.read.get());
  bridge.watch.watch_editor(child);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(bridge.future.wait_for(0s) == std::future_status::timeout);
}
