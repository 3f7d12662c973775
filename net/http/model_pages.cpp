#include "net/http/model_pages.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "daemon/config/version.h"
#include "net/http/forms.h"

namespace efimd::http {

using lsp::Json;
using lsp::json_text;

namespace {

/// `status["model"][name]` and its like; null where there is none.
const Json& at(const Json& status, const char* path) {
  static const Json kNull;
  const Json::json_pointer pointer(path);
  return status.is_object() && status.contains(pointer) ? status.at(pointer) : kNull;
}
std::string text(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }
std::int64_t integer(const Json& value) {
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

/// "494.0M", "7.6B", as Ollama writes it.
std::string short_number(std::int64_t parameters) {
  const auto value = static_cast<double>(parameters);
  if (value >= 1e9) return fmt::format("{:.1f}B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  return fmt::format("{}", parameters);
}

std::int64_t file_bytes(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(bytes);
}

Json details(const Json& status) {
  const std::string architecture = text(at(status, "/model/architecture"));
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", architecture},
          {"families", Json::array({architecture})},
          {"parameter_size", short_number(integer(at(status, "/model/parameters")))},
          {"quantization_level", text(at(status, "/model/fileType"))}};
}

Json ollama_entry(const ModelPages& pages, const Json& status, std::int64_t started_s) {
  return {{"name", pages.name()},
          {"model", pages.name()},
          {"modified_at", timestamp(started_s)},
          {"size", file_bytes(text(at(status, "/model/path")))},
          {"digest", text(at(status, "/model/digest"))},
          {"details", details(status)}};
}

Answer page(const Json& body) { return {200, Answer().type, json_text(body)}; }

}  // namespace

ModelPages::ModelPages(Json status, std::int64_t started_s)
    : status_(std::move(status)), started_s_(started_s) {}

bool ModelPages::ready() const { return at(status_, "/state/name") == "ready"; }

std::string ModelPages::failure() const {
  if (at(status_, "/state/name") != "failed") return {};
  return "the model cannot be used: " + text(at(status_, "/state/message"));
}

std::string ModelPages::name() const {
  if (std::string name = text(at(status_, "/model/name")); !name.empty()) return name;
  const std::string stem = std::filesystem::path(text(at(status_, "/model/path"))).stem().string();
  return stem.empty() ? "efimd" : stem;
}

std::optional<FimMarks> ModelPages::marks() const {
  FimMarks marks{text(at(status_, "/model/fim/prefix")), text(at(status_, "/model/fim/suffix")),
                 text(at(status_, "/model/fim/middle")),
                 text(at(status_, "/model/fim/fileSeparator"))};
  if (marks.prefix.empty() || marks.suffix.empty()) return std::nullopt;
  return marks;
}

Answer ModelPages::health() const {
  if (ready()) return page({{"status", "ok"}});
  const std::string why = failure();
  return why.empty() ? refusal(503, "Loading model") : refusal(500, why);
}

Answer ModelPages::models() const {
  Json ours = ollama_entry(*this, status_, started_s_);
  ours.merge_patch({{"type", "model"}, {"description", ""}, {"parameters", ""}, {"size", ""}});
  ours["tags"] = Json::array({""});
  ours["capabilities"] = Json::array({"completion"});
  const Json meta = {{"n_ctx", integer(at(status_, "/model/windowTokens"))},
                     {"n_ctx_train", integer(at(status_, "/model/windowTokens"))},
                     {"n_params", integer(at(status_, "/model/parameters"))},
                     {"size", file_bytes(text(at(status_, "/model/path")))},
                     {"ftype", text(at(status_, "/model/fileType"))}};
  const Json open_ai = {{"id", name()},          {"aliases", Json::array({name()})},
                        {"tags", Json::array()}, {"object", "model"},
                        {"created", started_s_}, {"owned_by", "efimd"},
                        {"meta", meta}};
  return page(
      {{"models", Json::array({ours})}, {"object", "list"}, {"data", Json::array({open_ai})}});
}

Answer ModelPages::props() const {
  return page({{"default_generation_settings",
                {{"n_ctx", integer(at(status_, "/model/windowTokens"))},
                 {"params", {{"temperature", 0.0}, {"stream", false}}}}},
               {"total_slots", 1},
               {"model_alias", name()},
               {"model_ftype", text(at(status_, "/model/fileType"))},
               {"model_path", text(at(status_, "/model/path"))},
               {"modalities", {{"vision", false}, {"audio", false}}},
               {"chat_template", ""},
               {"bos_token", ""},
               {"eos_token", ""},
               {"build_info", std::string("efimd ") + service::version()},
               {"is_sleeping", false}});
}

Answer ModelPages::tags() const {
  return page({{"models", Json::array({ollama_entry(*this, status_, started_s_)})}});
}

Answer ModelPages::show() const {
  const std::string architecture = text(at(status_, "/model/architecture"));
  // Clients take a template with .Suffix for leave to send one.
  return page({{"modelfile", "FROM " + name()},
               {"parameters", ""},
               {"template",
                "{{- if .Suffix }}{{ .Prompt }}{{ .Suffix }}{{- else }}{{ .Prompt }}{{- end }}"},
               {"details", details(status_)},
               {"model_info",
                {{"general.architecture", architecture},
                 {"general.parameter_count", integer(at(status_, "/model/parameters"))},
                 {architecture + ".context_length", integer(at(status_, "/model/windowTokens"))}}},
               {"capabilities", Json::array({"completion", "insert"})},
               {"modified_at", timestamp(started_s_)}});
}

Answer ModelPages::server_version() const { return page({{"version", service::version()}}); }

}  // namespace efimd::http
