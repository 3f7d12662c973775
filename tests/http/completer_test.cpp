#include "net/http/completer.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "tests/http/fake_daemon.h"

using namespace efimd;
using namespace efimd::http;

namespace {

/// A completer and its daemon, which answers when the test wants it to.
struct Displacing {
  Displacing() {
    daemon.heard = [this](const lsp::Message& message) {
      if (message.method == "efim/findDocument")
        daemon.say(lsp::response_body(message.id, nullptr));
      if (message.method == "textDocument/didChange")
        changes += static_cast<int>(message.params["contentChanges"].size());
      if (message.method != "textDocument/inlineCompletion") return;
      asked.push_back(std::get<std::int64_t>(message.id));
      if (message.params.contains(lsp::Json::json_pointer("/efim/ahead")))
        ahead.push_back(asked.back());
    };
  }

  /// A client asks for what follows `before`; what it gets goes to `got[before]`.
  Completer::Ticket ask(const std::string& before, Completer::Begun begun = nullptr) {
    CompletionRequest request;
    request.text = {before, "\n", {}};
    request.stream = begun != nullptr;
    const std::size_t before_this = asked.size();
    const auto ticket = completer.ask(
        request,
        [this, before](const Outcome& outcome) {
          got[before].push_back(outcome.kind == Outcome::Kind::kCompleted ? outcome.completed.text
                                                                          : outcome.why);
        },
        std::move(begun));
    while (asked.size() == before_this) io.run_one();
    return ticket;
  }
  void ask_in_pieces(const std::string& before) {
    ask(before, [this](const std::string& text) { piece = text; });
  }
  void say_piece(std::int64_t id, const std::string& text) {
    daemon.say(lsp::notification_body("$/progress", {{"token", id}, {"value", items(text)}}));
    while (piece != text) io.run_one();
  }
  lsp::Json items(const std::string& text) {
    return {{"items", lsp::Json::array({{{"insertText", text}}})}};
  }
  void say_nothing(std::int64_t id) { daemon.say(lsp::response_body(id, nullptr)); }
  void say(std::int64_t id, const std::string& text) {
    daemon.say(lsp::response_body(id, items(text)));
    daemon.say(lsp::notification_body("efim/receipt", {{"request", id}}));
  }
  void wait_for_ask(std::size_t count) {
    while (asked.size() < count) io.run_one();
  }
  void wait_for_answer(const std::string& before) {
    while (got[before].empty()) io.run_one();
  }

