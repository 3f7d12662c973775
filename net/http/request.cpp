#include "net/http/request.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <utility>

#include "daemon/text/document.h"
#include "lsp/protocol.h"

namespace efimd::http {

using lsp::Json;

namespace {

/// A field that is left aside, unless it says what efimd does anyhow.
struct Unheard {
  enum class If { kSet, kMoreThanOne, kSampling };
  const char* name;
  If when;
};
constexpr auto kUnheard = std::to_array<Unheard>({
    {"input_extra", Unheard::If::kSet},
    {"grammar", Unheard::If::kSet},
    {"json_schema", Unheard::If::kSet},
    {"response_format", Unheard::If::kSet},
    {"format", Unheard::If::kSet},
    {"logit_bias", Unheard::If::kSet},
    {"logprobs", Unheard::If::kSet},
    {"n_probs", Unheard::If::kSet},
    {"echo", Unheard::If::kSet},
    {"images", Unheard::If::kSet},
    {"image_data", Unheard::If::kSet},
    {"system", Unheard::If::kSet},
    {"template", Unheard::If::kSet},
    {"context", Unheard::If::kSet},
    {"lora", Unheard::If::kSet},
    {"n", Unheard::If::kMoreThanOne},
    {"n_cmpl", Unheard::If::kMoreThanOne},
    {"best_of", Unheard::If::kMoreThanOne},
    {"seed", Unheard::If::kSampling},
    {"top_k", Unheard::If::kSampling},
    {"top_p", Unheard::If::kSampling},
    {"min_p", Unheard::If::kSampling},
    {"typical_p", Unheard::If::kSampling},
    {"mirostat", Unheard::If::kSampling},
    {"repeat_penalty", Unheard::If::kSampling},
    {"presence_penalty", Unheard::If::kSampling},
    {"frequency_penalty", Unheard::If::kSampling},
});

bool is_nothing(const Json& value) {
  return value.is_null() || value == false || value == 0 || value == "" ||
         ((value.is_array() || value.is_object()) && value.empty());
}

tl::unexpected<Error> wrong(const std::string& field, const std::string& wanted) {
  return fail(Fault::kBadInput, "\"" + field + "\" must be " + wanted);
}

/// Reads the fields of one object; the first that is wrong makes all further reading vain.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string text(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return {};
    if (value->is_string()) return value->get<std::string>();
    error_ = wrong(name, "a string").value();
    return {};
  }
  std::string required(const char* name) {
    if (find(name) == nullptr)
      error_ = Error{Fault::kBadInput, "\"" + std::string(name) + "\" is required", ""};
    return text(name);
  }
  bool flag(const char* name, bool otherwise) {
    const Json* value = find(name);
    if (value == nullptr) return otherwise;
    if (value->is_boolean()) return value->get<bool>();
    error_ = wrong(name, "true or false").value();
    return otherwise;
  }
  std::optional<double> number(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
    error_ = wrong(name, "a number").value();
    return std::nullopt;
  }
  /// A string, or several.
  std::vector<std::string> texts(const char* name, std::size_t most, std::size_t bytes_most) {
    const Json* value = find(name);
    if (value == nullptr) return {};
    const Json list = value->is_array() ? *value : Json::array({*value});
    std::vector<std::string> found;
    for (const Json& each : list) {
      if (!each.is_string() || list.size() > most ||
          each.get_ref<const std::string&>().size() > bytes_most) {
        error_ = wrong(name, "at most " + std::to_string(most) + " strings of at most " +
                                 std::to_string(bytes_most) + " bytes")
                     .value();
        return {};
      }
      if (!each.get_ref<const std::string&>().empty()) found.push_back(each);
    }
    return found;
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const Json& object_;
  std::optional<Error> error_;
};

/// "prompt": a string, or an array with one.
std::string prompt_of(Fields& fields) {
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr || prompt->is_string()) return fields.required("prompt");
  const auto texts = fields.texts("prompt", 1, Documents::kTextBytesMax);
  return texts.empty() ? std::string() : texts.front();
}

/// From what a client calls the prompt and what follows it.
Surroundings framed_text(std::string prompt, std::string suffix, CompletionRequest& request,
                         const std::optional<FimMarks>& model) {
  if (suffix.empty())
    if (auto split = split_fim(prompt, model)) {
      if (split->has_more) request.ignored.emplace_back("prompt (text of other files)");
      return {std::move(split->before), std::move(split->after), std::move(split->path)};
    }
  return {std::move(prompt), std::move(suffix), {}};
}

