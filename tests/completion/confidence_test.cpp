#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "daemon/completion/fit/repeats.h"
#include "daemon/completion/fit/unit_ends.h"
#include "daemon/completion/generate/token_probability.h"
#include "tests/support/marked.h"

using namespace efimd;
using namespace efimd::completion;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double exact_probability(std::size_t chosen, const std::vector<float>& logits) {
  double sum = 0;
  for (const float logit : logits)
    if (!std::isnan(logit)) sum += std::exp(static_cast<double>(logit) - logits[chosen]);
  return 1 / sum;
}

/// The text with "|" at each of its units' ends.
std::string units(const std::string& source, const std::string& text,
                  const std::string& language = "cpp") {
  const test::Marked marked = test::marked(source);
  const text::Document document(marked.text);
  const CursorContext place =
      context_at(*document.snapshot(), language_of(language), marked.cursor, marked.cursor);
  std::string shown = text;
  const std::vector<std::size_t> ends = unit_ends(text, place);
  for (auto end = ends.rbegin(); end != ends.rend(); ++end)
    if (end == ends.rbegin() || *end != *(end - 1)) shown.insert(*end, "|");
  return shown;
}

bool near(const std::string& a, const std::string& b, const std::string& language = "cpp") {
  return nearly_equal(a, b, language_of(language));
}

}  // namespace

TEST_CASE("a token's probability is its share of the exponentials") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 6);
  for (const std::size_t size : {1U, 7U, 8U, 1000U, 32003U}) {
    std::vector<float> logits(size);
    for (float& logit : logits) logit = normal(random);
    for (std::size_t chosen = 0; chosen < size; chosen += 1 + size / 5) {
      INFO("token " << chosen << " of " << size);
      const double exact = exact_probability(chosen, logits);
      CHECK(probability_of(static_cast<engine::TokenId>(chosen), logits) ==
            Approx(exact).epsilon(1e-5).margin(1e-9));
    }
  }
}

TEST_CASE("what may not be chosen has no probability and takes none") {
  const std::vector<float> logits = {-kInfinity, 1, std::nanf(""), 1};
  CHECK(probability_of(0, logits) == 0);
  CHECK(probability_of(2, logits) == 0);
  CHECK(probability_of(1, logits) == Approx(0.5));
  CHECK(probability_of(-1, logits) == 0);
  CHECK(probability_of(4, logits) == 0);
  CHECK(probability_of(0, std::vector<float>{-kInfinity, -kInfinity}) == 0);
}

TEST_CASE("statements, arguments and closed brackets are units") {
  CHECK(units("^", "a = b;\nc = d;\n") == "a = b;|\nc = d;|\n");
  CHECK(units("foo(^", "a, b)") == "a|, b)|");
  CHECK(units("^", "foo(a, b).bar(c)") == "foo(a, b)|.bar(c)|");
  CHECK(units("^", "if (x) {\n  y();\n}") == "if (x)| {|\n  y()|;|\n}|");
}

TEST_CASE("strings and comments hold no units") {
  CHECK(units("f(^", "\"a, b\", c)") == "\"a, b\"|, c)|");
  CHECK(units("f(\"^", "a, b\", c)") == "a, b\"|, c)|");
  CHECK(units("^", "a(); // b, c;\n") == "a()|;| // b, c;|\n");
  CHECK(units("^", "x = 'a, b', c", "python") == "x = 'a, b'|, c");
}

TEST_CASE("prose has clauses") {
  CHECK(units("^", "One, two. Three\n", "markdown") == "One,| two.| Three|\n");
  CHECK(units("// ^", "One, two. Three") == "One,| two.| Three");
}

TEST_CASE("a text is kept whole while its product holds") {
  const text::Document document("");
  const CursorContext place = context_at(*document.snapshot(), language_of("cpp"), 0, 0);
  const std::vector<TokenChance> chances = {{0.9, 0}, {0.5, 5}, {0.9, 10}};
  const Confident whole = confident_part("a();\nb();\nc();", chances, place, 0.4);
  CHECK(whole.size == 14);
  CHECK(whole.confidence == Approx(0.405));
  const Confident cut = confident_part("a();\nb();\nc();", chances, place, 0.5);
  CHECK(cut.size == 4);
  CHECK(cut.confidence == Approx(0.9));
  const Confident none = confident_part("a();\nb();\nc();", chances, place, 0.95);
  CHECK(none.size == 0);
  CHECK(none.confidence == Approx(0.9));
}

TEST_CASE("behind a line's text the first token must be likelier than the line's end") {
  const auto finished = [](const char* text, double first, const Options& options = {}) {
    const std::string_view whole = text;
    const std::size_t cursor = whole.find('^');
    std::string without(whole);
    without.erase(cursor, 1);
    const text::Document document(without);
    const CursorContext place =
        context_at(*document.snapshot(), language_of("cpp"), cursor, cursor);
    const std::vector<TokenChance> chances = {{first, 0}, {0.9, 3}};
    return may_be_finished(chances, place, options);
  };
  CHECK(finished("f(a)^\n", 0.59));
  CHECK_FALSE(finished("f(a)^\n", 0.61));
  CHECK_FALSE(finished("  ^\n", 0.1));       // nothing stands there yet
  CHECK_FALSE(finished("f(^, b);\n", 0.1));  // the line goes on
  CHECK(finished("f(a)^\n", 0.61, {.eagerness = Eagerness::kLow}));
  CHECK_FALSE(finished("f(a)^\n", 0.31, {.eagerness = Eagerness::kHigh}));
  CHECK_FALSE(finished("f(a)^\n", 0.1, {.confidence = 0.1F}));
  CHECK_FALSE(finished("f(a)^\n", 0.1, {.stop = StopRule::kNone}));
}

TEST_CASE("lines that differ in their form only are nearly equal") {
  CHECK(near("return a + b;", "  return a+b"));
  CHECK(near("log('done')", "log(\"done\")", "python"));
  CHECK(near("const x = f(a);", "let x = f(a);  // twice", "typescript"));
  CHECK(near("  \"a\": 1", "  \"a\": 1,", "json"));
}

TEST_CASE("lines of one table, and opposites, are not") {
  CHECK_FALSE(near("{\"one\", 1},", "{\"two\", 2},"));
  CHECK_FALSE(near("case 1:", "case 2:"));
  CHECK_FALSE(near("x += 1;", "x -= 1;"));
  CHECK_FALSE(near("if (a < b)", "if (a > b)"));
  CHECK_FALSE(near("}", "{"));
  CHECK_FALSE(near("", ""));
}

TEST_CASE("of two ways out of a block the second is never reached") {
  CHECK(near("return compute(a, b);", "return compute(a, b, c);"));
  CHECK(near("raise ValueError('a')", "raise ValueError('b')", "python"));
  CHECK_FALSE(near("return 0;", "throw 0;"));
  CHECK_FALSE(near("return first(a, b);", "return 0;"));
}
