#include <catch2/catch.hpp>
#include <map>

#include "tests/completion/golden_cases.h"
#include "tests/completion/harness.h"

using namespace efimd;
using test::GoldenCase;
using test::Harness;

namespace {

constexpr char kGoldenUri[] = "file:///golden";

std::map<std::size_t, double> chances_of(const GoldenCase& golden) {
  std::map<std::size_t, double> chances;
  for (const std::string& each : golden.unsure) {
    const std::size_t blank = each.find(' ');
    const std::size_t at = golden.raw.find(each.substr(blank + 1));
    INFO("unsure: " << each);
    REQUIRE(blank != std::string::npos);
    REQUIRE(at != std::string::npos);
    chances[at] = std::stod(each);
  }
  return chances;
}

std::optional<completion::Selected> selected_in(const GoldenCase& golden, std::size_t cursor) {
  if (golden.selected.empty()) return std::nullopt;
  const std::size_t arrow = golden.selected.find(" => "), mark = golden.selected.find('^');
  REQUIRE(mark < arrow);
  REQUIRE(arrow != std::string::npos);
  return completion::Selected{cursor - mark, cursor + (arrow - mark - 1),
                              golden.selected.substr(arrow + 4)};
}

/// Makes `script` say `raw` after the selected text, which no prompt holds.
void says_behind_selected(const GoldenCase& golden, test::EngineScript& script) {
  script.continues_everywhere = true;
  script.continuation = [&golden](const test::ScriptedPrompt& prompt) {
    const std::string selected = golden.selected.substr(golden.selected.find(" => ") + 4);
    const std::string_view raw = golden.raw;
    for (std::size_t said = raw.size() + 1; said-- > 0;)
      if (prompt.increment.ends_with(selected + std::string(raw.substr(0, said))))
        return std::string(raw.substr(said));
    return std::string();
  };
}

/// An item as the case writes it: what it replaces and its text.
std::string described(const std::string& replaces, const std::string& text) {
  return "\"" + replaces + "\" becomes:\n" + text;
}

std::string described(const completion::Item& item, const Harness& harness) {
  const std::string_view bytes = harness.documents.at(kGoldenUri).snapshot()->bytes();
  const std::size_t cursor = harness.cursors.at(kGoldenUri);
  return described(std::string(bytes.substr(item.replace_begin, cursor - item.replace_begin)) +
                       "^" + std::string(bytes.substr(cursor, item.replace_end - cursor)),
                   item.text);
}

void check(const GoldenCase& golden) {
  auto script = std::make_shared<test::EngineScript>();
  std::string says = golden.rejected;
  script->continuation = [&](const auto&) { return says; };
  if (!golden.selected.empty()) says_behind_selected(golden, *script);
  Harness harness(script);
  harness.set(golden.buffer, kGoldenUri);
  harness.options.tokens_max = 1000;
  if (!golden.rejected.empty()) {
    CHECK(harness.ask(kGoldenUri).item);
    harness.type("~", kGoldenUri);
    harness.ask(kGoldenUri);
    harness.erase(1, kGoldenUri);
  }
  says = golden.raw;
  script->chances = chances_of(golden);
  completion::Request request = harness.request(kGoldenUri);
  request.language_id = golden.language;
  request.selected = selected_in(golden, request.cursor);
  script->alternatives = golden.alternatives;
  request.by_hand = !golden.alternatives.empty();
  const completion::Outcome outcome = harness.submit(request).get();
  CHECK(outcome.receipt.reason == golden.silent);
  std::vector<std::string> shown, expected;
  if (outcome.item) shown.push_back(described(*outcome.item, harness));
  for (const completion::Item& item : outcome.more) shown.push_back(described(item, harness));
  for (const std::string& text : golden.shows) expected.push_back(described(golden.replaces, text));
  CHECK(shown == expected);
}

}  // namespace

TEST_CASE("what is shown for what the model says, by language") {
  const std::vector<GoldenCase> cases = test::golden_cases(EFIMD_GOLDEN_FOLDER);
  REQUIRE_FALSE(cases.empty());
  for (const GoldenCase& golden : cases) {
    DYNAMIC_SECTION(golden.language << ":" << golden.line << " " << golden.name) {
      INFO(golden.buffer << "--- raw\n" << golden.raw);
      CHECK(golden.shows.empty() != golden.silent.empty());
      check(golden);
    }
  }
}