void note_ignored(const Json& object, bool sampling, CompletionRequest& request) {
  for (const Unheard& each : kUnheard) {
    const auto found = object.find(each.name);
    if (found == object.end() || is_nothing(*found)) continue;
    const bool heard = (each.when == Unheard::If::kMoreThanOne && *found == 1) ||
                       (each.when == Unheard::If::kSampling && !sampling);
    if (!heard) request.ignored.emplace_back(each.name);
  }
}

/// The most tokens. llama-server takes either name on each of its paths, its own first.
std::optional<double> most_tokens(Fields& fields, Form form) {
  if (form == Form::kOllama) return fields.number("num_predict");
  const auto own = fields.number("n_predict");
  return own ? own : fields.number("max_tokens");
}

/// What every form has, at the top level or under "options".
void take_options(Fields& fields, CompletionRequest& request) {
  if (const auto tokens = most_tokens(fields, request.form); tokens && *tokens >= 0)
    request.tokens_max =
        static_cast<int>(std::min(*tokens, static_cast<double>(lsp::kMaxTokensMax)));
  if (const auto temperature = fields.number("temperature"))
    request.temperature = std::clamp(*temperature, 0.0, lsp::kTemperatureMax);
  for (std::string& stop : fields.texts("stop", kStopsMax, kStopBytesMax))
    request.stops.push_back(std::move(stop));
}

Result<void> take_text(Fields& fields, CompletionRequest& request,
                       const std::optional<FimMarks>& model) {
  if (request.form == Form::kInfill) {
    request.text.before = fields.required("input_prefix");
    request.text.after = fields.required("input_suffix");
    request.text.before += fields.text("prompt");
  } else {
    std::string prompt = request.form == Form::kOllama ? fields.text("prompt") : prompt_of(fields);
    request.text = framed_text(std::move(prompt), fields.text("suffix"), request, model);
  }
  const std::size_t bytes = request.text.before.size() + request.text.after.size();
  if (bytes > Documents::kTextBytesMax)
    return fail(Fault::kBadInput,
                "the text around the cursor has " + std::to_string(bytes) + " bytes",
                "send at most " + std::to_string(Documents::kTextBytesMax));
  for (std::string* const text : {&request.text.before, &request.text.after})
    *text = text::document_text(std::move(*text));
  return {};
}

void name_answer(CompletionRequest& request) {
  using namespace std::chrono;
  const auto now = system_clock::now().time_since_epoch();
  static std::atomic<std::int64_t> last = duration_cast<microseconds>(now).count();
  request.created_s = duration_cast<seconds>(now).count();
  request.id = "cmpl-efimd-" + std::to_string(++last);
}

}  // namespace

Result<CompletionRequest> completion_request(Form form, std::string_view body,
                                             const std::optional<FimMarks>& model) {
  const auto parsed = lsp::parse_json(body);
  if (!parsed) return tl::unexpected(parsed.error());
  if (!parsed->is_object()) return fail(Fault::kBadInput, "the body must be a JSON object");
  CompletionRequest request;
  request.form = form;
  name_answer(request);
  Fields fields(*parsed);
  if (auto taken = take_text(fields, request, model); !taken) return tl::unexpected(taken.error());
  // Ollama streams unless it is told otherwise.
  request.stream = fields.flag("stream", form == Form::kOllama);
  request.model = fields.text("model").substr(0, kModelBytesMax);
  if (fields.find("response_fields") != nullptr)
    request.fields = fields.texts("response_fields", kFieldsMax, kStopBytesMax);
  const Json* options = form == Form::kOllama ? fields.find("options") : &*parsed;
  if (options != nullptr && !options->is_object()) return wrong("options", "an object");
  const Json& settings = options == nullptr ? Json::object() : *options;
  Fields inner(settings);
  take_options(inner, request);
  const bool sampling = request.temperature.value_or(0) > 0;
  note_ignored(*parsed, sampling, request);
  if (form == Form::kOllama) note_ignored(settings, sampling, request);
  for (const Fields* each : {&fields, &inner})
    if (each->error()) return tl::unexpected(*each->error());
  return request;
}

}  // namespace efimd::http
