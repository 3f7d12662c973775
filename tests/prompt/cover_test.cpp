#include "daemon/prompt/cover.h"

#include <catch2/catch.hpp>

#include "tests/support/scripted_engine.h"

using namespace efimd;
using prompt::Anchor;
using prompt::CoveredToken;

namespace {

/// Tokens of `text`, each marked as the model's own or typed.
std::vector<CoveredToken> covered(const test::ScriptedTokenizer& tokenizer, std::string_view text,
                                  bool generated) {
  std::vector<CoveredToken> tokens;
  for (const engine::TokenId id : tokenizer.encode(text, engine::Fragment::kInside))
    tokens.push_back({id, tokenizer.bytes(id).size(), generated});
  return tokens;
}

std::string spelled(const test::ScriptedTokenizer& tokenizer,
                    const std::vector<CoveredToken>& tokens) {
  std::string text;
  for (const CoveredToken& token : tokens) text += tokenizer.bytes(token.id);
  return text;
}

}  // namespace

TEST_CASE("typed text becomes what a fresh tokenization of its line gives") {
  const test::ScriptedTokenizer tokenizer;
  Anchor anchor;
  std::string typed;
  for (const char c : std::string("for (int i = 0; i < n; ++i) return i;")) {
    typed += c;
    anchor.increment = prompt::cover(typed, anchor, tokenizer);
    CHECK(anchor.increment == covered(tokenizer, typed, false));
  }
}

TEST_CASE("lines in front of the last are not tokenized again") {
  const test::ScriptedTokenizer tokenizer;
  Anchor anchor;
  for (const CoveredToken& token : covered(tokenizer, "r", false))
    anchor.increment.push_back(token);
  for (const CoveredToken& token : covered(tokenizer, "eturn\n", false))
    anchor.increment.push_back(token);
  const auto tokens = prompt::cover("return\nx", anchor, tokenizer);
  CHECK(spelled(tokenizer, tokens) == "return\nx");
  CHECK(std::equal(anchor.increment.begin(), anchor.increment.end(), tokens.begin()));
}

TEST_CASE("generated tokens keep their ids though typed text follows on their line") {
  const test::ScriptedTokenizer tokenizer;
  Anchor anchor;
  anchor.increment = covered(tokenizer, "re", true);
  const auto tokens = prompt::cover("return", anchor, tokenizer);
  CHECK(std::equal(anchor.increment.begin(), anchor.increment.end(), tokens.begin()));
  CHECK(spelled(tokenizer, tokens) == "return");
}

TEST_CASE("an offer is adopted at the place where it was made, and only there") {
  const test::ScriptedTokenizer tokenizer;
  Anchor anchor;
  anchor.increment = covered(tokenizer, "x ", false);
  prompt::offer(anchor, covered(tokenizer, "return", true));
  CHECK(prompt::cover("x return", anchor, tokenizer).back().generated);
  CHECK_FALSE(prompt::cover("xx return", anchor, tokenizer).back().generated);
  CHECK_FALSE(prompt::cover("return", anchor, tokenizer).back().generated);
}

TEST_CASE("typed tokens that the model spelled otherwise give way to its own, as far as typed") {
  const test::ScriptedTokenizer tokenizer;
  Anchor anchor;
  anchor.increment = covered(tokenizer, "x ret", false);  // "x", " ", "re", "t"
  auto healed = covered(tokenizer, "r", true);
  for (const CoveredToken& token : covered(tokenizer, "eturn", true)) healed.push_back(token);
  prompt::offer(anchor, healed, 2);
  const auto typed_on = prompt::cover("x retu", anchor, tokenizer);
  CHECK(spelled(tokenizer, typed_on) == "x retu");
  CHECK(typed_on[2] == healed[0]);
  const auto accepted = prompt::cover("x return", anchor, tokenizer);
  CHECK(std::equal(healed.begin(), healed.end(), accepted.begin() + 2, accepted.end()));
  CHECK(prompt::cover("x r", anchor, tokenizer).back() == healed[0]);
  CHECK(spelled(tokenizer, prompt::cover("x no", anchor, tokenizer)) == "x no");
}

TEST_CASE("deleting into a generated token keeps the ones in front of it") {
  const test::ScriptedTokenizer tokenizer;
  Anchor anchor;
  anchor.increment = covered(tokenizer, "return return", true);
  const auto tokens = prompt::cover("return retur", anchor, tokenizer);
  CHECK(tokens.front() == anchor.increment.front());
  CHECK(spelled(tokenizer, tokens) == "return retur");
  CHECK_FALSE(tokens.back().generated);
}
