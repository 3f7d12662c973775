#include "net/http/answer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <utility>

namespace efimd::http {

using lsp::Json;
using lsp::json_text;

namespace {

/// Numbers of a receipt, 0 where there is none.
double number(const Json& receipt, const char* name) {
  if (!receipt.is_object()) return 0;
  const auto found = receipt.find(name);
  return found != receipt.end() && found->is_number() ? found->get<double>() : 0;
}
std::int64_t count(const Json& receipt, const char* name) {
  return std::llround(number(receipt, name));
}
double per_second(std::int64_t tokens, double ms) {
  return ms > 0 ? static_cast<double>(tokens) * 1000 / ms : 0;
}
double per_token(std::int64_t tokens, double ms) {
  return tokens > 0 ? ms / static_cast<double>(tokens) : 0;
}

/// A request's answer before it has a form.
struct Told {
  const CompletionRequest& request;
  const Completed& completed;
  std::string text;
  std::string stop;  ///< of the request's, that ended the text
  std::string model;
  std::int64_t created_s;

  std::int64_t prompt() const { return count(completed.receipt, "promptTokens"); }
  std::int64_t cached() const { return count(completed.receipt, "reusedTokens"); }
  std::int64_t evaluated() const { return count(completed.receipt, "evaluatedTokens"); }
  std::int64_t generated() const { return count(completed.receipt, "generatedTokens"); }
  double prompt_ms() const {
    return std::max(
        0.0, number(completed.receipt, "firstTokenMs") - number(completed.receipt, "queueMs"));
  }
  double generation_ms() const {
    return std::max(
        0.0, number(completed.receipt, "totalMs") - number(completed.receipt, "firstTokenMs"));
  }
  bool at_limit() const {
    return request.tokens_max && *request.tokens_max > 0 && generated() >= *request.tokens_max;
  }
  const char* finish() const { return stop.empty() && at_limit() ? "length" : "stop"; }
};

Json timings(const Told& told) {
  const double prompt_ms = told.prompt_ms(), ms = told.generation_ms();
  return {{"cache_n", told.cached()},
          {"prompt_n", told.evaluated()},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", per_token(told.evaluated(), prompt_ms)},
          {"prompt_per_second", per_second(told.evaluated(), prompt_ms)},
          {"predicted_n", told.generated()},
          {"predicted_ms", ms},
          {"predicted_per_token_ms", per_token(told.generated(), ms)},
          {"predicted_per_second", per_second(told.generated(), ms)}};
}

Json llama_object(const Told& told, std::string_view content) {
  const CompletionRequest& request = told.request;
  return {{"index", 0},
          {"content", content},
          {"tokens", Json::array()},
          {"id_slot", 0},
          {"stop", true},
          {"model", told.model},
          {"tokens_predicted", told.generated()},
          {"tokens_evaluated", told.prompt()},
          {"generation_settings",
           {{"n_predict", request.tokens_max.value_or(-1)},
            {"temperature", request.temperature.value_or(0)},
            {"stop", request.stops},
            {"stream", request.stream}}},
          {"prompt", ""},
          {"has_new_line", told.text.find('\n') != std::string::npos},
          {"truncated", false},
          {"stop_type", !told.stop.empty() ? "word"
                        : told.at_limit()  ? "limit"
                                           : "eos"},
          {"stopping_word", told.stop},
          {"tokens_cached", told.prompt() + told.generated()},
          {"timings", timings(told)},
          {"efim", told.completed.receipt}};
}

/// response_fields: a flat object, keyed by the paths that were asked for.
Json picked(const Json& whole, const std::vector<std::string>& paths) {
  Json flat = Json::object();
  for (const std::string& path : paths) {
    const Json* value = &whole;
    std::size_t at = 0;
    while (value != nullptr && at <= path.size()) {
      const std::size_t slash = std::min(path.find('/', at), path.size());
      const auto found =
          value->is_object() ? value->find(path.substr(at, slash - at)) : value->end();
      value = value->is_object() && found != value->end() ? &*found : nullptr;
      at = slash + 1;
    }
    if (value != nullptr) flat[path] = *value;
  }
  return flat;
}

std::string event(const Json& data) { return "data: " + json_text(data) + "\n\n"; }

Answer llama_answer(const Told& told) {
  if (!told.request.stream) {
    const Json whole = llama_object(told, told.text);
    return {200, Answer().type,
            json_text(told.request.fields ? picked(whole, *told.request.fields) : whole)};
  }
  std::string body;
  if (!told.text.empty())
    body += event({{"index", 0},
                   {"content", told.text},
                   {"tokens", Json::array()},
                   {"stop", false},
                   {"id_slot", 0},
                   {"tokens_predicted", told.generated()},
                   {"tokens_evaluated", told.prompt()}});
  return {200, "text/event-stream", body + event(llama_object(told, ""))};
}

Json usage(const Told& told) {
  return {{"completion_tokens", told.generated()},
          {"prompt_tokens", told.prompt()},
          {"total_tokens", told.prompt() + told.generated()},
          {"prompt_tokens_details", {{"cached_tokens", told.cached()}}}};
}

/// `choice`: what differs between the forms; the last chunk of a stream and a whole answer say what
/// it cost.
Json open_ai_object(const Told& told, const char* kind, Json choice, bool last) {
  choice["index"] = 0;
  choice["logprobs"] = nullptr;
  Json object = {{"choices", Json::array({std::move(choice)})},
                 {"created", told.created_s},
                 {"model", told.model},
                 {"system_fingerprint", "efimd"},
                 {"object", kind},
                 {"id", "cmpl-efimd-" + std::to_string(told.created_s)}};
  if (last) {
    object["usage"] = usage(told);
    object["timings"] = timings(told);
    object["efim"] = told.completed.receipt;
  }
  return object;
}

Answer open_ai_answer(const Told& told) {
  constexpr const char* kKind = "text_completion";
  if (!told.request.stream)
    return {200, Answer().type,
            json_text(open_ai_object(
                told, kKind, {{"text", told.text}, {"finish_reason", told.finish()}}, true))};
  std::string body;
  if (!told.text.empty())
    body += event(
        open_ai_object(told, kKind, {{"text", told.text}, {"finish_reason", nullptr}}, false));
  body +=
      event(open_ai_object(told, kKind, {{"text", ""}, {"finish_reason", told.finish()}}, true));
  return {200, "text/event-stream", body + "data: [DONE]\n\n"};
}

/// Mistral's form of the same: a message, or pieces of one.
Answer mistral_answer(const Told& told) {
  if (!told.request.stream)
    return {200, Answer().type,
            json_text(open_ai_object(told, "chat.completion",
                                     {{"message", {{"role", "assistant"}, {"content", told.text}}},
                                      {"finish_reason", told.finish()}},
                                     true))};
  constexpr const char* kKind = "chat.completion.chunk";
  std::string body;
  if (!told.text.empty())
    body += event(open_ai_object(
        told, kKind,
        {{"delta", {{"role", "assistant"}, {"content", told.text}}}, {"finish_reason", nullptr}},
        false));
  body += event(open_ai_object(
      told, kKind, {{"delta", {{"content", ""}}}, {"finish_reason", told.finish()}}, true));
  return {200, "text/event-stream", body + "data: [DONE]\n\n"};
}

Json ollama_object(const Told& told, std::string_view text, bool done) {
  Json object = {{"model", told.model},
                 {"created_at", timestamp(told.created_s)},
                 {"response", text},
                 {"done", done}};
  if (!done) return object;
  const auto ns = [](double ms) { return std::llround(ms * 1e6); };
  object["done_reason"] = told.finish();
  object["context"] = Json::array();
  object["total_duration"] = ns(told.completed.total_ms);
  object["load_duration"] = 0;
  object["prompt_eval_count"] = told.prompt();
  object["prompt_eval_duration"] = ns(told.prompt_ms());
  object["eval_count"] = told.generated();
  object["eval_duration"] = ns(told.generation_ms());
  object["efim"] = told.completed.receipt;
  return object;
}

Answer ollama_answer(const Told& told) {
  if (!told.request.stream)
    return {200, Answer().type, json_text(ollama_object(told, told.text, true))};
  std::string body;
  if (!told.text.empty()) body += json_text(ollama_object(told, told.text, false)) + "\n";
  return {200, "application/x-ndjson", body + json_text(ollama_object(told, "", true)) + "\n"};
}

Answer formed(const Told& told) {
  switch (told.request.form) {
    case Form::kInfill:
    case Form::kLlama:
      return llama_answer(told);
    case Form::kOpenAi:
      return open_ai_answer(told);
    case Form::kMistral:
      return mistral_answer(told);
    case Form::kOllama:
      return ollama_answer(told);
  }
  return llama_answer(told);
}

const char* error_type(unsigned status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 501:
      return "not_supported_error";
    case 503:
    case 504:
      return "unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

/// Where `text` closes a bracket that it did not open: from there on it repeats what stands behind
/// the cursor. Its size if it closes none.
std::size_t first_unopened(std::string_view text) {
  int depth = 0;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == '\\') ++at;
      if (c == quote || c == '\n') quote = 0;
    } else if (c == '"' || c == '\'' || c == '`') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if ((c == ')' || c == ']' || c == '}') && --depth < 0) {
      return at;
    }
  }
  return text.size();
}

}  // namespace

