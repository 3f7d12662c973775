#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "daemon/cli/commands/source_place.h"
#include "daemon/cli/commands/status_text.h"
#include "daemon/cli/commands/table.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;

TEST_CASE("a table's columns are aligned as a terminal shows them") {
  CHECK(table({{"name", Align::kLeft}, {"n"}},
              {{"é", "1"}, {"longer", "234"}, {"日本", "5"}, {"e\u0301\U0001F600", "6"}}) ==
        "name      n\n"
        "é         1\n"
        "longer  234\n"
        "日本      5\n"
        "e\u0301\U0001F600       6\n");
}

TEST_CASE("what is cropped takes no more columns than there are") {
  CHECK(cropped("abcd", 3) == "abc");
  CHECK(cropped("日本語", 4) == "日本");
  CHECK(cropped("a日本語", 4) == "a日");
  CHECK(cropped("e\u0301x", 1) == "e\u0301");
  CHECK(tail_of("/a/日本.c", 6) == "~日本.c");
  CHECK(tail_of("/a/日本.c", 5) == "~本.c");
  CHECK(tail_of("日本", 4) == "日本");
}

TEST_CASE("why nothing is kept on disk is said once") {
  for (const char* trouble :
       {"nothing is kept on disk: /c: it is read-only", "/c: it is read-only"}) {
    const nlohmann::json status = {{"store", {{"usable", false}, {"trouble", trouble}}}};
    const std::string text = status_text(status);
    CAPTURE(text);
    CHECK(text.find("\nnothing is kept on disk: /c: it is read-only\n") != std::string::npos);
  }
}

TEST_CASE("what a model file or a path says cannot write to the terminal") {
  const std::string evil = "\x1b]0;owned\x07\x7f\xC2\x9Bx\r\xFF";
  const auto harmless = [](const std::string& text) {
    return std::ranges::none_of(
               text, [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7F; }) &&
           text.find("\xC2\x9B") == std::string::npos;
  };
  CHECK(harmless(table({{"name", Align::kLeft}, {"n"}}, {{evil, "1"}})));
  CHECK(harmless(listing({{"name", evil}})));
  const nlohmann::json status = {
      {"model", {{"name", "\x1b]0;owned\x07"}, {"architecture", "\x1b[2J"}, {"path", "\x1b"}}},
      {"plans",
       {{{"event", "type"}, {"uri", "\x1b[1m"}, {"taken", "\x1b"}, {"considered", {"\x1b"}}}}}};
  CHECK(harmless(status_text(status)));
  CHECK(harmless(plans_text(status)));
  CHECK(plans_text(status).find("?[1m") != std::string::npos);
}

TEST_CASE("sizes, counts and durations read as people write them") {
  CHECK(bytes_text(812) == "812 B");
  CHECK(bytes_text(12.0 * 1024) == "12.0 KiB");
  CHECK(bytes_text(16000256) == "15.3 MiB");
  CHECK(count_text(7944000) == "7.9 M");
  CHECK(count_text(494032768) == "494 M");
  CHECK(count_text(1543714304) == "1.5 B");
  CHECK(duration_text(59.9) == "59 s");
  CHECK(duration_text(12061) == "3 h 21 min");
}

