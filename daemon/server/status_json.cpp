#include "daemon/server/status_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/types.h"

namespace efimd::service {

using Json = nlohmann::json;

namespace {

std::string_view state_name(completion::EngineState state) {
  switch (state) {
    case completion::EngineState::kLoading:
      return "loading";
    case completion::EngineState::kReady:
      return "ready";
    case completion::EngineState::kFailed:
      return "failed";
  }
  return "failed";
}

Json state_json(const completion::ServiceStatus& service) {
  return {{"name", state_name(service.state)},
          {"progress", service.load_progress},
          {"message", service.failure}};
}

Json model_json(const StatusParts& parts) {
  Json model = {{"path", parts.model_path}, {"reason", parts.model_reason}};
  if (parts.model) {
    model["name"] = parts.model->name;
    model["path"] = parts.model->path;
    model["architecture"] = parts.model->architecture;
    model["parameters"] = parts.model->parameters;
    model["fileType"] = parts.model->file_type;
    model["fimOrder"] = parts.model->fim_order;
    model["digest"] = parts.model->digest;
    const ModelInfo::Fim& fim = parts.model->fim;
    model["fim"] = {{"prefix", fim.prefix},
                    {"suffix", fim.suffix},
                    {"middle", fim.middle},
                    {"fileSeparator", fim.file_separator}};
  }
  if (parts.model && !parts.model->kv_type.empty())
    model["kv"] = {{"type", parts.model->kv_type}, {"reason", parts.model->kv_reason}};
  if (parts.service.window_tokens > 0) model["windowTokens"] = parts.service.window_tokens;
  return model;
}

Json device_json(const StatusParts& parts) {
  Json device = {{"reason", parts.device_reason}};
  if (!parts.service.device_kind.empty()) {
    device["kind"] = parts.service.device_kind;
    device["name"] = parts.service.device_name;
    if (!parts.weights.empty()) device["weights"] = parts.weights;
    Json& costs = device["stepCosts"] = Json::array();
    for (const auto& cost : parts.service.step_costs)
      costs.push_back({{"tokens", cost.tokens}, {"ms", cost.ms}});
  }
  return device;
}

Json tier_json(std::size_t budget_bytes, std::size_t used_bytes) {
  return {{"budgetBytes", budget_bytes}, {"usedBytes", used_bytes}};
}

/// The CPU's pages are in the host's memory: then there is no tier between them and the disk.
Json host_json(const completion::ServiceStatus& service) {
  Json host = tier_json(service.kv.host.budget_bytes, service.kv.host.used_bytes);
  if (service.device_kind == "cpu") host["isDevice"] = true;
  return host;
}

/// Prompt tokens of all answers: those whose KV was there, and how large a part that is.
Json reuse_json(const completion::ServiceStatus& service) {
  double reused = 0, evaluated = 0;
  for (const auto& [name, event] : service.events) {
    reused += static_cast<double>(event.count) * event.reused_mean;
    evaluated += static_cast<double>(event.count) * event.evaluated_mean;
  }
  const double all = reused + evaluated;
  return {{"reusedTokens", std::llround(reused)},
          {"evaluatedTokens", std::llround(evaluated)},
          {"hitRate", all > 0 ? reused / all : 0}};
}

Json file_json(const completion::ServiceStatus::File& file, const StatusParts& parts) {
  std::size_t pages = 0;
  if (parts.store)
    if (const auto stored = parts.store->pages.find(file.uri); stored != parts.store->pages.end())
      pages = stored->second;
  return {{"uri", file.uri},
          {"open", file.open},
          {"anchors", file.anchors},
          {"tokensDevice", file.tokens_device},
          {"tokensHost", 0},
          {"tokensDisk", pages * engine::kPageTokens},
          {"lastUseS", file.last_use_s},
          {"hits", file.hits},
          {"misses", file.misses}};
}

Json event_json(const completion::ServiceStatus::EventCounts& event) {
  return {{"count", event.count},
          {"evaluatedMean", event.evaluated_mean},
          {"reusedMean", event.reused_mean},
          {"firstTokenMsP50", event.first_token_ms_p50},
          {"firstTokenMsP95", event.first_token_ms_p95}};
}

Json plan_json(const completion::ServiceStatus::PlanNote& plan) {
  return {{"uri", plan.uri},
          {"event", plan.event},
          {"taken", plan.taken},
          {"considered", plan.considered},
          {"head", plan.head}};
}

/// Suggestions by where they came from.
Json sources_json(const completion::ServiceStatus& service) {
  Json sources = Json::array();
  for (const auto& [name, counts] : service.sources)
    sources.push_back({{"source", name}, {"shown", counts.shown}, {"accepted", counts.accepted}});
  return sources;
}

/// The user's own text that may be suggested.
Json recall_json(const StatusParts& parts) {
  const recall::Usage& usage = parts.service.recall;
  Json folders = Json::array();
  for (const ProjectStatus& project : parts.projects)
    folders.push_back({{"project", project.project},
                       {"files", project.files},
                       {"bytes", project.bytes},
                       {"reading", project.reading},
                       {"stalled", project.stalled},
                       {"leftOut", project.left_out}});
  return {
      {"folders", std::move(folders)},      {"projects", usage.projects},    {"files", usage.files},
      {"documents", usage.documents},       {"textBytes", usage.text_bytes}, {"bytes", usage.bytes},
      {"filesDropped", usage.files_dropped}};
}

/// What the user takes and rejects, by language.
Json taste_json(const completion::ServiceStatus& service) {
  Json languages = Json::array();
  for (const auto& [language, row] : service.taste)
    languages.push_back({{"language", language},
                         {"accepted", row.accepted},
                         {"typedThrough", row.typed_through},
                         {"ignored", row.ignored},
                         {"rejected", row.rejected},
                         {"shift", row.shift}});
  return {{"languages", std::move(languages)}, {"trouble", service.taste_trouble}};
}

Json silence_json(const completion::ServiceStatus& service) {
  std::vector<std::pair<std::string, std::uint64_t>> reasons(service.silence.begin(),
                                                             service.silence.end());
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Json silence = Json::array();
  for (const auto& [reason, count] : reasons)
    silence.push_back({{"reason", reason}, {"count", count}});
  return silence;
}

Json session_json(const SessionInfo& session) {
  return {{"id", session.id},
          {"client", session.client},
          {"documents", session.documents},
          {"requests", session.requests},
          {"shown", session.shown},
          {"dismissed", session.dismissed},
          {"accepted", session.accepted},
          {"acceptedPartly", session.accepted_partly},
          {"focus", session.focus}};
}

Json config_json(const Config& config) {
  Json warnings = Json::array();
  for (const ConfigWarning& warning : config.warnings)
    warnings.push_back({{"line", warning.line}, {"message", warning.message}});
  return {{"file", config.file.string()}, {"read", config.file_read}, {"warnings", warnings}};
}

template <class T, class ToJson>
Json list_of(const std::vector<T>& values, ToJson to_json) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}

Json remote_json(const StatusParts& parts) {
  const completion::ServiceStatus::Remote& remote = parts.service.remote;
  if (!remote.is_set) return nullptr;
  return {{"url", parts.config.remote.url}, {"model", remote.model},
          {"answers", remote.up},           {"promptsAre", remote.token_ids ? "tokens" : "text"},
          {"trouble", remote.trouble},      {"answerCount", remote.answers},
          {"failureCount", remote.failures}};
}

Json http_json(const StatusParts& parts) {
  return {{"enabled", parts.config.http.enable},
          {"running", parts.http.runs},
          {"port", parts.http.port ? Json(*parts.http.port) : Json()},
          {"trouble", parts.http.trouble},
          {"text", http_text(parts.http, parts.config.http)}};
}

}  // namespace

