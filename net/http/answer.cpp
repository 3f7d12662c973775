#include "net/http/answer.h"

#include <algorithm>
#include <utility>

#include "net/http/forms.h"

namespace efimd::http {

using lsp::json_text;

namespace {

Told told_of(const CompletionRequest& request, const Completed& completed, std::string_view model) {
  Told told{request, completed, {}, {}, request.model.empty() ? std::string(model) : request.model};
  told.text = before_stops(completed.text, request.stops, told.stop);
  return told;
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

std::size_t sayable(std::string_view text, const std::vector<std::string>& stops) {
  std::string stop;
  std::size_t size = before_stops(text, stops, stop).size();
  if (!stop.empty()) return size;
  for (const std::string& each : stops)
    for (std::size_t begun = std::min(each.size() - 1, text.size()); begun > 0; --begun)
      if (text.ends_with(std::string_view(each).substr(0, begun)))
        size = std::min(size, text.size() - begun);
  return size;
}

const char* stream_type(Form form) {
  return form == Form::kOllama ? "application/x-ndjson" : "text/event-stream";
}

std::string stream_piece(const CompletionRequest& request, std::string_view text,
                         std::string_view model) {
  return piece_of(told_of(request, {}, model), text);
}

std::string stream_end(const CompletionRequest& request, const Completed& completed,
                       std::string_view said, std::string_view model) {
  Told told = told_of(request, completed, model);
  std::string rest;
  if (told.text.size() > said.size() && told.text.starts_with(said))
    rest = piece_of(told, std::string_view(told.text).substr(said.size()));
  return rest + end_of(told);
}

std::string stream_error(std::string_view message, unsigned status, Form form) {
  const std::string body = refusal(status, message, form).body;
  return form == Form::kOllama ? body + "\n" : "data: " + body + "\n\n";
}

Answer answer_of(const CompletionRequest& request, const Completed& completed,
                 std::string_view model) {
  if (request.stream)
    return {200, stream_type(request.form), stream_end(request, completed, {}, model),
            request.ignored};
  return {200, Answer().type, whole_of(told_of(request, completed, model)), request.ignored};
}

Answer refusal(unsigned status, std::string_view message, std::optional<Form> form) {
  if (form == Form::kOllama) return {status, Answer().type, json_text({{"error", message}})};
  return {status, Answer().type,
          json_text(
              {{"error", {{"code", status}, {"message", message}, {"type", error_type(status)}}}})};
}

}  // namespace efimd::http
