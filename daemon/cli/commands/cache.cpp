#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "cache_store/store.h"
#include "daemon/cli/commands/commands.h"
#include "daemon/cli/commands/table.h"
#include "daemon/client/client.h"
#include "daemon/completion/documents/taste_keeper.h"
#include "daemon/config/config.h"
#include "daemon/server/cache_request.h"
#include "lsp/uri.h"

namespace efimd::service {

using lsp::Json;
using Action = CacheRequest::Action;

namespace {

/// verify and purge read and write as much as the store holds.
constexpr auto kStoreAnswerMax = std::chrono::minutes(10);
/// For another command that has the store, or a daemon that comes or goes.
constexpr auto kStoreMineMax = std::chrono::seconds(3);
constexpr auto kStoreLook = std::chrono::milliseconds(10);

double number(const Json& value, const char* key) {
  const auto found = value.find(key);
  return found != value.end() && found->is_number() ? found->get<double>() : 0;
}

/// The answer of the store itself, which no daemon uses.
Result<Json> ask_store(const Paths& paths, const CacheRequest& request) {
  const Config config = load_config(paths.config_file);
  const std::size_t budget = disk_budget_bytes(config, paths.cache_dir);
  // What no longer fits is evicted when the store is opened; a purge also overwrites it. A configuration that
  // cannot be read does not say what fits.
  const bool keeps_all = request.action == Action::kPurge || !config.exclusions_known;
  const std::size_t kept = keeps_all ? std::numeric_limits<std::size_t>::max() : budget;
  auto opened = store::Store::open({paths.store_dir(), kept, [](const std::string& message) {
                                      fmt::print(stderr, "efimd: {}\n", message);
                                    }});
  if (!opened) return tl::unexpected(opened.error());
  Result<Json> answer = serve_cache_request(**opened, request);
  if (answer && answer->contains("disk")) (*answer)["disk"]["budgetBytes"] = budget;
  return answer;
}

/// For a daemon that keeps nothing on disk: what an earlier one kept there is purged, too.
Result<Json> purge_earlier(const Paths& paths, const CacheRequest& request, Json memory) {
  const bool found = request.uri.empty() || number(memory, "documents") > 0;
  std::error_code error;
  if (std::filesystem::exists(paths.store_dir(), error)) {
    Result<Json> disk = ask_store(paths, request);
    if (!disk && (!found || disk.error().fault != Fault::kNotFound)) return disk;
    if (disk) memory["tokens"] = number(memory, "tokens") + number(*disk, "tokens");
  } else if (!found) {
    return tl::unexpected(nothing_kept(request.uri));
  }
  return memory;
}

/// The answer of the daemon or, if none runs, of the store. kNotReady if another process has the store.
Result<Json> ask_once(const Paths& paths, const CacheRequest& request) {
  auto socket = connect_to_daemon(paths);
  if (socket) {
    RpcClient client(std::move(*socket));
    // The store may take its time; a daemon that answers nothing at all is not waited for that long.
    const auto lives = client.request("efim/version", nullptr,
                                      std::chrono::steady_clock::now() + kStatusAnswerMax);
    if (!lives && lives.error().fault == Fault::kNotReady) return tl::unexpected(lives.error());
    Result<Json> answer = client.request("efim/cache", to_json(request),
                                         std::chrono::steady_clock::now() + kStoreAnswerMax);
    if (request.action != Action::kPurge || !answer ||
        number(answer->value("disk", Json::object()), "budgetBytes") > 0)
      return answer;
    return purge_earlier(paths, request, std::move(*answer));
  }
  if (socket.error().fault != Fault::kNotFound) return tl::unexpected(socket.error());
  // What the user takes and rejects is forgotten with everything else.
  if (request.action == Action::kPurge && request.uri.empty())
    if (auto saved = completion::TasteKeeper(paths.taste_file()).save({}); !saved)
      return tl::unexpected(saved.error());
  return ask_store(paths, request);
}

Result<Json> ask(const Paths& paths, const CacheRequest& request) {
  const Deadline deadline = std::chrono::steady_clock::now() + kStoreMineMax;
  for (bool told = false;;) {
    auto answer = ask_once(paths, request);
    if (answer || answer.error().fault != Fault::kNotReady ||
        std::chrono::steady_clock::now() >= deadline)
      return answer;
    if (!std::exchange(told, true))
      fmt::print(stderr, "efimd: waiting for another efimd, which uses the KV on disk\n");
    std::this_thread::sleep_for(kStoreLook);
  }
}

std::string text(const Json& value, const char* key) {
  const auto found = value.find(key);
  return found != value.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string when(double used_at_s) {
  if (used_at_s <= 0) return "-";
  // A clock that went back is no time ago.
  return duration_text(std::max(0.0, static_cast<double>(std::time(nullptr)) - used_at_s));
}

std::string count_of_tokens(const Json& value, const char* key) {
  return fmt::format("{:.0f}", number(value, key));
}

std::string disk_line(const Json& disk) {
  return fmt::format("disk: {} of {}\n", bytes_text(number(disk, "usedBytes")),
                     bytes_text(number(disk, "budgetBytes")));
}

std::string list_text(const Json& list) {
  std::vector<std::vector<std::string>> files, models;
  for (const Json& file : list.value("files", Json::array()))
    files.push_back({lsp::display(text(file, "uri")), text(file, "model"),
                     count_of_tokens(file, "tokensDevice"), count_of_tokens(file, "tokensDisk"),
                     bytes_text(number(file, "bytesDisk")), when(number(file, "usedAtS")),
                     file.value("pinned", false) ? "pinned" : ""});
  for (const Json& model : list.value("models", Json::array()))
    models.push_back({text(model, "name"), text(model, "digest").substr(0, 12),
                      count_of_tokens(model, "tokensDisk"),
                      bytes_text(number(model, "bytesDisk"))});
  std::string out;
  if (files.empty()) {
    out += "nothing is stored\n";
  } else {
    out += table({{"file", Align::kLeft},
                  {"model", Align::kLeft},
                  {"device tokens"},
                  {"disk tokens"},
                  {"disk"},
                  {"last use"},
                  {"", Align::kLeft}},
                 files) +
           "\n" +
           table({{"model", Align::kLeft}, {"digest", Align::kLeft}, {"disk tokens"}, {"disk"}},
                 models) +
           "\n";
  }
  return out + disk_line(list.value("disk", Json::object()));
}

std::string stats_text(const Json& stats) {
  const Json disk = stats.value("disk", Json::object());
  std::vector<std::pair<std::string, std::string>> lines = {
      {"on disk", fmt::format("{} of {}, {:.0f} pages", bytes_text(number(disk, "usedBytes")),
                              bytes_text(number(disk, "budgetBytes")), number(disk, "pages"))}};
  if (const auto store = stats.find("store"); store != stats.end() && store->is_object()) {
    lines.emplace_back("written", fmt::format("{:.0f} pages, {}/s", number(*store, "writtenPages"),
                                              bytes_text(number(*store, "writeBytesPerS"))));
    lines.emplace_back("loaded", fmt::format("{:.0f} pages, {}/s", number(*store, "loadedPages"),
                                             bytes_text(number(*store, "loadBytesPerS"))));
    lines.emplace_back("restored",
                       fmt::format("{:.0f} tokens, {:.1f} s of evaluating saved",
                                   number(*store, "restoredTokens"), number(*store, "savedS")));
    if (const std::string trouble = text(*store, "trouble"); !trouble.empty())
      lines.emplace_back("trouble", trouble);
  }
  return listing(lines);
}

std::string answer_text(const CacheRequest& request, const Json& answer) {
  switch (request.action) {
    case Action::kList:
      return list_text(answer);
    case Action::kStats:
      return stats_text(answer);
    case Action::kPurge:
      return fmt::format("purged: {:.0f} tokens\n{}", number(answer, "tokens"),
                         disk_line(answer.value("disk", Json::object())));
    case Action::kPin:
      return fmt::format("pinned: {:.0f} files\n", number(answer, "documents"));
    case Action::kUnpin:
      return fmt::format("no longer pinned: {:.0f} files\n", number(answer, "documents"));
    case Action::kVerify:
      return fmt::format("checked: {:.0f} pages, {:.0f} of them damaged and removed\n",
                         number(answer, "pages"), number(answer, "dropped"));
  }
  return {};
}

}  // namespace

int run_cache(const Paths& paths, const CommandLine& line) {
  CacheRequest request = line.cache.request;
  if (!line.cache.path.empty()) {
    std::error_code error;
    std::string path =
        std::filesystem::absolute(line.cache.path, error).lexically_normal().generic_string();
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    request.uri = lsp::file_uri(path);
  }
  const auto answer = ask(paths, request);
  if (!answer) return failed(answer.error());
  if (line.json)
    fmt::print("{}\n", lsp::json_text(*answer));
  else
    fmt::print("{}", answer_text(request, *answer));
  return 0;
}

}  // namespace efimd::service
