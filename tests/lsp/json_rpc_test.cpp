#include "lsp/json_rpc.h"

#include <catch2/catch.hpp>

using namespace efimd;
using namespace efimd::lsp;

namespace {

Message parsed(const std::string& body) {
  INFO(body);
  tl::expected<Message, BadMessage> message = parse_message(body);
  if (!message) FAIL(message.error().error.message());
  return std::move(*message);
}

void check_refused(const std::string& body, ErrorCode code, const Id& id,
                   const std::string& named) {
  INFO(body.substr(0, 200));
  const tl::expected<Message, BadMessage> message = parse_message(body);
  REQUIRE_FALSE(message);
  CHECK(message.error().code == code);
  CHECK(message.error().id == id);
  CHECK_THAT(message.error().error.message(), Catch::Contains(named));
}

std::string nested(int depth) {
  return R"({"jsonrpc":"2.0","method":"m","params":)" +
         std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']') + "}";
}

/// The string that params.text comes to.
std::string text_of(const std::string& literal) {
  const Message message =
      parsed(R"({"jsonrpc":"2.0","method":"m","params":{"text":")" + literal + R"("}})");
  return message.params["text"].get<std::string>();
}

}  // namespace

TEST_CASE("requests, notifications and responses are told apart") {
  const Message request = parsed(R"({"jsonrpc":"2.0","id":7,"method":"a/b","params":{"x":1}})");
  CHECK(request.kind == Message::Kind::kRequest);
  CHECK(request.id == Id{std::int64_t{7}});
  CHECK(request.method == "a/b");
  CHECK(request.params["x"] == 1);

  const Message notification = parsed(R"({"jsonrpc":"2.0","method":"exit"})");
  CHECK(notification.kind == Message::Kind::kNotification);
  CHECK(notification.params.is_null());

  const Message response = parsed(R"({"jsonrpc":"2.0","id":"s","result":null})");
  CHECK(response.kind == Message::Kind::kResponse);
  CHECK(response.id == Id{std::string("s")});
  CHECK_FALSE(response.error);

  const Message failure =
      parsed(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no","data":[1]}})");
  REQUIRE(failure.error);
  CHECK(failure.id == Id{});
  CHECK(failure.error->code == -32601);
  CHECK(failure.error->message == "no");
  CHECK(failure.error->data == Json::array({1}));
}

TEST_CASE("what is no message is refused with the id it can be answered under") {
  check_refused("[]", ErrorCode::kInvalidRequest, {}, "batches");
  check_refused(R"([{"jsonrpc":"2.0","method":"exit"}])", ErrorCode::kInvalidRequest, {},
                "batches");
  check_refused("3", ErrorCode::kInvalidRequest, {}, "object");
  check_refused(R"({"id":4,"method":"m"})", ErrorCode::kInvalidRequest, Id{std::int64_t{4}},
                "jsonrpc");
  check_refused(R"({"jsonrpc":"1.0","id":4,"method":"m"})", ErrorCode::kInvalidRequest,
                Id{std::int64_t{4}}, "2.0");
  check_refused(R"({"jsonrpc":"2.0","id":4})", ErrorCode::kInvalidRequest, Id{std::int64_t{4}},
                "neither");
  check_refused(R"({"jsonrpc":"2.0","result":4})", ErrorCode::kInvalidRequest, {}, "neither");
  check_refused(R"({"jsonrpc":"2.0","id":4,"method":5})", ErrorCode::kInvalidRequest,
                Id{std::int64_t{4}}, "method");
  check_refused(R"({"jsonrpc":"2.0","id":4,"method":"m","params":5})", ErrorCode::kInvalidRequest,
                Id{std::int64_t{4}}, "params");
  check_refused(R"({"jsonrpc":"2.0","id":{},"method":"m"})", ErrorCode::kInvalidRequest, {},
                "id must");
  check_refused(R"({"jsonrpc":"2.0","id":1.5,"method":"m"})", ErrorCode::kInvalidRequest, {},
                "id must");
  check_refused(R"({"jsonrpc":"2.0","id":18446744073709551615,"method":"m"})",
                ErrorCode::kInvalidRequest, {}, "id must");
  check_refused(R"({"jsonrpc":"2.0","id":4,"error":5})", ErrorCode::kInvalidRequest, {}, "error");
}

