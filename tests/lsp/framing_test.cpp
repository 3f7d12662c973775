#include "lsp/framing.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

using namespace efimd;
using lsp::framed;
using lsp::FrameReader;

namespace {

/// Feeds `stream` in the given pieces and returns every body; fails the test on an error.
std::vector<std::string> bodies(const std::vector<std::string>& pieces) {
  FrameReader reader;
  std::vector<std::string> out;
  for (const std::string& piece : pieces) {
    reader.feed(piece);
    while (true) {
      Result<std::optional<std::string>> body = reader.next();
      REQUIRE(body);
      if (!*body) break;
      out.push_back(std::move(**body));
    }
  }
  CHECK_FALSE(reader.inside_frame());
  return out;
}

void check_refused(const std::string& stream, const std::string& named) {
  INFO(stream);
  FrameReader reader;
  reader.feed(stream);
  const Result<std::optional<std::string>> body = reader.next();
  REQUIRE_FALSE(body);
  CHECK(body.error().fault == Fault::kBadInput);
  CHECK_THAT(body.error().message(), Catch::Contains(named));
  CHECK_THAT(body.error().message(), Catch::Contains("close the connection"));
}

}  // namespace

TEST_CASE("a stream of messages comes out whole wherever it is cut") {
  const std::vector<std::string> expected = {"{}", "", "{\"a\":\"\u20ac\\n\"}",
                                             std::string(300, 'x')};
  std::string stream;
  for (const std::string& body : expected) stream += framed(body);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut)
    CHECK(bodies({stream.substr(0, cut), stream.substr(cut)}) == expected);
}

TEST_CASE("a stream that arrives byte by byte comes out whole") {
  std::vector<std::string> pieces;
  for (const char c : framed("{\"id\":1}") + framed("[]")) pieces.emplace_back(1, c);
  CHECK(bodies(pieces) == std::vector<std::string>{"{\"id\":1}", "[]"});
}

TEST_CASE("headers come in any order and case, and others are ignored") {
  CHECK(bodies({"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"
                "CONTENT-length:\t 2 \r\n\r\n{}"}) == std::vector<std::string>{"{}"});
  CHECK(bodies({"content-length:2\r\nX-Other: a:b\r\n\r\n{}"}) == std::vector<std::string>{"{}"});
  CHECK(bodies({"Content-Length: 2\n\n{}"}) == std::vector<std::string>{"{}"});
}

TEST_CASE("a malformed header is refused and its bytes are named") {
  check_refused("Content-Length: -1\r\n\r\n", "\"-1\"");
  check_refused("Content-Length: +1\r\n\r\n", "\"+1\"");
  check_refused("Content-Length: 0x10\r\n\r\n", "\"0x10\"");
  check_refused("Content-Length: 1e3\r\n\r\n", "\"1e3\"");
  check_refused("Content-Length: 1 2\r\n\r\n", "\"1 2\"");
  check_refused("Content-Length: \r\n\r\n", "no count of bytes: \"\"");
  check_refused("Content-Length: 99999999999999999999999\r\n\r\n", "too large");
  check_refused("Content-Length: 18446744073709551615\r\n\r\n", "over");
  check_refused("Content-Length: " + std::to_string(lsp::kMessageBytesMax + 1) + "\r\n\r\n",
                "over");
  check_refused("Content-Length: 2\r\nContent-Length: 2\r\n\r\n", "twice");
  check_refused("Content-Type: x\r\n\r\n", "Content-Length is missing");
  check_refused("\r\n{}", "Content-Length is missing");
  check_refused("GET /\x01\xff HTTP\r\n", "\"GET /\\x01\\xff HTTP\"");
}

TEST_CASE("a header without an end is refused once it is too long") {
  FrameReader reader;
  const std::string piece(512, 'a');
  for (std::size_t fed = piece.size(); fed <= lsp::kHeaderBytesMax; fed += piece.size()) {
    reader.feed(piece);
    REQUIRE(reader.next());
  }
  reader.feed("a");
  REQUIRE_FALSE(reader.next());
  check_refused(std::string(lsp::kHeaderBytesMax / 2, 'a') + ":\r\n" +
                    std::string(lsp::kHeaderBytesMax / 2, 'b') + ":\r\n\r\n",
                "longer than");
}

