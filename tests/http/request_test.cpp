#include "net/http/request.h"

#include <catch2/catch.hpp>

#include "net/http/routes.h"

using namespace efimd;
using namespace efimd::http;

namespace {

const FimMarks kOurs{"<P>", "<S>", "<M>", "<F>"};

CompletionRequest read(Form form, const std::string& body) {
  auto request = completion_request(form, body, kOurs);
  INFO(body);
  if (!request) FAIL(request.error().message());
  return *request;
}
std::string refused(Form form, const std::string& body) {
  const auto request = completion_request(form, body, std::nullopt);
  return request ? "" : request.error().what;
}
/// The texts around the cursor, with "^" for it.
std::string split(const std::string& prompt) {
  const auto parts = split_fim(prompt, kOurs);
  return parts ? parts->before + "^" + parts->after : "none";
}

}  // namespace

TEST_CASE("the text has the line ends of a document") {
  const auto request =
      read(Form::kInfill, R"({"input_prefix": "a\r\n", "prompt": "b", "input_suffix": "\r\nc"})");
  CHECK(request.text.before == "a\nb");
  CHECK(request.text.after == "\nc");
}

TEST_CASE("/infill as llama.vim sends it") {
  const auto request = read(Form::kInfill, R"({
    "id_slot": 0, "input_prefix": "int main() {\n", "input_suffix": ";\n}\n", "input_extra": [],
    "prompt": "  return 1", "n_predict": 128, "stop": [], "n_indent": 2, "top_k": 40, "top_p": 0.90,
    "samplers": ["top_k", "top_p", "infill"], "stream": false, "cache_prompt": true,
    "t_max_prompt_ms": 500, "t_max_predict_ms": 250,
    "response_fields": ["content", "timings/prompt_n"], "model": ""})");
  CHECK(request.text.before == "int main() {\n  return 1");
  CHECK(request.text.after == ";\n}\n");
  CHECK(request.tokens_max == 128);
  CHECK_FALSE(request.temperature);
  CHECK_FALSE(request.stream);
  CHECK(request.ignored.empty());
  CHECK(request.fields == std::vector<std::string>{"content", "timings/prompt_n"});
}

TEST_CASE("/infill as llama.vscode sends it; what is not honoured is named") {
  const auto request = read(Form::kInfill, R"({
    "input_prefix": "a", "input_suffix": "b", "input_extra": [{"text": "t", "filename": "f"}],
    "prompt": "", "n_predict": 0, "n_cmpl": 3, "top_k": 40, "top_p": 0.99, "lora": [{"id": 0, "scale": 0.5}]})");
  CHECK(request.tokens_max == 0);
  CHECK(request.ignored == std::vector<std::string>{"input_extra", "lora", "n_cmpl"});
}

TEST_CASE("the most tokens go by either of llama-server's names, as Twinny's do") {
  for (const Form form : {Form::kInfill, Form::kLlama, Form::kOpenAi, Form::kMistral}) {
    const std::string text = R"({"prompt": "a", "input_prefix": "", "input_suffix": "", )";
    CHECK(read(form, text + R"("max_tokens": 512})").tokens_max == 512);
    CHECK(read(form, text + R"("n_predict": 7})").tokens_max == 7);
    CHECK(read(form, text + R"("n_predict": 7, "max_tokens": 512})").tokens_max == 7);
    CHECK(refused(form, text + R"("max_tokens": "many"})") == "\"max_tokens\" must be a number");
  }
}

TEST_CASE("samplers count as ignored only if something is sampled") {
  CHECK(read(Form::kLlama, R"({"prompt": "a", "top_k": 40, "seed": 3, "temperature": 0})")
            .ignored.empty());
  CHECK(read(Form::kLlama, R"({"prompt": "a", "top_k": 40, "seed": 3, "temperature": 0.2})")
            .ignored == std::vector<std::string>{"seed", "top_k"});
}

TEST_CASE("/v1/completions with a suffix, and with a prompt that is framed already") {
  const auto plain = read(Form::kOpenAi, R"({"model": "m", "prompt": ["int a"], "suffix": ";\n",
    "max_tokens": 32, "stop": "\n\n", "stream": true, "n": 1, "echo": false, "temperature": 0.5})");
  CHECK(plain.text.before == "int a");
  CHECK(plain.text.after == ";\n");
  CHECK(plain.stops == std::vector<std::string>{"\n\n"});
  CHECK(plain.temperature == 0.5);
  CHECK(plain.stream);
  CHECK(plain.ignored.empty());
  const auto framed =
      read(Form::kOpenAi, R"({"prompt": "<|fim_prefix|>int a<|fim_suffix|>;\n<|fim_middle|>"})");
  CHECK(framed.text.before == "int a");
  CHECK(framed.text.after == ";\n");
}

