// No memory for a message costs the message or its connection, never the daemon.
//
// A program of its own, because it has the allocator in it. Of the daemon's io thread, one large allocation fails: each in turn.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>
#include <optional>
#include <random>
#include <set>

#include "tests/server/daemon_fixture.h"
#include "tests/support/canary.h"
#include "tests/support/count.h"
#include "tests/support/json_of.h"

namespace {

constexpr int kNone = -1;
std::atomic<int> allocations_left{kNone};  ///< of the io thread, before the one that fails
std::atomic<int> failed{0};
thread_local bool on_io = false;

/// A smaller one succeeds while MemoryReserve is there. So must those of destructors of Json.
constexpr std::size_t kLargeBytes = 4096;

bool fails_now(std::size_t size) {
  if (!on_io || size < kLargeBytes || allocations_left.load() == kNone) return false;
  if (allocations_left.fetch_sub(1) > 0) return false;
  allocations_left = kNone;
  ++failed;
  return true;
}

}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // g++ 12 sees free() in these alone

void* operator new(std::size_t size) {
  if (void* const memory = fails_now(size) ? nullptr : std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// Sanitizers have their own of this kind, whose memory the delete below must not get.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(std::max<std::size_t>(bytes, 1));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace efimd;
using namespace std::chrono_literals;
using test::CanaryMessages;
using test::Json;
using test::RunningDaemon;
using test::SocketEditor;

namespace {

constexpr char kUri[] = "file:///src/a.cpp";
const std::string kText = "int a = \n" + std::string(10000, 'x');

/// What an editor says, each in turn.
Json usual_message(int turn) {
  const Json document = {{"uri", kUri}, {"version", turn}};
  const Json at = {{"line", 0}, {"character", turn % 5}};
  const auto notification = [](const char* method, Json params) {
    return Json{{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
  };
  const auto request = [&](const char* method, Json params) {
    Json message = notification(method, std::move(params));
    message["id"] = "asked-" + std::to_string(turn);
    return message;
  };
  switch (turn % 10) {
    case 0:
      return request(
          "textDocument/inlineCompletion",
          {{"textDocument", document}, {"position", at}, {"context", {{"triggerKind", 2}}}});
    case 1:
      return request("efim/status", Json::object());
    case 2:
      return notification("textDocument/didClose", {{"textDocument", document}});
    case 3:
      return notification(
          "textDocument/didOpen",
          {{"textDocument",
            {{"uri", kUri}, {"languageId", "cpp"}, {"version", 1}, {"text", kText}}}});
    case 4:
      return notification("efim/didFocus", {{"textDocument", document}});
    case 5:
      return request("efim/cache", {{"action", "list"}});
    case 6:
      return notification("workspace/didChangeConfiguration",
                          {{"settings", {{"efim", {{"receipts", true}, {"maxTokens", 12}}}}}});
    case 7:
      return notification("efim/didDismiss", {{"textDocument", document}});
    default:
      return notification(
          "textDocument/didChange",
          {{"textDocument", document},
           {"contentChanges",
            {{{"range", {{"start", at}, {"end", at}}}, {"text", turn % 3 == 0 ? "b" : kText}}}}});
  }
}

/// One client, which is told of its end.
class Client {
 public:
  explicit Client(const std::filesystem::path& path) : socket_(*service::connect_to(path)) {
    const timeval patience{
        std::chrono::duration_cast<std::chrono::seconds>(test::kPatience).count(), 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  void send(const std::string& body) {
    const std::string frame = lsp::framed(body);
    static_cast<void>(::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL));
  }

  /// Whether the request was answered; false: the connection ended. Neither fails the test.
  bool is_answered(const Json& id) {
    while (answered_.erase(id.dump()) == 0) {
      std::array<char, 65536> bytes{};
      const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (size == 0 || (size < 0 && errno == ECONNRESET)) return false;
      INFO("waiting for the answer to " << id);
      REQUIRE(size > 0);
      reader_.feed({bytes.data(), static_cast<std::size_t>(size)});
      for (auto body = reader_.next(); body && *body; body = reader_.next()) {
        const Json message = test::json_of(**body);
        if (!message.contains("method")) answered_.insert(message.value("id", Json()).dump());
      }
    }
    return true;
  }

  bool is_initialized() {
    send(CanaryMessages::initialize());
    if (!is_answered(0)) return false;
    send(usual_message(3).dump());
    return true;
  }

 private:
  service::UniqueFd socket_;
  lsp::FrameReader reader_;
  std::set<std::string> answered_;
};

}  // namespace

TEST_CASE("an allocation that fails in a message ends that message or its connection") {
  const int messages = test::times("EFIMD_NO_MEMORY_MESSAGES", 3000);
  RunningDaemon daemon({}, RunningDaemon::Model::kLoads, [] { on_io = true; });
  daemon.script->continuation = [](const test::ScriptedPrompt&) { return "42;"; };
  daemon.log.wait_for("the model is ready");
  CanaryMessages broken(5);
  std::mt19937 random(5);
  std::optional<Client> client;
  int ended = 0;
  for (int turn = 0; turn < messages; ++turn) {
    if (!client) REQUIRE(client.emplace(daemon.socket()).is_initialized());
    const Json usual = usual_message(turn);
    const bool is_broken = random() % 4 == 0;
    const std::string body = is_broken ? broken.body() : usual.dump();
    INFO("message " << turn << ": " << body);
    const Json fence = 1000000 + turn;
    allocations_left = static_cast<int>(random() % 6);
    client->send(body);
    client->send(Json{{"jsonrpc", "2.0"}, {"id", fence}, {"method", "efim/version"}}.dump());
    const bool is_request = !is_broken && usual.contains("id");
    const bool lives =
        (!is_request || client->is_answered(usual.at("id"))) && client->is_answered(fence);
    allocations_left = kNone;
    if (lives) continue;
    client.reset();
    ++ended;
  }
  WARN(messages << " messages, " << failed << " allocations failed, " << ended
                << " connections ended");
  CHECK(failed > messages / 20);
  // Another editor is served as if nothing had been, and nobody else is held.
  client.reset();
  SocketEditor editor(daemon.socket());
  editor.initialize();
  editor.open(kUri, "int a = \n");
  editor.complete(1, kUri, 0, 8);
  CHECK(editor.suggestion(1) == "42;");
  editor.request(2, "efim/status");
  CHECK(editor.answer(2).at("result").at("sessions").size() <=
        2);  // the last client may be on its way
}
