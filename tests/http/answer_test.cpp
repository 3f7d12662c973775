#include "net/http/answer.h"

#include <catch2/catch.hpp>

#include "net/http/model_pages.h"
#include "tests/support/json_of.h"

using namespace efimd;
using namespace efimd::http;
using lsp::Json;

namespace {

const Json kReceipt =
    test::json_of(R"({"promptTokens": 100, "reusedTokens": 98, "evaluatedTokens": 2,
  "generatedTokens": 5, "queueMs": 1.0, "firstTokenMs": 11.0, "totalMs": 31.0})");

Answer answered(CompletionRequest request, const std::string& text = "x + 1;") {
  request.created_s = 1'000'000'000;
  return answer_of(request, {text, kReceipt, 40}, "the model");
}
Json body_of(const Answer& answer) { return test::json_of(answer.body); }
/// The data of each event of a stream; "[DONE]" as a string.
std::vector<Json> events(const std::string& body) {
  std::vector<Json> found;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find("\n\n", at);
    REQUIRE(body.substr(at, 6) == "data: ");
    const std::string data = body.substr(at + 6, end - at - 6);
    found.push_back(data == "[DONE]" ? Json(data) : test::json_of(data));
    at = end + 2;
  }
  return found;
}

}  // namespace

TEST_CASE("llama-server's answer has its fields and timings") {
  CompletionRequest request;
  request.tokens_max = 5;
  const Json body = body_of(answered(request));
  CHECK(body["content"] == "x + 1;");
  CHECK(body["stop"] == true);
  CHECK(body["stop_type"] == "limit");
  CHECK(body["tokens_cached"] == 105);
  CHECK(body["tokens_evaluated"] == 100);
  CHECK(body["truncated"] == false);
  CHECK(body["timings"]["prompt_n"] == 2);
  CHECK(body["timings"]["cache_n"] == 98);
  CHECK(body["timings"]["prompt_ms"] == 10.0);
  CHECK(body["timings"]["predicted_ms"] == 20.0);
  CHECK(body["timings"]["predicted_per_second"] == 250.0);
  CHECK(body["efim"] == kReceipt);
}

TEST_CASE("response_fields make the answer flat, and unknown ones are left out") {
  CompletionRequest request;
  request.fields = {"content", "timings/prompt_n", "timings/no", "content/x", "nothing"};
  CHECK(body_of(answered(request)) == Json{{"content", "x + 1;"}, {"timings/prompt_n", 2}});
  request.fields = std::vector<std::string>{};
  CHECK(body_of(answered(request)) == Json::object());
}

TEST_CASE("a stream of llama-server's ends with stop, and has no [DONE]") {
  CompletionRequest request;
  request.form = Form::kLlama;
  request.stream = true;
  const Answer answer = answered(request);
  CHECK(answer.type == "text/event-stream");
  const auto chunks = events(answer.body);
  REQUIRE(chunks.size() == 2);
  CHECK(chunks[0]["content"] == "x + 1;");
  CHECK(chunks[0]["stop"] == false);
  CHECK(chunks[1]["content"] == "");
  CHECK(chunks[1]["stop"] == true);
}

TEST_CASE("OpenAI's answer, whole and as a stream") {
  CompletionRequest request;
  request.form = Form::kOpenAi;
  request.model = "as asked";
  const Json body = body_of(answered(request));
  CHECK(body["object"] == "text_completion");
  CHECK(body["model"] == "as asked");
  CHECK(body["choices"][0]["text"] == "x + 1;");
  CHECK(body["choices"][0]["finish_reason"] == "stop");
  CHECK(body["usage"]["prompt_tokens_details"]["cached_tokens"] == 98);
  CHECK(body.contains("id"));
  request.stream = true;
  const auto chunks = events(answered(request).body);
  REQUIRE(chunks.size() == 3);
  CHECK(chunks[0]["choices"][0]["text"] == "x + 1;");
  CHECK(chunks[0]["choices"][0]["finish_reason"].is_null());
  CHECK(chunks[1]["choices"][0]["finish_reason"] == "stop");
  CHECK(chunks[2] == "[DONE]");
  CHECK(events(answered(request, "").body).size() == 2);
}

