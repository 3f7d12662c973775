#include "net/http/routes.h"

#include <array>

namespace efimd::http {

namespace {

using What = Route::What;

constexpr auto kRoutes = std::to_array<Route>({
    // llama-server
    {"POST", "/infill", What::kCompletion, Form::kInfill},
    {"POST", "/completion", What::kCompletion, Form::kLlama},
    {"POST", "/completions", What::kCompletion, Form::kLlama},
    {"GET", "/health", What::kHealth, Form::kLlama},
    {"GET", "/v1/health", What::kHealth, Form::kLlama},
    {"GET", "/props", What::kProps, Form::kLlama},
    {"GET", "/models", What::kModels, Form::kLlama},
    // OpenAI, and Mistral's fill-in-the-middle
    {"POST", "/v1/completions", What::kCompletion, Form::kOpenAi},
    {"GET", "/v1/models", What::kModels, Form::kOpenAi},
    {"POST", "/v1/fim/completions", What::kCompletion, Form::kMistral},
    {"POST", "/fim/completions", What::kCompletion, Form::kMistral},
    // Ollama
    {"POST", "/api/generate", What::kCompletion, Form::kOllama},
    {"GET", "/api/tags", What::kTags, Form::kOllama},
    {"POST", "/api/show", What::kShow, Form::kOllama},
    {"GET", "/api/version", What::kVersion, Form::kOllama},
    {"GET", "/", What::kNothing, Form::kOllama},
});

}  // namespace

Routed route_of(std::string_view method, std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  Routed routed;
  for (const Route& route : kRoutes) {
    if (route.path != path) continue;
    if (route.method == wanted) return {&route, 200};
    routed = {nullptr, 405, route.method == "GET" ? "GET, HEAD" : route.method};
  }
  return routed;
}

Form form_of_errors(std::string_view target) {
  return target.starts_with("/api/") ? Form::kOllama : Form::kLlama;
}

}  // namespace efimd::http
