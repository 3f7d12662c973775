// The rules A-n (docs/efim.md) and KV-n (engine/kv) over random editing on the real engine: what a
// prompt shows is the text, what it costs is what the receipt says, and what is suggested is what an
// engine without any cache says to the same prompt.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <span>

#include "daemon/completion/answer/worker.h"
#include "daemon/completion/generate/healing.h"
#include "daemon/models/engine_host.h"
#include "daemon/prompt/places.h"
#include "tests/keystrokes/random_editor.h"

using namespace efimd;
using completion::DocumentState;
using completion::Suggestion;
using engine::TokenId;
using test::RandomEditor;

namespace {

const std::filesystem::path kSource = EFIMD_SOURCE_DIR;
const std::filesystem::path kModel = EFIMD_SMALL_MODEL;
constexpr int kPromptTokens = 300;
constexpr int kNearTokens = 90;

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::unique_ptr<engine::Engine> open_engine(std::size_t kv_bytes) {
  const auto factory = service::make_engine_factory(
      {.model = kModel, .weights = engine::WeightsForm::kPanels, .kv_budget_bytes = kv_bytes},
      std::make_shared<service::OpenedModel>());
  auto engine = factory([](double) {}, {});
  REQUIRE(engine);
  return std::move(*engine);
}

/// A device on which a long prompt is worth avoiding, so that all views are chosen.
completion::Budgets budgets(int wide_tokens = 0) {
  completion::Budgets budgets;
  budgets.wide_tokens_max = wide_tokens;
  budgets.prompt_tokens_max = kPromptTokens;
  budgets.near_tokens_max = kNearTokens;
  budgets.costs.points = {{1, 10}, {64, 100}, {256, 400}};
  budgets.settle = std::chrono::milliseconds(0);
  return budgets;
}

/// Says what a prompt is continued with, and keeps nothing.
class Uncached {
 public:
  std::vector<prompt::CoveredToken> continues(const completion::Request& request,
                                              const Suggestion& suggestion, int typed) {
    constexpr engine::SourceId kOwn{1};
    const engine::SequenceId sequence = engine_->open_sequence();
    engine_->set_source(sequence, kOwn);
    const auto held = engine_->prefill(sequence, suggestion.prompt, {.logits_rows = 1 + typed});
    REQUIRE(held);
    REQUIRE(held->evaluated == static_cast<int>(suggestion.prompt.size()));
    completion::GenerationSetting setting{*engine_, sequence, {}};
    if (typed > 0) setting.typed.emplace(completion::TypedEnd{order_, typed});
    completion::Options options = request.options;
    options.tokens_max = std::max(1, suggestion.generated.new_tokens);
    completion::StopRules rules(
        options.stop, completion::stop_place(
                          completion::context_of(request, *suggestion.snapshot, suggestion.begin)));
    auto generated = completion::generate(setting, options, rules);
    REQUIRE(generated);
    engine_->close_sequence(sequence);
    engine_->forget(kOwn);
    return std::move(generated->tokens);
  }

