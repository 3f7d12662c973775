#include <catch2/catch.hpp>
#include <string>

#include "daemon/prompt/planner.h"
#include "tests/support/marked.h"
#include "tests/support/scripted_engine.h"

using namespace efimd;

namespace {

prompt::Plan plain_plan(const std::string& source, int prompt_tokens = 2048) {
  const test::ScriptedTokenizer tokenizer;
  const test::Marked place = test::marked(source);
  const text::Document document(place.text);
  prompt::Spine spine(tokenizer);
  return prompt::plain(*document.snapshot(), place.cursor, spine, tokenizer,
                       prompt::Windows::of(prompt_tokens, 0));
}

std::string spelled(const std::vector<engine::TokenId>& tokens) {
  const test::ScriptedTokenizer tokenizer;
  std::string text;
  for (const engine::TokenId token : tokens) text += tokenizer.bytes(token);
  return text;
}

}  // namespace

TEST_CASE("plain FIM cuts the text at the cursor and has no increment") {
  const prompt::Plan plan = plain_plan("int a;\nint b = ^;\nint c;\n");
  CHECK(spelled(plan.anchor.before) == "int a;\nint b = ");
  CHECK(spelled(plan.anchor.after) == ";\nint c;\n");
  CHECK(plan.anchor.increment.empty());
  CHECK(plan.tail_end == plan.cursor);
  CHECK(plan.tokens.size() == plan.anchor.before.size() + plan.anchor.after.size() + 3);
}

TEST_CASE("plain FIM keeps to the windows of a full view") {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "line " + std::to_string(i) + "\n";
  const std::size_t middle = text.find("line 200");
  const prompt::Plan plan = plain_plan(text.substr(0, middle) + "^" + text.substr(middle), 300);
  const auto windows = prompt::Windows::of(300, 0);
  CHECK(std::ssize(plan.anchor.before) <= windows.before_max);
  CHECK(std::ssize(plan.anchor.before) > windows.before_max / 4);
  CHECK(std::ssize(plan.anchor.after) <= windows.after_max);
  CHECK(plan.anchor.window_begin > 0);
}