TEST_CASE("an oversized body is skipped where that is wanted, and what is behind it is read") {
  constexpr std::size_t kHuge = lsp::kMessageBytesMax + 1;
  lsp::FrameReader reader(lsp::FrameReader::Oversized::kSkipped);
  reader.feed(lsp::framed("before") + "Content-Length: " + std::to_string(kHuge) + "\r\n\r\n");
  CHECK(reader.next().value() == "before");
  const std::string piece(std::size_t{1} << 20, 'x');
  for (std::size_t left = kHuge; left > 0;) {
    const std::size_t size = std::min(left, piece.size());
    CHECK(reader.take_skipped() == 0);
    reader.feed(std::string_view(piece).substr(0, size));
    left -= size;
    REQUIRE_FALSE(reader.next().value());
    CHECK(reader.inside_frame() == (left > 0));
  }
  reader.feed(lsp::framed("behind"));
  CHECK(reader.next().value() == "behind");
  CHECK(reader.take_skipped() == kHuge);
  CHECK(reader.take_skipped() == 0);
  reader.feed("Content-Length: " + std::to_string(lsp::kSkippedBytesMax + 1) + "\r\n");
  CHECK_FALSE(reader.next());
}

TEST_CASE("after a bad header nothing more is read") {
  FrameReader reader;
  reader.feed("Content-Length: x\r\n\r\n");
  const Result<std::optional<std::string>> first = reader.next();
  REQUIRE_FALSE(first);
  reader.feed(framed("{}"));
  const Result<std::optional<std::string>> second = reader.next();
  REQUIRE_FALSE(second);
  CHECK(second.error().what == first.error().what);
}

TEST_CASE("an end of the stream inside a frame can be told from one between frames") {
  FrameReader reader;
  CHECK_FALSE(reader.inside_frame());
  const std::string frame = framed("{}");
  for (const char c : frame.substr(0, frame.size() - 1)) {
    reader.feed(std::string(1, c));
    REQUIRE(reader.next() == std::nullopt);
    CHECK(reader.inside_frame());
  }
  reader.feed("}");
  CHECK(reader.next().value() == "{}");
  CHECK_FALSE(reader.inside_frame());
}

TEST_CASE("a message of many megabytes passes in small pieces, with small ones behind it") {
  const std::string large(24U << 20U, 'x');
  const std::string stream = framed(large) + framed("{}") + framed(large) + framed("[]");
  FrameReader reader;
  std::vector<std::size_t> sizes;
  constexpr std::size_t kPiece = 65536;
  for (std::size_t at = 0; at < stream.size(); at += kPiece) {
    reader.feed(std::string_view(stream).substr(at, kPiece));
    for (auto body = reader.next(); body.value(); body = reader.next())
      sizes.push_back((*body)->size());
  }
  CHECK(sizes == std::vector<std::size_t>{large.size(), 2, large.size(), 2});
}

TEST_CASE("a large body that came in parts is the text that was sent") {
  for (const std::size_t size :
       {std::size_t{1} << 20U, (std::size_t{1} << 20U) + 1, (std::size_t{3} << 20U) - 1}) {
    std::string large(size, ' ');
    for (std::size_t i = 0; i < size; ++i) large[i] = static_cast<char>(i * 31 / 7);
    for (const std::size_t piece : {size, std::size_t{65521}}) {
      const std::string stream = framed(large) + framed("{}");
      FrameReader reader;
      std::vector<std::string> taken;
      for (std::size_t at = 0; at < stream.size(); at += piece) {
        reader.feed(std::string_view(stream).substr(at, piece));
        for (auto body = reader.next_in_parts(); body.value(); body = reader.next_in_parts()) {
          const std::size_t told = (*body)->size();
          taken.push_back(std::move(**body).joined());
          CHECK(taken.back().size() == told);
        }
      }
      REQUIRE(taken.size() == 2);
      CHECK(taken[0] == large);
      CHECK(taken[1] == "{}");
      CHECK(reader.waiting_bytes() == 0);
    }
  }
}

TEST_CASE("many small messages in one piece are read in linear time") {
  std::string stream;
  constexpr std::size_t kMessages = 200000;
  for (std::size_t i = 0; i < kMessages; ++i) stream += framed("{\"jsonrpc\":\"2.0\"}");
  FrameReader reader;
  reader.feed(stream);
  std::size_t count = 0;
  for (auto body = reader.next(); body.value(); body = reader.next()) ++count;
  CHECK(count == kMessages);  // moving the rest of the 8 MB for each message would take minutes
}