 private:
  std::unique_ptr<engine::Engine> engine_ = open_engine(std::size_t{4} << 20);
  engine::ByteOrder order_{engine_->tokenizer()};
};

std::string spelled(const engine::Tokenizer& tokenizer, std::span<const TokenId> tokens) {
  std::string text;
  for (const TokenId token : tokens) text += tokenizer.bytes(token);
  return text;
}

/// Whether the spine was brought to the text that the anchors are of: by a new anchor, or idle time.
enum class Spine { kCurrent, kOlder };

/// of one anchor, and A-5.
void check_anchor(const prompt::Anchor& anchor, const DocumentState& document, Spine spine,
                  const engine::Tokenizer& tokenizer) {
  const text::Snapshot& snapshot = *document.snapshot;
  const std::string_view text = snapshot.bytes();
  if (anchor.serial != snapshot.serial() || anchor.state != prompt::Anchor::State::kGood) return;
  const prompt::Windows& windows = document.windows;
  REQUIRE(anchor.window_begin <= anchor.cut);
  REQUIRE(anchor.cut <= anchor.resume);
  REQUIRE(anchor.resume <= anchor.window_end);
  REQUIRE(anchor.window_end <= text.size());
  CHECK(spelled(tokenizer, anchor.before) ==
        text.substr(anchor.window_begin, anchor.cut - anchor.window_begin));
  CHECK(spelled(tokenizer, anchor.after) ==
        text.substr(anchor.resume, anchor.window_end - anchor.resume));
  const int whole = windows.whole_max;
  CHECK(static_cast<int>(anchor.before.size()) <=
        std::max(whole, windows.before_max + windows.before_max / 4));
  CHECK(static_cast<int>(anchor.after.size()) <= std::max(whole, windows.after_max));
  // A busy machine has a near view of so few tokens that one line may be longer.
  const std::string_view before =
      text.substr(anchor.window_begin, anchor.cut - anchor.window_begin);
  CHECK((anchor.window_begin == 0 || text[anchor.window_begin - 1] == '\n' ||
         before.find('\n') == std::string_view::npos));
  if (spine == Spine::kOlder || anchor.view == prompt::View::kNear ||
      document.spine.begin() != anchor.window_begin || !document.spine.is_border(anchor.cut))
    return;
  const auto leading = document.spine.tokens().first(document.spine.tokens_before(anchor.cut));
  CHECK(std::ranges::equal(leading, anchor.before));
}

/// The prompt's increment is what stands between the cut and the cursor, and what stands
/// after the cursor is no more than a tail.
void check_increment(const prompt::Anchor& anchor, const text::Snapshot& snapshot,
                     std::size_t cursor, const engine::Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  std::size_t covered = 0;
  for (const prompt::CoveredToken& token : anchor.increment) {
    ids.push_back(token.id);
    covered += token.bytes;
  }
  CHECK(anchor.cut + covered == cursor);
  const std::string_view text = snapshot.bytes();
  CHECK(text.substr(anchor.cut, covered).starts_with(spelled(tokenizer, ids).substr(0, covered)));
  CHECK(prompt::only_closers_and_blanks(text.substr(cursor, anchor.resume - cursor)));
}

/// A person, the worker that the daemon would run, and an engine that keeps nothing beside it.
class Session {
 public:
  Session(unsigned seed, completion::Healing healing, std::size_t kv_bytes, int wide_tokens = 0)
      : editor_(files(), seed),
        healing_(healing),
        roomy_(kv_bytes >= std::size_t{16} << 20),
        worker_(open_engine(kv_bytes), {budgets(wide_tokens), 3, &index_}) {}

  void run(int events) {
    for (int at = 0; at < events; ++at) {
      const std::string_view act = editor_.act();
      CAPTURE(at, act);
      ask();
      if (editor_.pick(4) == 0) rest();
      if (editor_.pick(40) == 0) worker_.close(key());
    }
  }

  int drafted = 0, accepted = 0;
  int answers = 0, compared = 0, from_memory = 0, healed = 0;
  double widest = 0;  ///< most of a file that a prompt showed

 private:
  static std::vector<RandomEditor::File> files() {
    std::vector<RandomEditor::File> files;
    for (const char* name : {"daemon/prompt/planner.cpp", "engine/kv/kv_pool.cpp",
                             "scripts/test_summary.py", "docs/protocol.md"}) {
      const std::string text = file_text(kSource / name);
      REQUIRE(text.size() > 500);
      files.push_back({"file:///" + std::string(name), text::Document(text), text.size() / 2});
    }
    return files;
  }
  completion::DocumentKey key() { return {1, editor_.file().uri}; }
  const engine::Tokenizer& tokenizer() const { return worker_.engine().tokenizer(); }

  completion::Request request() {
    completion::Request made;
    made.document = key();
    made.home = {"/project", made.document.uri};  // so that recall drafts
    made.snapshot = editor_.file().document.snapshot();
    made.cursor = editor_.file().cursor;
    made.options.tokens_max = 6;
    made.options.time_max_ms = 600'000;
    made.options.healing = healing_;
    made.options.confidence = 0;
    made.arrived = std::chrono::steady_clock::now();
    return made;
  }

  void ask() {
    const completion::Request asked = request();
    completion::Job job(asked, [](const completion::Outcome&) {});
    const completion::Answer answer = worker_.serve(job);
    const completion::Receipt& receipt = answer.outcome.receipt;
    REQUIRE_FALSE(answer.outcome.superseded);
    const std::string taken = answer.plan ? answer.plan->taken : std::string();
    CAPTURE(receipt.source, receipt.reason, receipt.evaluated_tokens, receipt.prompt_tokens, taken);
    CHECK(receipt.reused_tokens + receipt.evaluated_tokens == receipt.prompt_tokens);
    CHECK((answer.outcome.item.has_value() || !receipt.reason.empty()));
    check_memory();

    const DocumentState* document = worker_.documents().find(asked.document);
    REQUIRE(document != nullptr);
    for (const completion::KeptAnchor& kept : document->anchors)
      check_anchor(kept.anchor, *document, Spine::kOlder, tokenizer());
    const std::size_t cursor = document->asked->cursor;
    drafted += receipt.drafted_tokens;
    accepted += receipt.accepted_tokens;
    if (receipt.prompt_tokens > 0) {  // the model was asked
      const prompt::Anchor& anchor = document->anchors.front().anchor;
      const Suggestion& suggestion = document->suggestions.front();
      // A generation that went on has the plan that it began with, and the tail that was typed then.
      const bool went_on = suggestion.snapshot != asked.snapshot;
      if (!went_on) {
        check_increment(anchor, *asked.snapshot, cursor, tokenizer());
        check_first_answer(receipt, anchor);
      }
      const bool known = !went_on || healing_ == completion::Healing::kOff;
      if (++answers % kComparedEvery == 0 && known) compare(suggestion, *document);
    } else {
      CHECK(receipt.evaluated_tokens == 0);
      ++from_memory;
    }
    healed += receipt.healed_tokens;
    widest = std::max(widest, receipt.shown);
    if (answer.outcome.item) check_item(*answer.outcome.item, asked, cursor);
    editor_.file().shown = answer.outcome.item;
  }

