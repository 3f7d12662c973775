#include "engine/tokenizer/tokenized_text.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "base/utf8.h"
#include "tests/engine/tokenizer/vocabularies.h"

namespace efimd::test {
namespace {

using engine::Fragment;
using engine::TokenId;
using engine::TokenizedText;
using engine::Tokenizer;

std::vector<TokenId> ids(const TokenizedText& text) {
  return {text.tokens().begin(), text.tokens().end()};
}

struct Named {
  std::string name;
  std::unique_ptr<Tokenizer> tokenizer;
};

/// Real vocabularies as far as they are there, the bundled one, and a tiny one of each kind.
std::vector<Named> vocabularies() {
  std::vector<Named> all;
  for (const std::string& name : real_vocabularies())
    all.push_back({name, open_tokenizer(vocabulary_path(name))});
  all.push_back({"efim-boot", open_tokenizer(std::filesystem::path(EFIMD_SOURCE_DIR) / "models" /
                                             "efim-boot.gguf")});
  for (const char* const pre : {"default", "gpt-2", "starcoder", "deepseek-coder", "deepseek-llm",
                                "llama-bpe", "qwen2", "seed-coder"}) {
    TinyModel model;
    model.vocab = TinyModel::Vocab::kByteBpe;
    model.pre = pre;
    all.push_back({"tiny " + model.pre, tiny_tokenizer(model)});
  }
  all.push_back({"tiny sentencepiece", tiny_tokenizer({})});
  auto unigram = tokenizer_of(tiny_model({}).text("tokenizer.ggml.model", "t5"));
  REQUIRE(unigram);
  all.push_back({"tiny unigram", std::move(*unigram)});
  return all;
}

/// What people type and paste, and what pre-tokenizer rules treat differently.
std::string random_insertion(std::mt19937& random) {
  static const std::vector<std::string> kPieces = {
      "a",      "Z",  "return", "_x1",  " ",  "  ",     "\n",      "\n\n",  "\r\n",  "\t",
      "    ",   "0",  "1234",   ".",    ";",  "();",    "'s",      "don't", "->",    "==",
      "// é\n", "你", "½",      "🦙", "\"", "\u00a0", "e\u0301", "▁",     "<|x|>", "{\n    "};
  std::string text;
  for (std::size_t n = random() % 4; n > 0; --n) text += kPieces[random() % kPieces.size()];
  return text;
}

std::size_t down_to_code_point(const std::string& text, std::size_t byte) {
  while (byte > 0 && byte < text.size() && utf8::is_continuation(text[byte])) --byte;
  return byte;
}

struct Edit {
  std::size_t begin, removed;
  std::string inserted;
};

Edit random_edit(const std::string& text, std::mt19937& random) {
  const std::size_t begin = down_to_code_point(text, random() % (text.size() + 1));
  const std::size_t length = random() % 8 == 0 ? random() % 200 : random() % 6;
  const std::size_t end = down_to_code_point(text, std::min(text.size(), begin + length));
  return {begin, std::max(begin, end) - begin, random_insertion(random)};
}

/// The tokens are those of the whole text, and each end is where the token's bytes end.
void check(const TokenizedText& tokens, const std::string& text, const Tokenizer& tokenizer,
           Fragment where) {
  REQUIRE(ids(tokens) == tokenizer.encode(text, where));
  REQUIRE(tokens.ends().size() == tokens.tokens().size());
  if (tokens.ends().empty()) return;
  REQUIRE(tokens.ends().back() == text.size());
  for (std::size_t i = where == Fragment::kTextStart ? 1 : 0; i < tokens.ends().size(); ++i) {
    const std::string_view bytes = tokenizer.bytes(tokens.tokens()[i]);
    const std::size_t begin = tokens.begin_of(i);
    REQUIRE(std::string_view(text).substr(begin, tokens.ends()[i] - begin) == bytes);
  }
}

void check_change(const TokenizedText::Change& change, const std::vector<TokenId>& before,
                  const std::vector<TokenId>& after) {
  REQUIRE(before.size() - change.removed + change.inserted == after.size());
  REQUIRE(change.begin + change.removed <= before.size());
  const auto begin = static_cast<std::ptrdiff_t>(change.begin);
  REQUIRE(std::equal(before.begin(), before.begin() + begin, after.begin()));
  REQUIRE(std::equal(before.begin() + begin + static_cast<std::ptrdiff_t>(change.removed),
                     before.end(),
                     after.begin() + begin + static_cast<std::ptrdiff_t>(change.inserted)));
}

void edit_at_random(const Named& vocabulary, std::string text, Fragment where, int edits) {
  INFO(vocabulary.name);
  std::mt19937 random(11);
  TokenizedText tokens(*vocabulary.tokenizer, where);
  tokens.set(text);
  check(tokens, text, *vocabulary.tokenizer, where);
  for (int i = 0; i < edits; ++i) {
    const Edit edit = random_edit(text, random);
    const std::vector<TokenId> before = ids(tokens);
    text.replace(edit.begin, edit.removed, edit.inserted);
    const auto change = tokens.replace(text, edit.begin, edit.removed, edit.inserted.size());
    CAPTURE(i, edit.begin, edit.removed, edit.inserted);
    check(tokens, text, *vocabulary.tokenizer, where);
    check_change(change, before, ids(tokens));
  }
}

}  // namespace

TEST_CASE("after any edit the tokens are those of the whole text") {
  const std::string code = real_code();
  for (const Named& vocabulary : vocabularies()) {
    edit_at_random(vocabulary, code.substr(0, 3000), Fragment::kInside, 250);
    edit_at_random(vocabulary, code.substr(5000, 400), Fragment::kTextStart, 250);
    edit_at_random(vocabulary, "", Fragment::kTextStart, 100);
    edit_at_random(vocabulary, std::string(120, '\n') + std::string(120, ' '), Fragment::kInside,
                   50);
  }
}

TEST_CASE("texts that meet at a seam are tokenized as apart") {
  std::mt19937 random(5);
  const std::string code = real_code();
  for (const Named& vocabulary : vocabularies()) {
    INFO(vocabulary.name);
    const Tokenizer& tokenizer = *vocabulary.tokenizer;
    int seams = 0;
    for (int i = 0; i < 3000; ++i) {
      std::string left =
          random_insertion(random) + code.substr(random() % code.size(), random() % 9);
      std::string right =
          code.substr(random() % code.size(), random() % 9) + random_insertion(random);
      left = utf8::sanitized(left);
      right = utf8::sanitized(right);
      if (left.empty() || right.empty() || !tokenizer.is_seam(left.back(), right.front())) continue;
      ++seams;
      auto apart = tokenizer.encode(left, Fragment::kInside);
      const auto behind = tokenizer.encode(right, Fragment::kInside);
      apart.insert(apart.end(), behind.begin(), behind.end());
      CAPTURE(left, right);
      REQUIRE(apart == tokenizer.encode(left + right, Fragment::kInside));
    }
    CHECK(seams > 100);
  }
}

TEST_CASE("an edit's change names the tokens around it only") {
  for (const Named& vocabulary : vocabularies()) {
    INFO(vocabulary.name);
    std::string text = real_code().substr(0, 50'000);
    TokenizedText tokens(*vocabulary.tokenizer, Fragment::kInside);
    tokens.set(text);
    std::mt19937 random(3);
    std::size_t changed = 0;
    constexpr std::size_t kTries = 200;
    for (std::size_t i = 0; i < kTries; ++i) {
      const std::size_t at = random() % text.size();
      text.insert(at, "x");
      changed += tokens.replace(text, at, 0, 1).inserted;
    }
    CHECK(changed / kTries <= 4);
  }
}

TEST_CASE("a byte's tokens are found") {
  const auto tokenizer = tiny_tokenizer({.vocab = TinyModel::Vocab::kByteBpe});
  TokenizedText tokens(*tokenizer, Fragment::kInside);
  CHECK(tokens.tokens_before(0) == 0);
  CHECK(tokens.is_border(0));
  tokens.set("return (int)");  // "return", " ", "(", "int", ")"
  CHECK(tokens.tokens_before(5) == 0);
  CHECK(tokens.tokens_before(6) == 1);
  CHECK(tokens.tokens_before(12) == 5);
  CHECK(tokens.is_border(8));
  CHECK_FALSE(tokens.is_border(9));
  CHECK(tokens.begin_of(3) == 8);
}

}  // namespace efimd::test
