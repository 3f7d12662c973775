#include "net/http/forms.h"

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

std::int64_t prompt(const Told& told) { return count(told.completed.receipt, "promptTokens"); }
std::int64_t cached(const Told& told) { return count(told.completed.receipt, "reusedTokens"); }
std::int64_t evaluated(const Told& told) {
  return count(told.completed.receipt, "evaluatedTokens");
}
std::int64_t generated(const Told& told) {
  return count(told.completed.receipt, "generatedTokens");
}
double prompt_ms(const Told& told) {
  return std::max(0.0, number(told.completed.receipt, "firstTokenMs") -
                           number(told.completed.receipt, "queueMs"));
}
double generation_ms(const Told& told) {
  return std::max(0.0, number(told.completed.receipt, "totalMs") -
                           number(told.completed.receipt, "firstTokenMs"));
}
bool at_limit(const Told& told) {
  const auto& most = told.request.tokens_max;
  return most && *most > 0 && generated(told) >= *most;
}
const char* finish(const Told& told) {
  return told.stop.empty() && at_limit(told) ? "length" : "stop";
}

Json timings(const Told& told) {
  const double before_ms = prompt_ms(told), ms = generation_ms(told);
  return {{"cache_n", cached(told)},
          {"prompt_n", evaluated(told)},
          {"prompt_ms", before_ms},
          {"prompt_per_token_ms", per_token(evaluated(told), before_ms)},
          {"prompt_per_second", per_second(evaluated(told), before_ms)},
          {"predicted_n", generated(told)},
          {"predicted_ms", ms},
          {"predicted_per_token_ms", per_token(generated(told), ms)},
          {"predicted_per_second", per_second(generated(told), ms)}};
}

Json llama_object(const Told& told, std::string_view content) {
  const CompletionRequest& request = told.request;
  return {{"index", 0},
          {"content", content},
          {"tokens", Json::array()},
          {"id_slot", 0},
          {"stop", true},
          {"model", told.model},
          {"tokens_predicted", generated(told)},
          {"tokens_evaluated", prompt(told)},
          {"generation_settings",
           {{"n_predict", request.tokens_max.value_or(-1)},
            {"temperature", request.temperature.value_or(0)},
            {"stop", request.stops},
            {"stream", request.stream}}},
          {"prompt", ""},
          {"has_new_line", told.text.find('\n') != std::string::npos},
          {"truncated", false},
          {"stop_type", !told.stop.empty() ? "word"
                        : at_limit(told)   ? "limit"
                                           : "eos"},
          {"stopping_word", told.stop},
          {"tokens_cached", prompt(told) + generated(told)},
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

std::string llama_piece(const Told& told, std::string_view text) {
  return event({{"index", 0},
                {"content", text},
                {"tokens", Json::array()},
                {"stop", false},
                {"id_slot", 0},
                {"tokens_predicted", generated(told)},
                {"tokens_evaluated", prompt(told)}});
}

std::string llama_whole(const Told& told) {
  const Json whole = llama_object(told, told.text);
  return json_text(told.request.fields ? picked(whole, *told.request.fields) : whole);
}

Json usage(const Told& told) {
  return {{"completion_tokens", generated(told)},
          {"prompt_tokens", prompt(told)},
          {"total_tokens", prompt(told) + generated(told)},
          {"prompt_tokens_details", {{"cached_tokens", cached(told)}}}};
}

/// `choice`: what differs between the forms; the last chunk of a stream and a whole answer say what
/// it cost.
Json open_ai_object(const Told& told, const char* kind, Json choice, bool last) {
  choice["index"] = 0;
  choice["logprobs"] = nullptr;
  Json object = {{"choices", Json::array({std::move(choice)})},
                 {"created", told.request.created_s},
                 {"model", told.model},
                 {"system_fingerprint", "efimd"},
                 {"object", kind},
                 {"id", told.request.id}};
  if (last) {
    object["usage"] = usage(told);
    object["timings"] = timings(told);
    object["efim"] = told.completed.receipt;
  }
  return object;
}

constexpr char kText[] = "text_completion";

std::string open_ai_piece(const Told& told, std::string_view text) {
  return event(open_ai_object(told, kText, {{"text", text}, {"finish_reason", nullptr}}, false));
}

std::string open_ai_end(const Told& told) {
  return event(open_ai_object(told, kText, {{"text", ""}, {"finish_reason", finish(told)}}, true)) +
         "data: [DONE]\n\n";
}

std::string open_ai_whole(const Told& told) {
  return json_text(
      open_ai_object(told, kText, {{"text", told.text}, {"finish_reason", finish(told)}}, true));
}

/// Mistral's form of the same: a message, or pieces of one.
constexpr char kMessageChunk[] = "chat.completion.chunk";

std::string mistral_piece(const Told& told, std::string_view text) {
  return event(open_ai_object(
      told, kMessageChunk,
      {{"delta", {{"role", "assistant"}, {"content", text}}}, {"finish_reason", nullptr}}, false));
}

std::string mistral_end(const Told& told) {
  return event(open_ai_object(told, kMessageChunk,
                              {{"delta", {{"content", ""}}}, {"finish_reason", finish(told)}},
                              true)) +
         "data: [DONE]\n\n";
}

std::string mistral_whole(const Told& told) {
  return json_text(open_ai_object(told, "chat.completion",
                                  {{"message", {{"role", "assistant"}, {"content", told.text}}},
                                   {"finish_reason", finish(told)}},
                                  true));
}

Json ollama_object(const Told& told, std::string_view text, bool done) {
  Json object = {{"model", told.model},
                 {"created_at", timestamp(told.request.created_s)},
                 {"response", text},
                 {"done", done}};
  if (!done) return object;
  const auto ns = [](double ms) { return std::llround(ms * 1e6); };
  object["done_reason"] = told.request.text.is_empty() ? "load" : finish(told);
  object["context"] = Json::array();
  object["total_duration"] = ns(told.completed.total_ms);
  object["load_duration"] = 0;
  object["prompt_eval_count"] = prompt(told);
  object["prompt_eval_duration"] = ns(prompt_ms(told));
  object["eval_count"] = generated(told);
  object["eval_duration"] = ns(generation_ms(told));
  object["efim"] = told.completed.receipt;
  return object;
}

std::string ollama_line(const Told& told, std::string_view text, bool done) {
  return json_text(ollama_object(told, text, done)) + "\n";
}

}  // namespace

std::string piece_of(const Told& told, std::string_view text) {
  switch (told.request.form) {
    case Form::kInfill:
    case Form::kLlama:
      break;
    case Form::kOpenAi:
      return open_ai_piece(told, text);
    case Form::kMistral:
      return mistral_piece(told, text);
    case Form::kOllama:
      return ollama_line(told, text, false);
  }
  return llama_piece(told, text);
}

std::string end_of(const Told& told) {
  switch (told.request.form) {
    case Form::kInfill:
    case Form::kLlama:
      break;
    case Form::kOpenAi:
      return open_ai_end(told);
    case Form::kMistral:
      return mistral_end(told);
    case Form::kOllama:
      return ollama_line(told, "", true);
  }
  return event(llama_object(told, ""));
}

std::string whole_of(const Told& told) {
  switch (told.request.form) {
    case Form::kInfill:
    case Form::kLlama:
      break;
    case Form::kOpenAi:
      return open_ai_whole(told);
    case Form::kMistral:
      return mistral_whole(told);
    case Form::kOllama:
      return json_text(ollama_object(told, told.text, true));
  }
  return llama_whole(told);
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