  /// a window is not waited for. What near views cost is their tokens, and the typed line's.
  /// In little memory making room may take what the plan counted on.
  void check_first_answer(const completion::Receipt& receipt, const prompt::Anchor& anchor) {
    const double ms = budgets().costs.ms(receipt.evaluated_tokens);
    constexpr int kFraming = 4;
    const int near = kNearTokens + kFraming + static_cast<int>(anchor.increment.size());
    if (roomy_) CHECK((ms <= prompt::kFirstAnswerMs || receipt.evaluated_tokens <= near));
  }

  void check_item(const completion::Item& item, const completion::Request& asked,
                  std::size_t cursor) {
    const std::string_view text = asked.snapshot->bytes();
    CHECK(item.replace_begin == cursor);
    REQUIRE(item.replace_end >= cursor);
    REQUIRE(item.replace_end <= text.size());
    const std::string_view swallowed = text.substr(cursor, item.replace_end - cursor);
    CHECK(swallowed.find('\n') == std::string_view::npos);
    CHECK(item.text.find('\r') == std::string::npos);
  }

  /// KV-5 and in what they come to: the same tokens, one for one.
  void compare(const Suggestion& suggestion, const DocumentState& document) {
    const prompt::Anchor& anchor = document.anchors.front().anchor;
    const int typed = healing_ == completion::Healing::kOn
                          ? completion::typed_tail(anchor.increment, tokenizer())
                          : 0;
    compare(suggestion, *document.asked, typed);
  }
  void compare(const Suggestion& suggestion, const completion::Request& asked, int typed) {
    const auto fresh = uncached_.continues(asked, suggestion, typed);
    const auto& said = suggestion.generated.tokens;
    REQUIRE(fresh.size() >= said.size());
    CHECK(std::equal(said.begin(), said.end(), fresh.begin()));
    ++compared;
  }

  /// after idle time the cursor's full anchor is there, and doing it again does nothing.
  void rest() {
    CHECK(worker_.idle({}) == completion::kNever);
    check_memory();
    const DocumentState* document = worker_.documents().find(key());
    REQUIRE(document != nullptr);
    for (const completion::KeptAnchor& kept : document->anchors)
      check_anchor(kept.anchor, *document, Spine::kCurrent, tokenizer());
  }

  /// KV-4.
  void check_memory() const {
    const engine::KvUsage usage = worker_.engine().kv_usage();
    CHECK(usage.used_bytes <= usage.budget_bytes);
  }

  static constexpr int kComparedEvery = 4;
  RandomEditor editor_;
  const completion::Healing healing_;
  const bool roomy_;
  recall::Index index_;
  completion::Worker worker_;
  Uncached uncached_;
};

/// Drafts that are right, wrong or right in part, by chance: `plain` is what the model writes.
class DraftsOfSorts : public completion::DraftSource {
 public:
  DraftsOfSorts(const completion::Generated& plain, std::mt19937& random)
      : plain_(plain), random_(random) {}

  std::vector<TokenId> propose(std::string_view written, std::size_t most) override {
    const auto next =
        std::ranges::find(plain_.chances, written.size(), &completion::TokenChance::begin);
    const auto first = plain_.tokens.size() - plain_.chances.size();
    std::size_t at = first + static_cast<std::size_t>(next - plain_.chances.begin());
    std::vector<TokenId> draft;
    for (std::size_t left = random_() % 9; left > 0 && at < plain_.tokens.size(); --left, ++at)
      draft.push_back(plain_.tokens[random_() % 4 == 0 ? random_() % plain_.tokens.size() : at].id);
    if (draft.size() > most) draft.resize(most);
    return draft;
  }
  void stepped(int drafted, int accepted, double) override { CHECK(accepted <= drafted); }

