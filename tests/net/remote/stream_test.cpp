#include "net/remote/stream.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "net/remote/health.h"

using namespace efimd;
using namespace efimd::remote;

namespace {

constexpr std::string_view kEvents =
    "data: {\"choices\":[{\"text\":\"a b\",\"logprobs\":{\"token_logprobs\":[-0.5,0]},"
    "\"finish_reason\":null}]}\r\n\r\n"
    ": keep-alive\n\n"
    "data: "
    "{\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":9,"
    "\"prompt_tokens_details\":{\"cached_tokens\":7}}}\n\n"
    "data: [DONE]\n\n";

/// The text of an answer that comes in pieces of `size` bytes.
Result<std::string> read(std::string_view bytes, std::size_t size, StreamReader& reader) {
  std::string text;
  const auto add = [&text](const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) text += piece.text;
  };
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    const auto pieces = reader.feed(bytes.substr(0, size));
    if (!pieces) return tl::unexpected(pieces.error());
    add(*pieces);
  }
  const auto rest = reader.finish();
  if (!rest) return tl::unexpected(rest.error());
  add(*rest);
  return text;
}

}  // namespace

TEST_CASE("a stream is read alike in whatever pieces it comes") {
  for (std::size_t size = 1; size <= kEvents.size(); ++size) {
    StreamReader reader;
    const auto text = read(kEvents, size, reader);
    REQUIRE(text);
    CHECK(*text == "a b");
    CHECK(reader.was_cut());
    CHECK(reader.usage().prompt_tokens == 9);
    CHECK(reader.usage().cached_tokens == 7);
  }
}

TEST_CASE("the chances of tokens are told with their text") {
  StreamReader reader;
  const auto pieces = reader.feed(kEvents);
  REQUIRE(pieces);
  REQUIRE(pieces->size() == 1);
  REQUIRE(pieces->front().chances.size() == 2);
  CHECK(pieces->front().chances[0] == Approx(0.60653));
  CHECK(pieces->front().chances[1] == 1.0);
}

TEST_CASE("a piece has no more chances than bytes") {
  std::string numbers = "-1";
  for (int more = 0; more < 4095; ++more) numbers += ",-1";
  StreamReader reader;
  const auto pieces = reader.feed(
      "data: {\"choices\":[{\"text\":\"ab\",\"logprobs\":{"
      "\"token_logprobs\":[" +
      numbers + "]}}]}\n");
  REQUIRE(pieces);
  REQUIRE(pieces->size() == 1);
  CHECK(pieces->front().chances.size() == 2);
}

TEST_CASE("llama-server's timings say what it had cached") {
  StreamReader reader;
  REQUIRE(reader.feed(
      "data: {\"choices\":[{\"text\":\"x\",\"logprobs\":{\"content\":[{\"logprob\":-1}]}}],"
      "\"timings\":{\"cache_n\":90,\"prompt_n\":2}}\n"));
  CHECK(reader.usage().prompt_tokens == 92);
  CHECK(reader.usage().cached_tokens == 90);
}

TEST_CASE("an answer that is one object is read, too") {
  StreamReader reader;
  const auto text =
      read("{\"choices\":[{\"text\":\"abc\",\"finish_reason\":\"stop\"}]}", 7, reader);
  REQUIRE(text);
  CHECK(*text == "abc");
  CHECK_FALSE(reader.was_cut());
}

TEST_CASE("what is no answer is an error that says what it is") {
  for (const char* bad :
       {"", "\n\n", "<html>\n", "data: {\n\n", "data: []\n\n", "data: {\"choices\": 1}\n\n",
        "data: {\"choices\": [{\"text\": 1}]}\n\n", "{\"choices\": [{\"text\": \"x\"",
        "data: {\"error\": {\"message\": \"full\"}}\n\n", "{\"error\": \"full\"}",
        "data: {\"choices\": [{\"text\": \"a\"}]}\n\n"}) {
    CAPTURE(bad);
    StreamReader reader;
    const auto text = read(bad, 5, reader);
    REQUIRE_FALSE(text);
    CHECK_FALSE(text.error().what.empty());
  }
}

TEST_CASE("a line or an answer without end is refused") {
  StreamReader reader;
  REQUIRE(reader.feed("data: "));
  const std::string much(StreamReader::kLineBytesMax + 1, 'x');
  CHECK_FALSE(reader.feed(much));
  CHECK_FALSE(reader.feed("\n"));
}

TEST_CASE("a body says tokens or text, and nothing of sampling if it is greedy") {
  Wish wish;
  wish.tokens = {1, 2, 3};
  auto body = nlohmann::json::parse(request_body(wish));
  CHECK(body["prompt"] == nlohmann::json({1, 2, 3}));
  CHECK(body["stream"] == true);
  CHECK_FALSE(body.contains("seed"));
  CHECK_FALSE(body.contains("model"));
  wish.tokens.clear();
  wish.prompt = "a\xff";
  wish.temperature = 0.5;
  wish.with_chances = false;
  body = nlohmann::json::parse(request_body(wish));
  CHECK(body["prompt"] == "a\xEF\xBF\xBD");
  CHECK(body["top_p"] == 1.0);
  CHECK_FALSE(body.contains("logprobs"));
}

TEST_CASE("an address may name the server, its /v1 or its /v1/completions") {
  for (const char* url :
       {"http://a:1", "http://a:1/", "http://a:1/v1", "http://a:1/v1/completions"}) {
    CHECK(endpoint(url, "/v1/completions") == "http://a:1/v1/completions");
    CHECK(endpoint(url, "/tokenize") == "http://a:1/tokenize");
  }
  CHECK(endpoint("https://a/team/v1", "/v1/models") == "https://a/team/v1/models");
}

TEST_CASE(
    "a server that fails is left alone for longer each time, until a completion comes (H-1, H-2)") {
  Health health;
  const auto now = Health::Clock::now();
  auto pause = Health::kPauseMin;
  for (int i = 0; i < 10; ++i) {
    health.failed("why", now);
    CHECK_FALSE(health.is_open());
    CHECK(health.look_at() - now == pause);
    pause = std::min<std::chrono::milliseconds>(pause * 2, Health::kPauseMax);
    health.answered_look();
    CHECK(health.is_open());
  }
  health.completed();
  CHECK(health.trouble().empty());
  health.failed("again", now);
  CHECK(health.look_at() - now == Health::kPauseMin);
}

TEST_CASE("names and tokens of other answers are read, or are nothing") {
  CHECK(first_model("{\"data\":[{\"id\":\"m\"}]}") == "m");
  CHECK(token_ids("{\"tokens\":[1,2]}") == std::vector<std::int32_t>{1, 2});
  for (const char* bad :
       {"", "[]", "{\"data\":[]}", "{\"data\":[1]}", "{\"tokens\":[-1]}", "{\"tokens\":[\"a\"]}"}) {
    CAPTURE(bad);
    CHECK(first_model(bad).empty());
    CHECK_FALSE(token_ids(bad));
  }
}
