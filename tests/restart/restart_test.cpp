#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "daemon/completion/completion.h"
#include "daemon/completion/documents/page_keeper.h"
#include "daemon/completion/documents/session_memory.h"
#include "daemon/models/engine_host.h"
#include "daemon/text/document.h"
#include "engine/types.h"
#include "tests/cache_store/store_fixture.h"

using namespace efimd;
using Clock = std::chrono::steady_clock;

namespace {

const std::filesystem::path kSource = EFIMD_SOURCE_DIR;
const std::filesystem::path kModel = EFIMD_SMALL_MODEL;
/// As much of a file as the bundled model's context shows, with room to generate.
constexpr int kPromptTokens = 900;
constexpr std::size_t kKvBytesPerToken = 1536;
constexpr std::size_t kPageBytes = kKvBytesPerToken * engine::kPageTokens;
constexpr auto kPatience = std::chrono::seconds(120);

/// Waits for what idle time or another thread brings about; the pace decides nothing.
template <class Condition>
void wait_until(const char* what, Condition condition) {
  const auto deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > deadline) FAIL("not in time: " << what);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// Real code of about `bytes`, another for each number.
std::string code(int number, std::size_t bytes) {
  static const std::string all = [] {
    std::string text;
    for (const char* name :
         {"daemon/server/daemon.cpp", "daemon/server/lifetime.cpp", "daemon/server/session.cpp",
          "engine/model/gguf_reader.cpp", "lsp/json_rpc.cpp", "daemon/client/bridge_session.cpp",
          "lsp/protocol.cpp"}) {
      std::ifstream file(kSource / name, std::ios::binary);
      text.append(std::istreambuf_iterator<char>(file), {});
    }
    return text;
  }();
  const std::size_t begin =
      all.find('\n', static_cast<std::size_t>(number) * 997 % (all.size() / 2));
  return "// file " + std::to_string(number) + all.substr(begin, bytes);
}

/// One daemon's life, from the model's loading to its end, without its sockets.
class Life {
 public:
  struct Setting {
    std::filesystem::path folder;
    std::size_t kv_bytes = std::size_t{64} << 20;
    std::size_t disk_bytes = std::size_t{1} << 30;
    bool stores = true;
  };
  explicit Life(const Setting& setting) {
    if (setting.stores) {
      store::StoreService::Settings of_store;
      of_store.store = {setting.folder, setting.disk_bytes, {}};
      store = std::make_shared<store::StoreService>(std::move(of_store));
      keeper = std::make_shared<completion::PageKeeper>(store);
    }
    std::promise<void> loaded;
    completion::CompletionService::Settings settings;
    settings.prompt_tokens_max = kPromptTokens;
    settings.keeper = keeper;
    service = std::make_unique<completion::CompletionService>(
        service::make_engine_factory(
            {.model = kModel,
             .kv_budget_bytes = setting.kv_bytes,
             .keeper = keeper,
             .page_key_file = setting.stores ? setting.folder / "page_key" : ""},
            std::make_shared<service::OpenedModel>()),
        settings, [&] { loaded.set_value(); });
    loaded.get_future().wait();
    REQUIRE(service->status().failure.empty());
  }

  void open(const std::string& uri, const std::string& text) {
    documents.insert_or_assign(uri, text::Document(text));
    completion::OpenedDocument opened;
    opened.document.session = 1;
    opened.document.uri = uri;
    opened.snapshot = documents.at(uri).snapshot();
    opened.may_be_stored = true;
    service->open(std::move(opened));
  }
  completion::Outcome ask(const std::string& uri, std::size_t cursor) {
    completion::Request request;
    request.document = {1, uri};
    request.snapshot = documents.at(uri).snapshot();
    request.cursor = cursor;
    request.options.tokens_max = 8;
    request.options.stop = completion::StopRule::kNone;
    request.options.healing = completion::Healing::kOff;
    request.options.time_max_ms = 600'000;
    request.arrived = Clock::now();
    request.may_be_stored = true;
    // Shared, for the engine thread may still be in set_value() when the answer is taken.
    const auto answer = std::make_shared<std::promise<completion::Outcome>>();
    service->submit(std::move(request), [answer](completion::Outcome outcome) {
      answer->set_value(std::move(outcome));
    });
    return answer->get_future().get();
  }
  void wait_until_stored(int tokens) {
    const auto pages = static_cast<std::size_t>(tokens / engine::kPageTokens);
    wait_until("the pages are on disk", [&] { return store->status().use.pages >= pages; });
  }