std::string insertable(std::string_view text, std::string_view covered) {
  if (covered.empty()) return std::string(text);
  if (text.ends_with(covered)) return std::string(text.substr(0, text.size() - covered.size()));
  std::size_t end = first_unopened(text);
  if (end == text.size()) end = std::min(text.find(covered.front()), text.size());
  return std::string(text.substr(0, end));
}

std::string_view before_stops(std::string_view text, const std::vector<std::string>& stops,
                              std::string& stop) {
  std::size_t end = text.size();
  for (const std::string& each : stops) {
    const std::size_t at = text.find(each);
    if (at >= end) continue;
    end = at;
    stop = each;
  }
  return text.substr(0, end);
}

Answer answer_of(const CompletionRequest& request, const Completed& completed,
                 std::string_view model, std::int64_t created_s) {
  Told told{request,  completed, {}, {}, request.model.empty() ? std::string(model) : request.model,
            created_s};
  told.text = before_stops(completed.text, request.stops, told.stop);
  Answer answer = formed(told);
  answer.ignored = request.ignored;
  return answer;
}

Answer refusal(unsigned status, std::string_view message, std::optional<Form> form) {
  if (form == Form::kOllama) return {status, Answer().type, json_text({{"error", message}})};
  return {status, Answer().type,
          json_text(
              {{"error", {{"code", status}, {"message", message}, {"type", error_type(status)}}}})};
}

std::string timestamp(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

}  // namespace efimd::http
