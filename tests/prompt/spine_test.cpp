#include "daemon/prompt/spine.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/support/scripted_engine.h"

using namespace efimd;

namespace {

std::string lines(int count, int first = 0) {
  std::string text;
  for (int i = first; i < first + count; ++i) text += "int value_" + std::to_string(i) + " = 0;\n";
  return text;
}

struct Bench {
  explicit Bench(const std::string& text) : document(text) {}

  void follow(std::size_t cut, int tokens_max) {
    spine.follow(*document.snapshot(), cut, {tokens_max});
    check();
  }
  /// What must hold whatever was edited: the chain is the window's own tokenization.
  void check() const {
    const std::string_view text = document.snapshot()->bytes();
    REQUIRE(spine.begin() <= spine.end());
    REQUIRE(spine.end() <= text.size());
    const auto where =
        spine.begin() == 0 ? engine::Fragment::kTextStart : engine::Fragment::kInside;
    const auto fresh =
        tokenizer.encode(text.substr(spine.begin(), spine.end() - spine.begin()), where);
    REQUIRE(std::vector<engine::TokenId>(spine.tokens().begin(), spine.tokens().end()) == fresh);
  }

  test::ScriptedTokenizer tokenizer;
  text::Document document;
  prompt::Spine spine{tokenizer};
};

}  // namespace

TEST_CASE("A-5: a small file's spine is the whole file, wherever the cursor is") {
  Bench bench(lines(20));
  for (const std::size_t cut : {0U, 100U, 300U}) {
    bench.follow(cut, 1000);
    CHECK(bench.spine.begin() == 0);
    CHECK(bench.spine.end() == bench.document.snapshot()->bytes().size());
  }
}

TEST_CASE("A-4: the window holds its begin until it shows too little or too much") {
  Bench bench(lines(1000));
  const std::size_t line = lines(1).size();
  bench.follow(8000, 400);
  const std::size_t begin = bench.spine.begin();
  REQUIRE(begin > 0);
  CHECK(bench.document.snapshot()->bytes()[begin - 1] == '\n');
  CHECK(bench.spine.tokens_before(8000) <= 400);
  CHECK(bench.spine.tokens_before(8000) >= 250);
  bench.follow(8000 + 2 * line, 400);
  CHECK(bench.spine.begin() == begin);
  bench.follow(12000, 400);
  CHECK(bench.spine.begin() > begin);
  CHECK(bench.spine.tokens_before(12000) <= 400);
  bench.follow(begin, 400);
  CHECK(bench.spine.begin() < begin);
}

TEST_CASE("A-4: a text that fits the window is taken whole, and a larger one is not") {
  constexpr prompt::Spine::Limits kLimits{400, 4000};
  Bench small(lines(250));
  REQUIRE(small.tokenizer.encode(small.document.snapshot()->bytes()).size() > 1200);
  for (const std::size_t cut : {0U, 3000U, 100U}) {
    small.spine.follow(*small.document.snapshot(), cut, kLimits);
    small.check();
    CHECK(small.spine.is_whole_text());
    REQUIRE(small.document.replace(cut, cut, "int more;\n"));
    CHECK(small.spine.follow_edits(*small.document.snapshot(), cut, kLimits));
    small.check();
    CHECK(small.spine.is_whole_text());
  }
  Bench large(lines(1000));
  large.spine.follow(*large.document.snapshot(), 8000, kLimits);
  large.check();
  CHECK_FALSE(large.spine.is_whole_text());
  CHECK(large.spine.tokens_before(8000) <= 400);
  CHECK_FALSE(large.spine.follow_edits(*large.document.snapshot(), 14000, kLimits));
  CHECK(large.spine.follow_edits(*large.document.snapshot(), 8000, kLimits));
}

TEST_CASE(
    "A-4: a text that grows over the window gets a window in it, and one that shrinks is whole") {
  constexpr prompt::Spine::Limits kLimits{400, 4000};
  Bench bench(lines(250));
  bench.spine.follow(*bench.document.snapshot(), 3000, kLimits);
  REQUIRE(bench.spine.is_whole_text());
  REQUIRE(bench.document.replace(0, 0, lines(700)));
  bench.spine.follow(*bench.document.snapshot(), 12000, kLimits);
  bench.check();
  CHECK_FALSE(bench.spine.is_whole_text());
  REQUIRE(bench.document.replace(0, lines(700).size(), ""));
  bench.spine.follow(*bench.document.snapshot(), 3000, kLimits);
  bench.check();
  CHECK(bench.spine.is_whole_text());
}

TEST_CASE("an edit in front of the window moves it, one behind it does not") {
  Bench bench(lines(1000));
  bench.follow(8000, 400);
  const std::size_t begin = bench.spine.begin();
  REQUIRE(bench.document.replace(0, 0, "// a note\n"));
  bench.follow(8010, 400);
  CHECK(bench.spine.begin() == begin + 10);
  REQUIRE(bench.document.replace(bench.spine.end() + 5, bench.spine.end() + 6, ""));
  bench.follow(8010, 400);
  CHECK(bench.spine.begin() == begin + 10);
}

TEST_CASE("text that is appended at the end of a whole file joins the chain") {
  Bench bench("int a;\n");
  bench.follow(7, 400);
  REQUIRE(bench.document.replace(7, 7, "int b;\n"));
  bench.follow(14, 400);
  CHECK(bench.spine.end() == 14);
}

TEST_CASE("whatever is edited, the chain is the window's own tokenization") {
  std::mt19937 random(11);
  const auto pick = [&](std::size_t n) { return random() % n; };
  const std::vector<std::string> pieces = {"a", "\n", "int x = 1;\n", "\u20ac", "", "  "};
  for (int round = 0; round < 20; ++round) {
    Bench bench(lines(static_cast<int>(pick(200))));
    for (int step = 0; step < 60; ++step) {
      const std::size_t size = bench.document.snapshot()->bytes().size();
      for (std::size_t edits = pick(3); edits > 0; --edits) {
        const std::size_t begin = pick(size + 1);
        const std::size_t end = std::min(size, begin + pick(4) * pick(30));
        REQUIRE(bench.document.replace(begin, end, pieces[pick(pieces.size())]));
      }
      const std::size_t now = bench.document.snapshot()->bytes().size();
      const auto& index = bench.document.snapshot()->lines();
      const std::size_t cut = index.start(index.line_of(pick(now + 1)));
      bench.follow(cut, 200);
      REQUIRE(bench.spine.begin() <= cut);
      REQUIRE(bench.spine.end() >= cut);
      REQUIRE(bench.spine.tokens_before(cut) <= 200);
    }
  }
}