TEST_CASE("a status is shown whole") {
  const std::string text = status_text(nlohmann::json::parse(R"({
    "version": "0.1.0", "pid": 42, "uptimeS": 3700, "state": {"name": "ready", "progress": 1, "message": ""},
    "model": {"name": "boot", "path": "/m/boot.gguf", "reason": "bundled", "architecture": "llama",
              "parameters": 7944000, "fileType": "F16", "windowTokens": 2048, "fimOrder": "psm", "digest": "d"},
    "device": {"kind": "cpu", "name": "AVX-512", "reason": "no other"},
    "memory": {"device": {"budgetBytes": 1073741824, "usedBytes": 1048576},
               "host": {"budgetBytes": 0, "usedBytes": 0, "isDevice": true}, "disk": {"budgetBytes": 0, "usedBytes": 0}},
    "reuse": {"reusedTokens": 900, "evaluatedTokens": 100, "hitRate": 0.9},
    "files": [{"uri": "file:///a%20b.c", "open": true, "anchors": 1, "tokensDevice": 300, "tokensHost": 0,
               "tokensDisk": 0, "lastUseS": 5, "hits": 9, "misses": 1}],
    "events": {"type": {"count": 9, "evaluatedMean": 1.25, "reusedMean": 300.5, "firstTokenMsP50": 8.04,
                        "firstTokenMsP95": 12}},
    "silence": [{"reason": "nothing to add", "count": 3}],
    "sessions": [{"id": 1, "client": "Neovim 0.12.0", "documents": 1, "requests": 10, "accepted": 2}],
    "config": {"file": "/c.toml", "read": true, "warnings": [{"line": 3, "message": "unknown key x"}]}})"));
  for (const char* part :
       {"0.1.0, process 42, up 1 h 1 min", "ready", "7.9 M parameters", "psm FIM", "cpu, AVX-512",
        "1.0 MiB", "1.0 GiB", "device, which is the host", "90.0 % was in KV", "/a b.c", "1.2",
        "300.5", "8.0", "nothing to add", "Neovim 0.12.0", "/c.toml:3: unknown key x"}) {
    CAPTURE(text, part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("a status of another version is shown as far as it goes") {
  for (const char* json :
       {"{}", "null", "[]", R"({"model": 3, "files": {}, "events": [], "memory": null})",
        R"({"files": [3], "events": {"type": 1}, "silence": ["x"], "sessions": 4})"}) {
    CAPTURE(json);
    CHECK_FALSE(status_text(nlohmann::json::parse(json)).empty());
  }
}

TEST_CASE("a place in a file counts characters, not bytes") {
  const test::TempDir temp;
  std::ofstream(temp / "a.c") << "x\né€y = \n";
  const auto source = read_source({temp / "a.c", 2, 4});
  REQUIRE(source);
  CHECK(source->line == 1);
  CHECK(source->character == 3);
  CHECK(source->uri.starts_with("file:///"));
  CHECK(read_source({temp / "a.c", 2, 7}));
  CHECK(read_source({temp / "a.c", 3, 1}));
}

TEST_CASE("a place outside of its file is refused with the last one that is inside") {
  const test::TempDir temp;
  std::ofstream(temp / "a.c") << "ab\ncd";
  CHECK(read_source({temp / "a.c", 3, 1}).error().message().find("the last is 2") !=
        std::string::npos);
  CHECK(read_source({temp / "a.c", 1, 4}).error().message().find("ends at 3") != std::string::npos);
}

TEST_CASE("a source that cannot be read says why") {
  const test::TempDir temp;
  std::ofstream(temp / "bad.c") << "ok\xFF";
  CHECK(read_source({temp / "bad.c", 1, 1}).error().message().find("byte 2") != std::string::npos);
  CHECK(read_source({temp / "none.c", 1, 1}).error().fault == Fault::kNotFound);
  CHECK_FALSE(read_source({temp.path(), 1, 1}));
}

TEST_CASE("a live view keeps to the screen and says what it leaves out") {
  nlohmann::json status = {{"version", "0.1.0"},
                           {"state", {{"name", "ready"}}},
                           {"memory", {{"device", {{"budgetBytes", 1000}, {"usedBytes", 500}}}}}};
  for (int i = 0; i < 50; ++i)
    status["files"].push_back({{"uri", "file:///a/very/long/path/to/the/source/of/it/all/file" +
                                           std::to_string(i) + "_\u00fcn\u00efcode.cpp"}});
  for (const Screen screen : {Screen{24, 80}, Screen{5, 20}, Screen{1, 1}, Screen{200, 300}}) {
    const auto lines = status_screen(status, screen);
    CAPTURE(screen.rows, screen.columns, lines.size());
    CHECK(lines.size() <= screen.rows);
    for (const std::string& line : lines)
      CHECK(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }) <=
            static_cast<std::ptrdiff_t>(screen.columns));
  }
  const auto lines = status_screen(status, {24, 80});
  CHECK(lines.back().find("more lines") != std::string::npos);
  const auto all = fmt::format("{}", fmt::join(lines, "\n"));
  CHECK(all.find("[###############...............] 500 B of 1000 B") != std::string::npos);
  CHECK(all.find("file0_\u00fcn\u00efcode.cpp") !=
        std::string::npos);  // the end of the path stands
}

TEST_CASE("a live view of another version's status is drawn as far as it goes") {
  for (const char* json : {"{}", "null", R"({"files": [3], "memory": 4, "events": {"type": 1}})"})
    CHECK_FALSE(status_screen(nlohmann::json::parse(json), {24, 80}).empty());
}