  boost::asio::io_context io;
  test::FakeDaemon daemon{io};
  std::string piece;
  int changes = 0;
  std::vector<std::int64_t> asked, ahead;
  std::map<std::string, std::vector<std::string>> got;
  Completer completer{
      io,
      {[this](service::Deadline) { return daemon.connect(); }, {}, {}, [](const std::string&) {}},
      {}};
};
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("C-5 a request ahead of the user is asked again after the key that displaced it") {
  Displacing test;
  test.ask("int a = 1;");
  test.ask("int a");
  test.say_nothing(test.asked[0]);  // as the daemon does with the older one
  test.say(test.asked[1], " = 1;");
  test.wait_for_answer("int a");
  CHECK(test.got["int a"] == Texts{" = 1;"});
  REQUIRE(test.got["int a = 1;"].empty());
  test.wait_for_ask(3);
  test.say(test.asked[2], " // one");
  test.wait_for_answer("int a = 1;");
  CHECK(test.got["int a = 1;"] == Texts{" // one"});
  CHECK(test.changes == 2);
}

TEST_CASE("C-5 of several that were displaced only the newest is asked again") {
  Displacing test;
  for (const char* before : {"int a", "int ab", "int abc"}) test.ask(before);
  test.say_nothing(test.asked[0]);
  test.say_nothing(test.asked[1]);
  test.wait_for_answer("int a");
  CHECK(test.got["int a"] == Texts{""});
  test.say(test.asked[2], "d;");
  test.wait_for_ask(4);
  test.say(test.asked[3], "c;");
  test.wait_for_answer("int ab");
  CHECK(test.got["int ab"] == Texts{"c;"});
}

TEST_CASE("C-5 what nobody waits for, or is out in part, is not asked again") {
  Displacing test;
  const auto gone = test.ask("int a");
  test.ask_in_pieces("int ab");
  test.say_nothing(test.asked[0]);
  test.say_piece(test.asked[1], "c");  // so the completer has read both
  test.completer.withdraw(gone);
  test.ask("int abc");
  test.say_nothing(test.asked[1]);
  test.wait_for_answer("int ab");
  CHECK(test.got["int ab"] == Texts{""});
  test.say(test.asked[2], ";");
  test.wait_for_answer("int abc");
  test.ask("int abcd");  // nothing else was asked between
  CHECK(test.asked.size() == 4);
  CHECK(test.got["int a"].empty());
}

TEST_CASE("C-4 a displaced request is told in time, too") {
  Displacing test;
  test.ask("int a");
  const auto between = Completer::Clock::now();
  test.ask_in_pieces("int ab");
  test.say_nothing(test.asked[0]);
  test.say_piece(test.asked[1], "c");
  test.completer.end_late(between + Completer::kAnswerMax);
  test.wait_for_answer("int a");
  CHECK(test.got["int a"] == Texts{"the model did not answer in time"});
  CHECK(test.got["int ab"].empty());
}

TEST_CASE("looks at a daemon that hangs are given up in time, each by its own (C-4)") {
  boost::asio::io_context io;
  test::FakeDaemon daemon(io);
  std::vector<lsp::Id> asked;
  int cancelled = 0;
  daemon.heard = [&](const lsp::Message& message) {
    if (message.method == "efim/status") asked.push_back(message.id);
    if (message.method == "$/cancelRequest") ++cancelled;
  };
  Completer completer(
      io, {[&](service::Deadline) { return daemon.connect(); }, {}, {}, [](const std::string&) {}},
      {});
  std::vector<int> first, second;  // statuses of /health
  const auto begin = Completer::Clock::now();
  completer.look([&](const ModelPages& pages) { first.push_back(pages.health().status); });
  while (asked.empty()) io.run_one();
  const auto between = Completer::Clock::now();
  completer.look([&](const ModelPages& pages) { second.push_back(pages.health().status); });

  completer.end_late(begin + Completer::kAnswerMax - std::chrono::nanoseconds(1));
  io.poll();
  CHECK(first.empty());
  completer.end_late(between + Completer::kAnswerMax - std::chrono::nanoseconds(1));
  io.poll();
  REQUIRE(first == std::vector{503});
  CHECK(second.empty());

  // The other one's answer does not hang on what the daemon owes the first.
  while (asked.size() < 2) io.run_one();
  CHECK(cancelled == 1);
  daemon.say(lsp::response_body(asked[1], lsp::Json::object()));
  while (second.empty()) io.run_one();
  CHECK(first.size() == 1);
}

TEST_CASE("C-6 the daemon learns that a client asks ahead of its user") {
  Displacing client;
  const std::string shown = "int f() {\n  ret";
  client.ask(shown);
  client.say(client.asked[0], "urn 1;");
  client.wait_for_answer(shown);
  client.ask(shown + "urn 1;");
  CHECK(client.ahead == std::vector{client.asked[1]});
  SECTION("of an answer to such a request, too") {
    client.say(client.asked[1], "\n}");
    client.wait_for_answer(shown + "urn 1;");
    client.ask(shown + "urn 1;\n}");
    CHECK(client.ahead == std::vector{client.asked[1], client.asked[2]});
  }
  SECTION("not of what the user types, a part of the answer or more than it") {
    client.ask(shown + "u");
    client.ask(shown + "urn 1; ");
    CHECK(client.ahead.size() == 1);
  }
}

TEST_CASE("C-6 a client that shows some lines only asks ahead likewise") {
  RecentAnswers recent;
  recent.note({"one\ntwo\nthr", "\n", "a.c"}, "ee\nfour");
  CHECK(recent.asks_ahead({"two\nthree\nfour", "\n", "a.c"}));
  CHECK_FALSE(recent.asks_ahead({"two\nthree\nfour", "\n", "b.c"}));
  CHECK_FALSE(recent.asks_ahead({"too\nthree\nfour", "\n", "a.c"}));
  for (std::size_t i = 0; i < RecentAnswers::kAnswersMax; ++i)
    recent.note({"text", "", "a.c"}, "other");
  CHECK_FALSE(recent.asks_ahead({"two\nthree\nfour", "\n", "a.c"}));
}
