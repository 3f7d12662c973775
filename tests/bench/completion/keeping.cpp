#include "tests/bench/completion/keeping.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "cache_store/private_file.h"
#include "daemon/completion/documents/page_keeper.h"
#include "daemon/completion/documents/session_memory.h"
#include "daemon/models/engine_host.h"
#include "daemon/text/document.h"

namespace efimd::bench {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr char kUri[] = "file:///measured";
/// Evaluating a prompt in idle time, and writing it.
constexpr auto kIdleMax = std::chrono::minutes(5);
constexpr std::size_t kReadBytes = std::size_t{1} << 20;
/// What is typed, again and again.
constexpr std::string_view kTyped = "value = other(value, 1) + rest[value]";

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One life of the service, with a store or without, and one document in it.
class Life {
 public:
  Life(const KeepingSetup& setup, bool keeps) : document_(setup.text) {
    if (keeps) {
      store::StoreService::Settings of_store;
      of_store.store.folder = setup.folder;
      of_store.store.budget_bytes = std::size_t{16} << 30;
      store_ = std::make_shared<store::StoreService>(std::move(of_store));
    }
    service::EngineSetup engine;
    engine.model = setup.model;
    engine.device_kind = setup.config.device_kind;
    engine.threads = setup.config.device_threads;
    engine.weights = setup.config.device_weights;
    engine.gpu_variants = setup.config.gpu_variants;
    engine.kv_budget_bytes = service::kv_budget_bytes(setup.config);
    engine.fim = setup.config.fim;
    engine.kv_type = setup.config.kv_type;
    engine.page_key_file = setup.folder.parent_path() / "page_key";  // one for all lives
    engine.kv_errors_file = setup.folder.parent_path() / "kv_errors.json";
    completion::CompletionService::Settings settings;
    if (store_) engine.keeper = settings.keeper = std::make_shared<completion::PageKeeper>(store_);
    settings.prompt_tokens_max = setup.prompt_tokens;
    settings.on_idle = [this] { note_idle(); };
    service_ = std::make_unique<completion::CompletionService>(
        service::make_engine_factory(std::move(engine), opened_), settings,
        [this] { note_loaded(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return loaded_; });
  }

  completion::ServiceStatus status() const { return service_->status(); }
  std::string model_name() const { return opened_->get().value_or(service::ModelInfo{}).name; }
  double load_bytes_per_s() const { return store_->load_bytes_per_s(); }

  void open() {
    busy();
    completion::OpenedDocument opened;
    opened.document.uri = kUri;
    opened.snapshot = document_.snapshot();
    opened.may_be_stored = store_ != nullptr;
    service_->open(std::move(opened));
  }
  /// False when it is not idle in time.
  bool wait_idle() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kIdleMax, [&] { return idle_; });
  }
  void type(std::size_t at, std::string_view text) {
    static_cast<void>(document_.replace(at, at, text));  // `at` is in the text
  }
  completion::Receipt ask(std::size_t cursor) {
    busy();
    completion::Request request;
    request.document.uri = kUri;
    request.snapshot = document_.snapshot();
    request.cursor = cursor;
    request.options.tokens_max = 2;
    request.options.confidence = 0;
    request.may_be_stored = store_ != nullptr;
    request.arrived = Clock::now();
    const auto answer = std::make_shared<std::promise<completion::Receipt>>();
    service_->submit(std::move(request), [answer](completion::Outcome outcome) {
      answer->set_value(std::move(outcome.receipt));
    });
    return answer->get_future().get();
  }