 private:
  const completion::Generated& plain_;
  std::mt19937& random_;
};

/// Generates after the text before `at`, of which the last `typed` tokens may be healed.
completion::Generated generated_at(engine::Engine& engine, std::string_view text, int typed,
                                   completion::DraftSource* drafts) {
  const engine::ByteOrder order(engine.tokenizer());
  const auto prompt = engine.tokenizer().encode(text, engine::Fragment::kInside);
  const engine::SequenceId sequence = engine.open_sequence();
  REQUIRE(engine.prefill(sequence, prompt, {.logits_rows = 1 + typed}));
  completion::GenerationSetting setting{engine, sequence, {}};
  if (typed > 0) setting.typed.emplace(completion::TypedEnd{order, typed});
  setting.drafts = drafts;
  completion::Options options;
  options.tokens_max = 24;
  options.confidence = 0;
  options.time_max_ms = 600'000;
  completion::StopRules rules(completion::StopRule::kNone, {});
  auto made = completion::generate(setting, options, rules);
  REQUIRE(made);
  // What the sequence holds after the prompt is a beginning of what was written, and nothing else.
  const auto held = engine.held(sequence);
  const std::size_t kept = prompt.size() - static_cast<std::size_t>(made->healed);
  REQUIRE(held.size() >= kept);
  for (std::size_t i = kept; i < held.size(); ++i) CHECK(held[i] == made->tokens.at(i - kept).id);
  engine.close_sequence(sequence);
  return std::move(*made);
}

}  // namespace

TEST_CASE(
    "random editing: prompts are the text, answers are the model's, memory is in its budget") {
  const unsigned seed = GENERATE(1U, 2U);
  Session session(seed, completion::Healing::kOff, std::size_t{32} << 20);
  CAPTURE(seed);
  session.run(200);
  CHECK(session.compared > 20);
  CHECK(session.from_memory > 3);
  CHECK(session.accepted > 0);
  CHECK(session.drafted > session.accepted);
}

TEST_CASE("random editing with a wide window") {
  const unsigned seed = GENERATE(1U, 2U);
  Session session(seed, completion::Healing::kOff, std::size_t{32} << 20, 4000);
  CAPTURE(seed);
  session.run(200);
  CHECK(session.compared > 20);
  // The bundled model's context has room for so much of these files; the first window, for a fifth.
  CHECK(session.widest > 0.45);
}

TEST_CASE("random editing with a wide window, in a memory that holds two prompts") {
  Session session(4, completion::Healing::kOff, std::size_t{2} << 20, 4000);
  session.run(200);
  CHECK(session.compared > 20);
}

TEST_CASE("random editing with healing") {
  Session session(3, completion::Healing::kOn, std::size_t{32} << 20);
  session.run(200);
  CHECK(session.compared > 20);
  CHECK(session.healed > 0);
  CHECK(session.accepted > 0);
  CHECK(session.drafted > session.accepted);
}

TEST_CASE("A-12: whatever is drafted on the way, the same tokens are generated") {
  const auto engine = open_engine(std::size_t{8} << 20);
  const std::string text = file_text(kSource / "daemon/prompt/planner.cpp");
  std::mt19937 random(7);
  int drafted = 0, accepted = 0;
  for (const std::size_t at : {text.size() / 5, text.size() / 2 + 3, text.size() * 2 / 3})
    for (const int typed : {0, 2}) {
      const std::string_view before = std::string_view(text).substr(at - 400, 400);
      const completion::Generated plain = generated_at(*engine, before, typed, nullptr);
      DraftsOfSorts drafts(plain, random);
      for (int round = 0; round < 6; ++round) {
        const completion::Generated with = generated_at(*engine, before, typed, &drafts);
        CHECK(with.all_text == plain.all_text);
        CHECK(with.new_tokens == plain.new_tokens);
        CHECK(with.healed == plain.healed);
        CHECK(with.end == plain.end);
        CHECK(with.confidence == plain.confidence);
        CHECK(with.work.steps + with.work.accepted >= plain.work.steps);
        drafted += with.work.drafted, accepted += with.work.accepted;
      }
    }
  CHECK(accepted > 0);
  CHECK(drafted > accepted);
}

TEST_CASE("random editing in a memory that holds two prompts") {
  Session session(4, completion::Healing::kOff, std::size_t{1} << 20);
  session.run(200);
  CHECK(session.compared > 20);
}

// Not run by itself: properties_test "[long]".
TEST_CASE("random editing, at length", "[.long]") {
  const unsigned seed = GENERATE(range(100U, 130U));
  CAPTURE(seed);
  const std::size_t memory = std::size_t{1} << (20 + seed % 3 * 2);
  Session(seed, seed % 2 == 0 ? completion::Healing::kOff : completion::Healing::kOn, memory)
      .run(200);
}