Json store_json(const store::StoreStatus& store, const completion::ServiceStatus& service) {
  return {{"usable", store.usable},
          {"trouble", store.trouble},
          {"pages", store.use.pages},
          {"writtenPages", store.written_pages},
          {"writtenBytes", store.written_bytes},
          {"loadedPages", store.loaded_pages},
          {"loadedBytes", store.loaded_bytes},
          {"damagedPages", store.damaged_pages},
          {"writeBytesPerS", store.write_bytes_per_s},
          {"loadBytesPerS", store.load_bytes_per_s},
          {"restoredTokens", service.restored_tokens},
          {"savedS", service.saved_s}};
}

Json status_json(const StatusParts& parts) {
  Json events = Json::object();
  for (const auto& [name, counts] : parts.service.events) events[name] = event_json(counts);
  return {
      {"version", parts.version},
      {"pid", parts.pid},
      {"uptimeS", parts.uptime_s},
      {"state", state_json(parts.service)},
      {"model", model_json(parts)},
      {"device", device_json(parts)},
      {"elsewhere", remote_json(parts)},
      {"http", http_json(parts)},
      {"memory",
       {{"device", tier_json(parts.service.kv.budget_bytes, parts.service.kv.used_bytes)},
        {"host", host_json(parts.service)},
        {"disk", parts.store ? tier_json(parts.store->use.budget_bytes, parts.store->use.disk_bytes)
                             : tier_json(0, 0)}}},
      {"reuse", reuse_json(parts.service)},
      {"store", parts.store ? store_json(*parts.store, parts.service) : Json()},
      {"files",
       list_of(parts.service.files, [&](const auto& file) { return file_json(file, parts); })},
      {"events", std::move(events)},
      {"silence", silence_json(parts.service)},
      {"sources", sources_json(parts.service)},
      {"recall", recall_json(parts)},
      {"taste", taste_json(parts.service)},
      {"plans", list_of(parts.service.plans, plan_json)},
      {"sessions", list_of(parts.sessions, session_json)},
      {"config", config_json(parts.config)},
      {"sandbox",
       {{"calls", parts.sandbox.calls},
        {"files", parts.sandbox.files},
        {"why", parts.sandbox.why}}}};
}

}  // namespace efimd::service