 private:
  void busy() {
    const std::lock_guard lock(mutex_);
    idle_ = false;
  }
  void note_idle() {
    {
      const std::lock_guard lock(mutex_);
      idle_ = true;
    }
    changed_.notify_all();
  }
  void note_loaded() {
    {
      const std::lock_guard lock(mutex_);
      loaded_ = true;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool loaded_ = false;
  bool idle_ = false;
  text::Document document_;
  std::shared_ptr<service::OpenedModel> opened_ = std::make_shared<service::OpenedModel>();
  std::shared_ptr<store::StoreService> store_;
  std::unique_ptr<completion::CompletionService> service_;  ///< first to go: it uses all of these
};

std::vector<fs::path> arenas(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".kv") files.push_back(entry.path());
  return files;
}

/// Reading the file finds nothing of it in memory, as far as the system follows the advice.
store::FileHandle open_uncached(const fs::path& file) {
  store::FileHandle handle(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!handle) return handle;
  ::fsync(handle.get());
#if defined(POSIX_FADV_DONTNEED)
  ::posix_fadvise(handle.get(), 0, 0, POSIX_FADV_DONTNEED);
#endif
  return handle;
}

/// The files from end to end.
double read_mb_s(const fs::path& folder) {
  std::vector<char> buffer(kReadBytes);
  double bytes = 0, time_s = 0;
  for (const fs::path& file : arenas(folder)) {
    const store::FileHandle handle = open_uncached(file);
    if (!handle) continue;
    const auto begin = Clock::now();
    for (ssize_t got = 0; (got = ::read(handle.get(), buffer.data(), buffer.size())) > 0;)
      bytes += static_cast<double>(got);
    time_s += seconds_since(begin);
  }
  return time_s > 0 ? bytes / time_s / 1e6 : 0;
}

/// One of the two that are compared, and where it is in its text.
struct Typed {
  Life& life;
  std::size_t cursor;
};

/// Characters typed one after the other at a person's pace; their receipts.
std::vector<completion::Receipt> type_keys(Typed& typed, int first, int keys) {
  std::vector<completion::Receipt> receipts;
  auto due = Clock::now();
  for (int key = first; key < first + keys; ++key) {
    typed.life.type(typed.cursor, kTyped.substr(static_cast<std::size_t>(key) % kTyped.size(), 1));
    receipts.push_back(typed.life.ask(++typed.cursor));
    due += std::chrono::milliseconds(kKeyMs);
    std::this_thread::sleep_until(due);
  }
  return receipts;
}

bool same_work(const completion::Receipt& one, const completion::Receipt& other) {
  return one.prompt_tokens == other.prompt_tokens &&
         one.evaluated_tokens == other.evaluated_tokens && one.source == other.source;
}

tl::unexpected<Error> not_idle() {
  return fail(Fault::kNotReady, "the machine is too slow or too busy: idle work did not end",
              "use fewer prompt tokens");
}

/// Keys in turns with a store and without, each turn once both are idle.
Result<void> compare_keys(Typed with, Typed without, int keys, KeepingResult& result) {
  std::vector<double> more_ms;
  for (int first = 0, turn = 0; first < keys; first += kKeysInTurn, ++turn) {
    const int count = std::min(kKeysInTurn, keys - first);
    std::vector<completion::Receipt> of_with, of_without;
    for (const bool keeps : {turn % 2 == 0, turn % 2 != 0}) {
      if (!with.life.wait_idle() || !without.life.wait_idle()) return not_idle();
      (keeps ? of_with : of_without) = type_keys(keeps ? with : without, first, count);
    }
    for (std::size_t key = 0; key < of_with.size(); ++key) {
      if (!same_work(of_with[key], of_without[key])) {
        ++result.keys_apart;
        continue;
      }
      const double with_ms = first_ms(of_with[key]), without_ms = first_ms(of_without[key]);
      result.without_ms.add(without_ms);
      result.with_ms.add(with_ms);
      result.more_ms.add(with_ms - without_ms);
      more_ms.push_back(with_ms - without_ms);
    }
  }
  result.more_ms_median = median_interval(std::move(more_ms));
  return {};
}

}  // namespace

Result<KeepingResult> run_keeping(const KeepingSetup& setup) {
  KeepingResult result;
  const std::size_t middle = setup.text.find('\n', setup.text.size() / 2);
  std::size_t cursor = std::min(middle, setup.text.size());
  {
    Life first(setup, true);
    const completion::ServiceStatus status = first.status();
    if (status.state != completion::EngineState::kReady)
      return fail(Fault::kNotFound, status.failure);
    result.description =
        first.model_name() + " on " + status.device_kind + " (" + status.device_name + ")";
    first.open();
    result.cold = first.ask(cursor);
    if (!first.wait_idle()) return not_idle();
  }
  result.disk_mb_s = read_mb_s(setup.folder);
  for (const fs::path& file : arenas(setup.folder)) open_uncached(file);
  Life second(setup, true);
  second.open();
  if (!second.wait_idle()) return not_idle();
  result.load_mb_s = second.load_bytes_per_s() / 1e6;
  second.type(cursor, " ");
  result.warm = second.ask(cursor + 1);
  Life plain(setup, false);
  plain.open();
  plain.ask(cursor);
  if (!plain.wait_idle()) return not_idle();
  plain.type(cursor, " ");
  result.unbroken = plain.ask(cursor + 1);
  if (auto done = compare_keys({second, cursor + 1}, {plain, cursor + 1}, setup.keys, result);
      !done)
    return tl::unexpected(done.error());
  return result;
}

}  // namespace efimd::bench