TEST_CASE("text that is not JSON is refused and the byte is named") {
  check_refused("", ErrorCode::kParseError, {}, "ends there");
  check_refused("{", ErrorCode::kParseError, {}, "byte 1");
  check_refused(R"({"a":nul})", ErrorCode::kParseError, {}, "byte 8");
  check_refused(R"({"a":1} x)", ErrorCode::kParseError, {}, "byte 8: \"x\"");
  check_refused("{\"a\":\"line\nend\"}", ErrorCode::kParseError, {}, "byte 10");
  check_refused(R"({"a":"\q"})", ErrorCode::kParseError, {}, "not JSON");
  check_refused(R"({"a":"\u12"})", ErrorCode::kParseError, {}, "not JSON");
  check_refused(R"({"a":1e999})", ErrorCode::kParseError, {}, "not JSON");
  check_refused("{\"a\":\xFF}", ErrorCode::kParseError, {}, "not JSON");
}

TEST_CASE("half an emoji becomes U+FFFD and the rest of the message is kept") {
  CHECK(text_of(R"(a\ud83db)") == "a\uFFFDb");
  CHECK(text_of(R"(a\udc00b)") == "a\uFFFDb");
  CHECK(text_of(R"(a\ud83d)") == "a\uFFFD");
  CHECK(text_of(R"(\ud83d\ud83d\ude00)") == "\uFFFD\U0001F600");
  CHECK(text_of(R"(\ud83d\u0041)") == "\uFFFDA");
  CHECK(text_of(R"(\uD83D\n\uDE00)") == "\uFFFD\n\uFFFD");
}

TEST_CASE("an escaped backslash before u is no escape") {
  CHECK(text_of(R"(\ud83d \\ud83d)") == "\uFFFD \\ud83d");
  CHECK(text_of(R"(\ud83d \\\ud83d)") == "\uFFFD \\\uFFFD");
}

TEST_CASE("invalid UTF-8 becomes U+FFFD byte by byte") {
  CHECK(text_of("a\xFF"
                "b") == "a\uFFFDb");
  CHECK(text_of("\xE2\x82") == "\uFFFD\uFFFD");
  CHECK(text_of("\xED\xA0\x80\u20ac") == "\uFFFD\uFFFD\uFFFD\u20ac");
}

TEST_CASE("whole surrogate pairs and NUL pass unchanged") {
  CHECK(text_of(R"(\ud83d\ude00)") == "\U0001F600");
  CHECK(text_of(R"(a\u0000b)") == std::string("a\0b", 3));
}

TEST_CASE("nesting is bounded, brackets in strings do not count") {
  CHECK(parsed(nested(kJsonDepthMax - 1)).params.is_array());
  check_refused(nested(kJsonDepthMax), ErrorCode::kParseError, {}, "nested deeper");
  check_refused(std::string(5'000'000, '['), ErrorCode::kParseError, {}, "nested deeper");
  const std::string brackets(1000, '[');
  CHECK(text_of(brackets + R"(\"[{\\)") == brackets + "\"[{\\");
}

TEST_CASE("the count of values is bounded") {
  std::string many = R"({"jsonrpc":"2.0","method":"m","params":[0)";
  for (std::size_t i = 0; i < kJsonValuesMax; ++i) many += ",0";
  check_refused(many + "]}", ErrorCode::kParseError, {}, "values");
}

TEST_CASE("bodies that are built are read back as they were meant") {
  const Message request = parsed(request_body(Id{std::string("x")}, "m", {{"a", 1}}));
  CHECK(request.kind == Message::Kind::kRequest);
  CHECK(request.id == Id{std::string("x")});
  CHECK(request.params == Json{{"a", 1}});
  CHECK(parsed(notification_body("m", nullptr)).params.is_null());
  const Message response = parsed(response_body(Id{std::int64_t{-3}}, Json::array({nullptr})));
  CHECK(response.id == Id{std::int64_t{-3}});
  CHECK(response.result == Json::array({nullptr}));
  const Message failure = parsed(error_body(Id{}, ErrorCode::kRequestCancelled, "no"));
  REQUIRE(failure.error);
  CHECK(failure.error->code == -32800);
}

TEST_CASE("a null result is written, for superseded requests are answered with it") {
  CHECK(Json::parse(response_body(Id{std::int64_t{1}}, nullptr)).contains("result"));
}

TEST_CASE("invalid UTF-8 in what is sent is written as U+FFFD") {
  CHECK(Json::parse(notification_body("m", {{"text", "a\xFF"}}))["params"]["text"] == "a\uFFFD");
}