TEST_CASE("all pieces of an answer have its id and time, and no other answer has that id") {
  const auto ask = [] {
    return *completion_request(Form::kOpenAi, R"({"prompt": "x = ", "stream": true})",
                               std::nullopt);
  };
  const CompletionRequest request = ask();
  std::vector<Json> all = events(stream_piece(request, "1", "the model") +
                                 stream_end(request, {"1;", kReceipt, 40}, "1", "the model"));
  REQUIRE(all.size() == 4);
  all.pop_back();  // [DONE]
  for (const Json& each : all) {
    CHECK(each["id"] == request.id);
    CHECK(each["created"] == request.created_s);
  }
  CHECK(request.created_s > 1'700'000'000);
  CHECK(ask().id != request.id);
}

TEST_CASE("Mistral's fill-in-the-middle has deltas") {
  CompletionRequest request;
  request.form = Form::kMistral;
  request.stream = true;
  CHECK(events(answered(request).body)[0]["choices"][0]["delta"]["content"] == "x + 1;");
}

TEST_CASE("Ollama's answer, whole and as lines") {
  CompletionRequest request;
  request.form = Form::kOllama;
  const Json body = body_of(answered(request));
  CHECK(body["response"] == "x + 1;");
  CHECK(body["done"] == true);
  CHECK(body["created_at"] == "2001-09-09T01:46:40Z");
  CHECK(body["eval_count"] == 5);
  CHECK(body["prompt_eval_duration"] == 10'000'000);
  request.stream = true;
  const Answer answer = answered(request);
  CHECK(answer.type == "application/x-ndjson");
  const std::size_t line = answer.body.find('\n');
  CHECK(test::json_of(answer.body.substr(0, line))["response"] == "x + 1;");
  CHECK(test::json_of(answer.body.substr(line + 1))["done"] == true);
}

TEST_CASE("the text ends before the first stop string") {
  CompletionRequest request;
  request.stops = {"1", "+"};
  const Json body = body_of(answered(request));
  CHECK(body["content"] == "x ");
  CHECK(body["stop_type"] == "word");
  CHECK(body["stopping_word"] == "+");
}

TEST_CASE("a client that can only insert gets no bracket twice") {
  CHECK(insertable("a, b)", ")") == "a, b");
  CHECK(insertable("a, b) {\n  c();\n}", ")") == "a, b");
  CHECK(insertable("g(a), b);", ")") == "g(a), b");
  CHECK(insertable("\")\", b);", ");") == "\")\", b");
  CHECK(insertable("whole", "") == "whole");
  CHECK(insertable("text\"", "\"") == "text");
}

TEST_CASE("errors have the form of whose request it was") {
  CHECK(
      body_of(refusal(503, "Loading model")) ==
      test::json_of(
          R"({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})"));
  CHECK(body_of(refusal(400, "bad", Form::kOllama)) == Json{{"error", "bad"}});
}

TEST_CASE("what a client asks of the model comes from the daemon's status") {
  const Json status = test::json_of(
      R"({"state": {"name": "ready"}, "model": {"name": "qwen", "path": "/no/file.gguf",
    "architecture": "qwen2", "parameters": 494032768, "fileType": "Q8_0", "windowTokens": 8192, "digest": "ab",
    "fim": {"prefix": "<P>", "suffix": "<S>", "middle": "<M>", "fileSeparator": "<F>"}}})");
  const ModelPages pages(status, 1'000'000'000);
  CHECK(pages.health().status == 200);
  CHECK(body_of(pages.health()) == Json{{"status", "ok"}});
  CHECK(body_of(pages.models())["data"][0]["id"] == "qwen");
  CHECK(body_of(pages.models())["models"][0]["details"]["parameter_size"] == "494.03M");
  CHECK(body_of(pages.props())["default_generation_settings"]["n_ctx"] == 8192);
  CHECK(body_of(pages.tags())["models"][0]["name"] == "qwen");
  CHECK(body_of(pages.show())["template"].get<std::string>().find(".Suffix") != std::string::npos);
  CHECK(body_of(pages.show())["model_info"]["qwen2.context_length"] == 8192);
  CHECK(pages.marks() == FimMarks{"<P>", "<S>", "<M>", "<F>"});
}

TEST_CASE("before a model is there, and after it failed, health says so") {
  CHECK(ModelPages().health().status == 503);
  CHECK_FALSE(ModelPages().marks());
  const ModelPages failed(test::json_of(R"({"state": {"name": "failed", "message": "no file"}})"));
  CHECK(failed.health().status == 500);
  CHECK(failed.health().body.find("no file") != std::string::npos);
}