  std::shared_ptr<store::StoreService> store;
  std::shared_ptr<completion::PageKeeper> keeper;
  std::map<std::string, text::Document> documents;
  std::unique_ptr<completion::CompletionService> service;  ///< last: it is gone first
};

const std::string kUri = "file:///project/code.cpp";

/// Idle time has brought the file's pages back and evaluated what stands after them, a part of a page.
void wait_until_whole(const Life& life, int prompt_tokens) {
  wait_until("the anchor is whole", [&] {
    const auto files = life.service->status().files;
    return !files.empty() && files.front().tokens_device >= prompt_tokens - 3;
  });
}

std::size_t middle(const std::string& text) { return text.find('\n', text.size() / 2); }

}  // namespace

TEST_CASE("after a restart the first answer finds its prompt, and says the same") {
  constexpr int kRestartsMax = 10;  // until one was not interrupted by what else the machine does
  const test::ScratchFolder scratch;
  const std::string text = code(0, 9000);  // 3,000 tokens
  completion::Outcome cold;
  {
    Life life({scratch.store()});
    life.open(kUri, text);
    cold = life.ask(kUri, middle(text));
    life.wait_until_stored(cold.receipt.prompt_tokens);
  }
  CHECK(cold.receipt.prompt_tokens > 400);
  CHECK(cold.receipt.restored_tokens == 0);
  bool much_sooner = false;
  for (int restart = 0; restart < kRestartsMax && !much_sooner; ++restart) {
    Life life({scratch.store()});
    life.open(kUri, text);
    wait_until_whole(life, cold.receipt.prompt_tokens);
    const completion::Outcome warm = life.ask(kUri, middle(text));
    std::cout << "cold: " << cold.receipt.evaluated_tokens << " tokens evaluated, first after "
              << cold.receipt.first_token_ms << " ms; warm: " << warm.receipt.restored_tokens
              << " of " << warm.receipt.prompt_tokens << " restored, "
              << warm.receipt.evaluated_tokens << " evaluated, first after "
              << warm.receipt.first_token_ms << " ms\n";
    CHECK(warm.receipt.prompt_tokens == cold.receipt.prompt_tokens);
    // All whole pages: 95 % of a prompt of 640 tokens or more.
    CHECK(warm.receipt.restored_tokens >= warm.receipt.prompt_tokens - engine::kPageTokens);
    CHECK(warm.receipt.evaluated_tokens <= 3);
    REQUIRE(warm.item.has_value() == cold.item.has_value());
    if (cold.item) CHECK(warm.item->text == cold.item->text);
    CHECK(life.service->status().restored_tokens > 0);
    much_sooner = 10 * warm.receipt.first_token_ms <= cold.receipt.first_token_ms;
  }
  CHECK(much_sooner);
}

TEST_CASE("a noted place is found with all of its tokens, also where its line was left otherwise") {
  const test::ScratchFolder scratch;
  const std::string text = code(2, 9000);
  const std::size_t cursor = middle(text);
  std::string typed = text;
  typed.insert(cursor, "x");
  int prompt_tokens = 0;
  {
    Life life({scratch.store()});
    life.open(kUri, typed);
    prompt_tokens = life.ask(kUri, cursor + 1).receipt.prompt_tokens;
    life.wait_until_stored(prompt_tokens);
  }
  Life life({scratch.store()});
  life.open(kUri, text);  // the x was not saved
  wait_until_whole(life, prompt_tokens);
  const completion::Receipt receipt = life.ask(kUri, cursor).receipt;
  CHECK(receipt.evaluated_tokens <= 3);
  CHECK(receipt.restored_tokens >= 0.9 * receipt.prompt_tokens);
}

