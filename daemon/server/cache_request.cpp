#include "daemon/server/cache_request.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "daemon/files/file_identity.h"
#include "engine/types.h"
#include "lsp/uri.h"

namespace efimd::service {

using lsp::Json;
using Action = CacheRequest::Action;

namespace {

constexpr std::array<std::pair<std::string_view, Action>, 6> kActions = {{
    {"list", Action::kList},
    {"purge", Action::kPurge},
    {"pin", Action::kPin},
    {"unpin", Action::kUnpin},
    {"verify", Action::kVerify},
    {"stats", Action::kStats},
}};

std::string text_of(const Json& params, const char* key) {
  const auto found = params.find(key);
  return found != params.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Json use_json(const store::StoreUse& use) {
  return {{"budgetBytes", use.budget_bytes}, {"usedBytes", use.disk_bytes}, {"pages", use.pages}};
}

Json list(const store::Store& store) {
  struct Sum {
    std::string name;
    std::size_t pages = 0, bytes = 0;
  };
  std::map<std::string, Sum> models;
  Json files = Json::array();
  for (const store::DocumentUse& document : store.documents()) {
    const std::size_t bytes = document.pages * document.page_bytes;
    files.push_back({{"uri", document.uri},
                     {"model", document.model_name},
                     {"tokensDisk", document.pages * engine::kPageTokens},
                     {"bytesDisk", bytes},
                     {"pinned", document.pinned},
                     {"usedAtS", document.used_at_s}});
    if (document.pages == 0) continue;
    Sum& sum = models[document.model.hex()];
    sum.name = document.model_name;
    sum.pages += document.pages;
    sum.bytes += bytes;
  }
  Json model_list = Json::array();
  for (const auto& [digest, sum] : models)
    model_list.push_back({{"name", sum.name},
                          {"digest", digest},
                          {"tokensDisk", sum.pages * engine::kPageTokens},
                          {"bytesDisk", sum.bytes}});
  return {{"files", files}, {"models", model_list}, {"disk", use_json(store.usage())}};
}

std::vector<std::string> documents_of(const store::Store& store, const CacheRequest& request) {
  return request.spellings ? *request.spellings : uris_within(request.uri, store.document_uris());
}

Result<Json> purge(store::Store& store, const CacheRequest& request) {
  std::size_t documents = 0;
  Result<store::Purged> done = store::Purged{};
  if (request.all) {
    documents = store.documents().size();
    done = store.purge_all();
  } else if (!request.model.empty()) {
    done = store.purge_model(request.model);
  } else {
    const std::vector<std::string> uris = documents_of(store, request);
    if (uris.empty()) return tl::unexpected(nothing_kept(request.uri));
    documents = uris.size();
    done = store.purge(uris);
  }
  if (!done) return tl::unexpected(done.error());
  return Json{{"documents", documents},
              {"tokens", done->pages * engine::kPageTokens},
              {"disk", use_json(store.usage())}};
}

Result<Json> pin(store::Store& store, const CacheRequest& request, bool pinned) {
  // A file that nothing is kept of and nobody has open has no URI to pin: its editor chooses it.
  const std::vector<std::string> uris = documents_of(store, request);
  if (uris.empty()) return tl::unexpected(nothing_kept(request.uri));
  for (const std::string& uri : uris)
    if (const auto done = store.pin(uri, pinned); !done) return tl::unexpected(done.error());
  return Json{{"documents", uris.size()}};
}

}  // namespace

Json to_json(const CacheRequest& request) {
  const auto* const found =
      std::ranges::find(kActions, request.action, &std::pair<std::string_view, Action>::second);
  return {{"action", found->first},
          {"uri", request.uri},
          {"model", request.model},
          {"all", request.all}};
}

Result<CacheRequest> cache_request_from(const Json& params) {
  if (!params.is_object()) return fail(Fault::kBadInput, "params must be an object");
  CacheRequest request;
  const std::string action = text_of(params, "action");
  const auto* const found =
      std::ranges::find(kActions, action, &std::pair<std::string_view, Action>::first);
  if (found == kActions.end())
    return fail(Fault::kBadInput, "params.action must be list, purge, pin, unpin, verify or stats");
  request.action = found->second;
  request.uri = text_of(params, "uri");
  request.model = text_of(params, "model");
  const auto all = params.find("all");
  request.all = all != params.end() && all->is_boolean() && all->get<bool>();
  const int given = int{!request.uri.empty()} + int{!request.model.empty()} + int{request.all};
  if (request.action == Action::kPurge && given != 1)
    return fail(Fault::kBadInput, "purge needs one of uri, model and all");
  if ((request.action == Action::kPin || request.action == Action::kUnpin) && request.uri.empty())
    return fail(Fault::kBadInput, "params.uri: which document");
  return request;
}

Error nothing_kept(const std::string& uri) {
  return {Fault::kNotFound, "nothing of " + lsp::display(uri) + " is kept",
          "'efimd cache list' names the files with KV on disk"};
}

Json memory_purged(std::size_t documents, std::size_t tokens) {
  return {{"documents", documents}, {"tokens", tokens}, {"disk", use_json({})}};
}

Result<Json> serve_cache_request(store::Store& store, const CacheRequest& request) {
  switch (request.action) {
    case Action::kList:
      return list(store);
    case Action::kPurge:
      return purge(store, request);
    case Action::kPin:
      return pin(store, request, true);
    case Action::kUnpin:
      return pin(store, request, false);
    case Action::kVerify: {
      const auto verified = store.verify();
      if (!verified) return tl::unexpected(verified.error());
      return Json{{"pages", verified->pages}, {"dropped", verified->dropped}};
    }
    case Action::kStats:
      return Json{{"disk", use_json(store.usage())}};
  }
  return fail(Fault::kBadInput, "unknown action");
}

}  // namespace efimd::service