TEST_CASE("/api/generate streams unless it is told not to, and has its settings under options") {
  const auto request = read(Form::kOllama, R"({"model": "x:y", "prompt": "a", "suffix": "b",
    "keep_alive": 1800, "options": {"num_predict": 16, "stop": ["<EOT>"], "temperature": 0.2}})");
  CHECK(request.stream);
  CHECK(request.tokens_max == 16);
  CHECK(request.stops == std::vector<std::string>{"<EOT>"});
  CHECK(request.model == "x:y");
  CHECK_FALSE(read(Form::kOllama, R"({"stream": false})").stream);
}

TEST_CASE("what is broken is refused by name") {
  CHECK(refused(Form::kInfill, R"({"input_suffix": ""})").find("input_prefix") !=
        std::string::npos);
  CHECK(refused(Form::kInfill, R"({"input_prefix": ""})").find("input_suffix") !=
        std::string::npos);
  CHECK(refused(Form::kLlama, R"({"prompt": [1, 2, 3]})").find("prompt") != std::string::npos);
  CHECK(refused(Form::kLlama, R"({"prompt": "a", "stop": [1]})").find("stop") != std::string::npos);
  CHECK(refused(Form::kLlama, R"({"prompt": "a", "stream": "yes"})").find("stream") !=
        std::string::npos);
  CHECK(refused(Form::kLlama, R"({"prompt": "a", "n_predict": "1"})").find("n_predict") !=
        std::string::npos);
  CHECK(refused(Form::kOllama, R"({"prompt": "a", "options": 3})").find("options") !=
        std::string::npos);
  CHECK_FALSE(refused(Form::kLlama, "[]").empty());
  CHECK_FALSE(refused(Form::kLlama, "{").empty());
  CHECK_FALSE(refused(Form::kOpenAi, "{}").empty());
  const std::string long_text(Documents::kTextBytesMax + 1, 'a');
  CHECK_FALSE(refused(Form::kLlama, R"({"prompt": ")" + long_text + "\"}").empty());
}

TEST_CASE("numbers beyond all bounds are bounded") {
  CHECK(read(Form::kLlama, R"({"prompt": "a", "n_predict": 1e300})").tokens_max == 4096);
  CHECK_FALSE(read(Form::kLlama, R"({"prompt": "a", "n_predict": -1})").tokens_max);
  CHECK(read(Form::kLlama, R"({"prompt": "a", "temperature": -5})").temperature == 0.0);
}

TEST_CASE("a frame is taken off in each order that models have") {
  CHECK(split("<P>before<S>after<M>") == "before^after");
  CHECK(split("<P>before<S>after<M> more") == "before more^after");
  CHECK(split("<S>after<P>before<M>") == "before^after");
  CHECK(split("<P><S>after<M>before") == "before^after");
  CHECK(split("<fim_prefix>b<fim_suffix>a<fim_middle>") == "b^a");
  CHECK(split("<｜fim▁begin｜>b<｜fim▁hole｜>a<｜fim▁end｜>") == "b^a");
  CHECK(split("[SUFFIX]a[PREFIX]b") == "b^a");
  CHECK(split("<PRE> b <SUF>a <MID>") == "b^a");
  CHECK(split("no frame") == "none");
  CHECK(split("<P>no middle<S>") == "none");
  CHECK(split("<M><S><P>") == "none");
}

TEST_CASE("the model's own marks come before those of other models, which may be text") {
  CHECK(split("<P>x = \"<fim_prefix>\"<S>y<fim_suffix><fim_middle><M>") ==
        "x = \"<fim_prefix>\"^y<fim_suffix><fim_middle>");
}

TEST_CASE("of other files only the path of this one is kept") {
  const auto named = split_fim("<F>src/a.cpp\n<P>b<S>a<M>", kOurs);
  REQUIRE(named);
  CHECK(named->path == "src/a.cpp");
  CHECK_FALSE(named->has_more);
  const auto more = split_fim("<F>o.cpp\nint other;\n<F>src/a.cpp\n<P>b<S>a<M>", kOurs);
  REQUIRE(more);
  CHECK(more->path == "src/a.cpp");
  CHECK(more->has_more);
  const auto request =
      read(Form::kLlama, R"({"prompt": "<F>o.cpp\nint other;\n<F>s/a.cpp\n<P>b<S>a<M>"})");
  CHECK(request.text.path == "s/a.cpp");
  CHECK(request.ignored.size() == 1);
}

TEST_CASE("each path has its method, and a query is passed over") {
  CHECK(route_of("POST", "/infill?x=1").route != nullptr);
  CHECK(route_of("HEAD", "/health").route != nullptr);
  CHECK(route_of("GET", "/infill").status == 405);
  CHECK(route_of("POST", "/nothing").status == 404);
  CHECK(route_of("OPTIONS", "/infill").status == 405);
}
