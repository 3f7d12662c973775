#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <thread>

#include "base/utf8.h"
#include "daemon/cli/commands/commands.h"
#include "daemon/cli/commands/source_place.h"
#include "daemon/client/client.h"
#include "lsp/uri.h"

namespace efimd::service {

using lsp::Json;
using Clock = std::chrono::steady_clock;

namespace {

/// For everything: starting the daemon, loading a large model, the completion.
constexpr auto kTotalMax = std::chrono::seconds(120);
constexpr auto kLookAgain = std::chrono::milliseconds(30);
constexpr auto kReceiptMax = std::chrono::seconds(2);

/// One editor with one document, at the other end of a daemon.
class OneCompletion {
 public:
  OneCompletion(RpcClient& client, const SourcePlace& source, const CommandLine::Complete& options,
                Deadline deadline)
      : client_(client), source_(source), options_(options), deadline_(deadline) {
    client_.on_notification = [this](const std::string& method, const Json& params) {
      if (method == "efim/receipt") receipt_ = params;
    };
  }

  /// {"text": string or null, "receipt": object or null}
  Result<Json> run() {
    if (auto greeted = initialize(); !greeted) return tl::unexpected(greeted.error());
    if (auto loaded = wait_for_model(); !loaded) return tl::unexpected(loaded.error());
    if (auto opened = client_.notify("textDocument/didOpen", document(), deadline_); !opened)
      return tl::unexpected(opened.error());
    auto answer = client_.request("textDocument/inlineCompletion", question(), deadline_);
    if (!answer) return answer;
    // A daemon that sends no receipt has still answered.
    (void)client_.listen([&] { return receipt_.has_value(); },
                         std::min(deadline_, Clock::now() + kReceiptMax));
    return Json{{"text", text_of(*answer)}, {"receipt", receipt_.value_or(Json())}};
  }

 private:
  /// For what a daemon answers at once, whatever its model does.
  Deadline soon() const { return std::min(deadline_, Clock::now() + kStatusAnswerMax); }

  Result<void> initialize() {
    Json efim = {{"receipts", true}};
    if (options_.tokens_max) efim["maxTokens"] = *options_.tokens_max;
    if (options_.stop) efim["stop"] = *options_.stop;
    if (options_.temperature) efim["temperature"] = *options_.temperature;
    const auto answer =
        client_.request("initialize",
                        {{"processId", nullptr},
                         {"rootUri", nullptr},
                         {"clientInfo", {{"name", "efimd complete"}}},
                         {"capabilities",
                          {{"general", {{"positionEncodings", {"utf-32"}}}},
                           {"textDocument", {{"inlineCompletion", Json::object()}}}}},
                         {"initializationOptions", {{"efim", std::move(efim)}}}},
                        soon());
    if (!answer) return tl::unexpected(answer.error());
    return client_.notify("initialized", Json::object(), deadline_);
  }

  Result<void> wait_for_model() {
    for (bool told = false;;) {
      const auto status = client_.request("efim/status", nullptr, soon());
      if (!status) return tl::unexpected(status.error());
      const Json state = status->value("/state"_json_pointer, Json::object());
      const std::string name = state.value("name", "");
      if (name != "loading") return {};  // the request says why it failed, or loads it again
      if (Clock::now() >= deadline_)
        return fail(Fault::kNotReady, "the model is still loading", "try again in a while");
      if (!std::exchange(told, true)) fmt::print(stderr, "efimd: waiting for the model to load\n");
      std::this_thread::sleep_for(kLookAgain);
    }
  }

  Json document() const {
    return {{"textDocument",
             {{"uri", source_.uri},
              {"languageId", "plaintext"},
              {"version", 1},
              {"text", source_.text}}}};
  }

  Json question() const {
    return {{"textDocument", {{"uri", source_.uri}}},
            {"position", {{"line", source_.line}, {"character", source_.character}}},
            {"context", {{"triggerKind", 2}}}};
  }

  /// The text to insert at the cursor; null for no suggestion.
  Json text_of(const Json& answer) const {
    const Json items = answer.is_object() ? answer.value("items", Json::array()) : answer;
    if (!items.is_array() || items.empty() || !items[0].is_object()) return nullptr;
    std::string text = items[0].value("insertText", "");
    // An item may begin with what stands between its range's start and the cursor.
    const std::size_t start = items[0].value("/range/start/character"_json_pointer,
                                             static_cast<std::size_t>(source_.character));
    for (std::size_t i = start; i < source_.character && !text.empty(); ++i)
      text.erase(0, static_cast<std::size_t>(utf8::decode(text, 0).length));
    return text;
  }

  RpcClient& client_;
  const SourcePlace& source_;
  const CommandLine::Complete& options_;
  const Deadline deadline_;
  std::optional<Json> receipt_;
};

Result<RpcClient> client_of_daemon(const Paths& paths, Deadline deadline) {
  const auto plan = SpawnPlan::this_program(paths);
  if (!plan) return tl::unexpected(plan.error());
  auto socket = connect_or_spawn(paths, *plan, deadline);
  if (!socket) return tl::unexpected(socket.error());
  return RpcClient(std::move(*socket));
}

void print_receipt(const Json& receipt) {
  if (!receipt.is_object()) return;
  fmt::print(stderr,
             "{} prompt tokens ({} reused, {} evaluated), {} generated; first after {:.1f} ms, all "
             "after {:.1f} ms\n",
             receipt.value("promptTokens", 0), receipt.value("reusedTokens", 0),
             receipt.value("evaluatedTokens", 0), receipt.value("generatedTokens", 0),
             receipt.value("firstTokenMs", 0.0), receipt.value("totalMs", 0.0));
}

}  // namespace

int run_complete(const Paths& paths, const CommandLine& line) {
  const Deadline deadline = Clock::now() + kTotalMax;
  const auto source = read_source(line.complete.place);
  if (!source) return failed(source.error());
  auto client = client_of_daemon(paths, deadline);
  if (!client) return failed(client.error());
  const auto answer = OneCompletion(*client, *source, line.complete, deadline).run();
  if (!answer) return failed(answer.error());
  const Json& text = (*answer)["text"];
  if (line.json)
    fmt::print("{}\n", lsp::json_text(*answer));
  else if (text.is_string())
    fmt::print("{}\n", text.get_ref<const std::string&>());
  if (line.complete.receipt) print_receipt((*answer)["receipt"]);
  if (text.is_string()) return 0;
  const Json& receipt = (*answer)["receipt"];
  const std::string reason = receipt.is_object() ? receipt.value("reason", "") : "";
  return failed({Fault::kNotFound,
                 "no suggestion: " + (reason.empty() ? "no reason was given" : reason), ""});
}

}  // namespace efimd::service
