#include <algorithm>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/completion/completion.h"
#include "daemon/completion/generate/healing.h"
#include "daemon/models/engine_host.h"
#include "daemon/prompt/choose.h"
#include "daemon/prompt/planner.h"
#include "daemon/text/document.h"
#include "engine/model/model.h"

using namespace efimd;

namespace {

const std::filesystem::path kSource = EFIMD_SOURCE_DIR;
const std::filesystem::path kModel = EFIMD_SMALL_MODEL;
constexpr std::size_t kKvBytes = std::size_t{64} << 20;
/// Tokens that a key may cost: those looked ahead for are spelled as typed again.
constexpr int kHandful = 10;

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A value that another thread sets once.
template <class T>
class Promise {
 public:
  void set(T value) {
    {
      const std::lock_guard lock(mutex_);
      value_ = std::move(value);
    }
    ready_.notify_all();
  }
  T wait() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return value_.has_value(); });
    return std::move(*value_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::optional<T> value_;
};

/// A person at a file, with the service and the model that the daemon would run.
class Typist {
 public:
  explicit Typist(const std::string& text)
      : document_(text),
        service_(
            service::make_engine_factory({.model = kModel, .kv_budget_bytes = kKvBytes},
                                         std::make_shared<service::OpenedModel>()),
            // Idle time would make fuller views of the text between two keys of a slow machine.
            {.prompt_tokens_max = 900, .settle = std::chrono::hours(1)},
            [this] { loaded_.set(true); }) {
    loaded_.wait();
    REQUIRE(service_.status().failure.empty());
  }

  void replace(std::size_t begin, std::size_t end, std::string_view text) {
    REQUIRE(document_.replace(begin, end, text));
  }
  void type(std::string_view text) {
    replace(cursor, cursor, text);
    cursor += text.size();
  }
  completion::Outcome ask(int tokens_max = 2) {
    completion::Request request;
    request.document = {1, "file:///typed.cpp"};
    request.snapshot = document_.snapshot();
    request.cursor = cursor;
    request.options.tokens_max = tokens_max;
    request.options.stop = completion::StopRule::kNone;
    request.options.time_max_ms = 600'000;
    request.options.healing = healing;
    request.arrived = std::chrono::steady_clock::now();
    // Shared, for the engine thread may still be in set() when the answer is taken.
    const auto answer = std::make_shared<Promise<completion::Outcome>>();
    service_.submit(std::move(request),
                    [answer](completion::Outcome outcome) { answer->set(std::move(outcome)); });
    return answer->wait();
  }
  int evaluated() {
    const completion::Receipt receipt = ask().receipt;
    CHECK(receipt.evaluated_tokens + receipt.reused_tokens == receipt.prompt_tokens);
    return receipt.evaluated_tokens;
  }

  std::size_t cursor = 0;
  completion::Healing healing = completion::Healing::kAuto;

 private:
  text::Document document_;
  Promise<bool> loaded_;
  completion::CompletionService service_;
};

/// A file with the first lines of a function taken out, which are then typed again. They fit one hole.
struct Exercise {
  std::string open, typed;
  std::size_t at = 0;
};

Exercise exercise() {
  const std::string text = file_text(kSource / "daemon/prompt/planner.cpp");
  const std::size_t begin = text.find("Plan plan_for(Anchor anchor");
  const std::size_t end = text.find('\n', begin + 250) + 1;
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != 0);
  return {text.substr(0, begin) + "\n" + text.substr(end), text.substr(begin, end - begin), begin};
}

/// Judges what requests cost. How far idle time came with a fuller view differs from run to run, and
/// a request may finish it: that may happen once a grown increment.
struct Costs {
  int fuller_views = 0;

  /// `tokens` again: at most `allowed`, or those and what a fuller view may cost.
  int check(int tokens, int allowed) {
    const int more = tokens - allowed;
    CHECK(prompt::StepCosts().ms(more) <= prompt::kFullerMs);
    fuller_views += more > 0 ? 1 : 0;
    return tokens;
  }
};

}  // namespace

TEST_CASE("typing a file costs a handful of tokens a keystroke, accepting its own tokens") {
  const auto model = engine::Model::open(kModel);
  REQUIRE(model);
  const Exercise work = exercise();
  Typist typist(work.open);
  typist.cursor = work.at;
  typist.healing = GENERATE(completion::Healing::kOn, completion::Healing::kOff);
  // Healed tokens are spelled as typed again, once the text goes on after them.
  const int healed = typist.healing == completion::Healing::kOn ? completion::kHealedTokensMax : 0;
  typist.ask();
  Costs costs;
  int typed = 0, typed_cost = 0;
  for (std::size_t at = 0; at < work.typed.size();) {
    const std::size_t line_end = work.typed.find('\n', at);
    const std::string line = work.typed.substr(at, line_end - at);
    INFO("at " << line);
    const std::size_t by_hand =
        line.size() * 2 / 3;  // the rest comes at once, as an accepted suggestion does
    for (std::size_t i = 0; i < by_hand; ++i) {
      typist.type(line.substr(i, 1));
      typed_cost += costs.check(typist.evaluated(), kHandful);
      ++typed;
    }
    if (const std::string rest = line.substr(by_hand); !rest.empty()) {
      typist.type(rest);
      const auto own = (*model)->tokenizer().encode(rest, engine::Fragment::kInside).size();
      costs.check(typist.evaluated(), static_cast<int>(own) + std::max(healed, 1));
    }
    typist.type("\n");
    costs.check(typist.evaluated(), 1 + healed);
    at = line_end + 1;
  }
  CAPTURE(typed, typed_cost, costs.fuller_views);
  CHECK(typed_cost <= 2 * typed);
  CHECK(costs.fuller_views <= 1 + typed / static_cast<int>(prompt::kGrownTokens));
}

TEST_CASE("backspace and the same letter again cost a token or two") {
  const Exercise work = exercise();
  Typist typist(work.open);
  typist.cursor = work.at;
  typist.type("  Anchor next = anch");
  typist.ask();
  Costs costs;
  int sum = 0;
  for (int i = 0; i < 5; ++i) {
    typist.replace(typist.cursor - 1, typist.cursor, "");
    --typist.cursor;
    sum += costs.check(typist.evaluated(), kHandful);
    typist.type("h");
    sum += costs.check(typist.evaluated(), kHandful);
  }
  CHECK(sum <= 25);
  CHECK(costs.fuller_views == 0);
}

TEST_CASE("accepting the suggestion that is shown evaluates next to nothing") {
  const Exercise work = exercise();
  Typist typist(work.open);
  typist.cursor = work.at;
  typist.type("Plan plan_for(Anchor");
  const completion::Outcome shown = typist.ask(12);
  REQUIRE(shown.item);
  typist.replace(shown.item->replace_begin, shown.item->replace_end, shown.item->text);
  typist.cursor = shown.item->replace_begin + shown.item->text.size();
  CHECK(typist.evaluated() <= 3);
}

TEST_CASE("asking again where nothing changed evaluates the last token at most") {
  const Exercise work = exercise();
  Typist typist(work.open);
  typist.cursor = work.at;
  CHECK(typist.evaluated() > 100);
  CHECK(typist.evaluated() <= 1);
}