TEST_CASE("a keystroke that comes before idle time had its turn loads what it needs itself") {
  const test::ScratchFolder scratch;
  const std::string text = code(1, 9000);
  int prompt_tokens = 0;
  {
    Life life({scratch.store()});
    life.open(kUri, text);
    prompt_tokens = life.ask(kUri, middle(text)).receipt.prompt_tokens;
    life.wait_until_stored(prompt_tokens);
  }
  Life life({scratch.store()});
  life.documents.insert_or_assign(kUri, text::Document(text));
  const completion::Receipt receipt = life.ask(kUri, middle(text)).receipt;
  CHECK(receipt.restored_tokens >= prompt_tokens - engine::kPageTokens);
}

TEST_CASE("greedy answers are the same with and without a store, over restarts and evictions") {
  const test::ScratchFolder scratch;
  constexpr int kFiles = 6, kRounds = 3;
  const auto ask_all = [](Life& life, int round, bool open) {
    std::vector<std::string> answers;
    for (int file = 0; file < kFiles; ++file) {
      const std::string uri = "file:///f" + std::to_string(file);
      const std::string text = code(file, 6000);
      if (open) life.open(uri, text);
      const auto outcome =
          life.ask(uri, text.find('\n', text.size() / 2 + static_cast<std::size_t>(round * 200)));
      answers.push_back(outcome.item ? outcome.item->text : "-");
    }
    return answers;
  };
  std::vector<std::vector<std::string>> expected, found;
  Life plain({.folder = {}, .stores = false});
  // Room for two prompts only, so that pages go to the disk and come back all the time.
  for (int round = 0; round < kRounds; ++round) {
    expected.push_back(ask_all(plain, round, round == 0));
    Life life({scratch.store(), 70 * kPageBytes});
    found.push_back(ask_all(life, round, true));
    CHECK(ask_all(life, round, false) == expected.back());
  }
  CHECK(found == expected);
}

TEST_CASE("forty files under a budget for ten: coming back to any evaluates next to nothing") {
  const test::ScratchFolder scratch;
  constexpr int kFiles = 40;
  const std::size_t kv_bytes = 10 * 544 * kKvBytesPerToken;
  const std::size_t disk_bytes = std::size_t{80} << 20;
  Life life({scratch.store(), kv_bytes, disk_bytes});
  const auto visit = [&](int file, bool open) {
    const std::string uri = "file:///f" + std::to_string(file);
    const std::string text = code(file, 6000);  // 2,000 tokens
    if (open) life.open(uri, text);
    const completion::Receipt receipt = life.ask(uri, middle(text)).receipt;
    const completion::ServiceStatus status = life.service->status();
    CHECK(status.kv.used_bytes <= kv_bytes);
    CHECK(life.store->status().use.disk_bytes <= disk_bytes);
    return receipt;
  };
  int prompts = 0;
  for (int file = 0; file < kFiles; ++file) {
    const int prompt = visit(file, true).prompt_tokens;
    prompts += prompt;
    // A person does not visit 40 files within a second: idle time hands each file's pages over, and
    // the disk keeps up.
    wait_until("the file's pages are written", [&] {
      const store::StoreStatus status = life.store->status();
      const auto kept = status.pages.find("file:///f" + std::to_string(file));
      return kept != status.pages.end() &&
             kept->second >= static_cast<std::size_t>(prompt / engine::kPageTokens);
    });
  }
  CHECK(prompts > kFiles * 450);
  int evaluated_most = 0;
  for (int file = 0; file < kFiles; ++file)
    evaluated_most = std::max(evaluated_most, visit(file, false).evaluated_tokens);
  std::cout << "coming back to one of " << kFiles << " files evaluates at most " << evaluated_most
            << " tokens; loading " << life.store->load_bytes_per_s() / 1e6 << " MB/s\n";
  CHECK(evaluated_most <= 40);
}
