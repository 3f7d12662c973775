#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <limits>

#include "tests/engine/tokenizer/vocabularies.h"

namespace efimd::test {
namespace {

using engine::Fragment;
using engine::TokenId;
using Pieces = std::vector<std::string>;

Pieces pieces(const engine::Tokenizer& tokenizer, std::string_view text,
              Fragment where = Fragment::kInside) {
  Pieces texts;
  for (const TokenId token : tokenizer.encode(text, where))
    texts.emplace_back(tokenizer.bytes(token));
  return texts;
}

std::string refusal(const GgufWriter& file) {
  const auto tokenizer = tokenizer_of(file);
  return tokenizer ? std::string("accepted") : tokenizer.error().message();
}

/// What `change` makes of the tiny vocabulary's token types.
GgufWriter with_kinds(const std::function<void(std::vector<std::int32_t>&)>& change) {
  GgufWriter file = tiny_model({});
  TokenLists lists = TokenLists::of(file);
  change(lists.kinds);
  return file.i32s("tokenizer.ggml.token_type", lists.kinds);
}

}  // namespace

TEST_CASE("sentencepiece merges by score and falls back to bytes") {
  const auto tokenizer = tiny_tokenizer({});
  CHECK(pieces(*tokenizer, "return") == Pieces{"return"});
  CHECK(pieces(*tokenizer, "        int") == Pieces{"        ", "int"});
  CHECK(pieces(*tokenizer, "é\n") == Pieces{"\xC3", "\xA9", "\n"});
}

TEST_CASE("the dummy space stands in front of a text's start only") {
  GgufWriter file = tiny_model({});
  file.boolean("tokenizer.ggml.add_space_prefix", true);
  const auto tokenizer = tokenizer_of(file);
  REQUIRE(tokenizer);
  CHECK(pieces(**tokenizer, "int", Fragment::kTextStart) == Pieces{" ", "int"});
  CHECK(pieces(**tokenizer, " int", Fragment::kTextStart) == Pieces{"  ", "int"});
  CHECK(pieces(**tokenizer, "int", Fragment::kInside) == Pieces{"int"});
  CHECK(pieces(**tokenizer, "", Fragment::kTextStart).empty());
}

TEST_CASE("a model without the dummy space puts none at the start either") {
  const auto tokenizer = tiny_tokenizer({});
  CHECK(pieces(*tokenizer, "int", Fragment::kTextStart) == Pieces{"int"});
}

TEST_CASE("sentencepiece gives any text back") {
  const auto tokenizer = tiny_tokenizer({});
  for (const std::string& text :
       {std::string("  two  spaces  "), std::string("\t\r\n\r"), std::string("你好 🦙"),
        std::string("a\0b", 3), std::string("▁ and ▁▁"), std::string("<0x0A>"),
        std::string("<fim_prefix>")})
    CHECK(tokenizer->decode(tokenizer->encode(text, Fragment::kInside)) == text);
  CHECK(tokenizer->decode(tokenizer->encode("a\xFF", Fragment::kInside)) == "a\uFFFD");
}

TEST_CASE("sentencepiece never finds a special token in a text, whatever its type") {
  const GgufWriter file = with_kinds([](std::vector<std::int32_t>& kinds) {
    kinds[2] = 4;  // <fim_prefix>, user-defined
    kinds[3] = 1;  // <fim_suffix>, an ordinary token
  });
  const auto tokenizer = tokenizer_of(file);
  REQUIRE(tokenizer);
  for (const std::string text : {"<fim_prefix>", "<fim_suffix>", "<eot>", "<|unused_3|>", "<s>"}) {
    const auto tokens = (*tokenizer)->encode(text, Fragment::kInside);
    CHECK(std::none_of(tokens.begin(), tokens.end(),
                       [&](TokenId token) { return (*tokenizer)->is_control(token); }));
    CHECK((*tokenizer)->decode(tokens) == text);
  }
}

TEST_CASE("a sentencepiece vocabulary without an unknown token works") {
  const auto tokenizer =
      tokenizer_of(with_kinds([](std::vector<std::int32_t>& kinds) { kinds[0] = 3; }));
  REQUIRE(tokenizer);
  CHECK((*tokenizer)->decode((*tokenizer)->encode("int é", Fragment::kInside)) == "int é");
}

TEST_CASE("a sentencepiece vocabulary that cannot work is refused by name") {
  const GgufWriter good = tiny_model({});
  CHECK(refusal(good) == "accepted");
  CHECK_THAT(refusal(GgufWriter(good).remove("tokenizer.ggml.scores")),
             Catch::Contains("tokenizer.ggml.scores"));
  CHECK_THAT(refusal(GgufWriter(good).f32s(
                 "tokenizer.ggml.scores",
                 std::vector<float>(320, std::numeric_limits<float>::quiet_NaN()))),
             Catch::Contains("tokenizer.ggml.scores"));
  CHECK_THAT(refusal(with_kinds([](std::vector<std::int32_t>& kinds) { kinds[20] = 1; })),
             Catch::Contains("255 byte tokens"));
  CHECK_THAT(refusal(with_kinds([](std::vector<std::int32_t>& kinds) { kinds[0] = 9; })),
             Catch::Contains("token 0 the unknown type 9"));
  CHECK_THAT(refusal(GgufWriter(good).boolean("tokenizer.ggml.remove_extra_whitespaces", true)),
             Catch::Contains("tokenizer.ggml.remove_extra_whitespaces"));
  CHECK_THAT(refusal(GgufWriter(good).i32s("tokenizer.ggml.precompiled_charsmap", {1, 2})),
             Catch::Contains("tokenizer.ggml.precompiled_charsmap"));
  TokenLists lists = TokenLists::of(good);
  *std::find(lists.texts.begin(), lists.texts.end(), "▁") = "other";
  CHECK_THAT(refusal(GgufWriter(good).texts("tokenizer.ggml.tokens", lists.texts)),
             Catch::Contains("no token for a space"));
}

TEST_CASE("a unigram model takes the tokens with the best sum of scores") {
  GgufWriter file = tiny_model({});
  TokenLists lists;
  std::vector<float> scores;
  const auto add = [&](std::string text, std::int32_t kind, float score) {
    lists.add(std::move(text), kind);
    scores.push_back(score);
  };
  add("<unk>", 2, 0);
  for (const auto& [text, score] : std::vector<std::pair<std::string, float>>{
           {"▁", -2}, {"a", -3}, {"b", -3}, {"c", -3}, {"ab", -4}, {"bc", -3.5F}, {"abc", -9}})
    add(text, 1, score);
  add("<s>", 3, 0);
  for (const char* const role : {"pre", "suf", "mid", "rep", "sep"})
    file.remove("tokenizer.ggml.fim_" + std::string(role) + "_token_id");
  file.texts("tokenizer.ggml.tokens", lists.texts);
  file.i32s("tokenizer.ggml.token_type", lists.kinds).f32s("tokenizer.ggml.scores", scores);
  const auto tokenizer = tokenizer_of(file.text("tokenizer.ggml.model", "t5"));
  REQUIRE(tokenizer);
  CHECK(pieces(**tokenizer, "abc ab", Fragment::kInside) == Pieces{"a", "bc", " ", "ab"});
  CHECK((*tokenizer)->encode("a\u4f60\u597dc", Fragment::kInside) == std::vector<TokenId>{2, 0, 4});
}

TEST_CASE("of two tokens with one text the first is found") {
  const GgufWriter good = tiny_model({});
  TokenLists lists = TokenLists::of(good);
  const auto first = std::find(lists.texts.begin(), lists.texts.end(), "int");
  REQUIRE(first != lists.texts.end());
  lists.texts.back() = "int";
  lists.kinds.back() = 1;
  GgufWriter file = good;
  file.texts("tokenizer.ggml.tokens", lists.texts).i32s("tokenizer.ggml.token_type", lists.kinds);
  CHECK((*tokenizer_of(file))->encode("int", Fragment::kInside) ==
        std::vector<TokenId>{static_cast<TokenId>(first - lists.texts.begin())});
}

TEST_CASE("sentencepiece wants a start token unless the file says no") {
  GgufWriter file = tiny_model({});
  CHECK((*tokenizer_of(file))->bos() == engine::kNoToken);
  file.remove("tokenizer.ggml.add_bos_token");
  CHECK((*tokenizer_of(file))->bos() == 1);
  file.remove("tokenizer.ggml.bos_token_id");
  CHECK((*tokenizer_of(file))->bos() == 1);
}

TEST_CASE("a byte-level model wants a start token only if the file says so") {
  TinyModel model;
  model.vocab = TinyModel::Vocab::kByteBpe;
  GgufWriter file = tiny_model(model);
  file.remove("tokenizer.ggml.add_bos_token");
  CHECK((*tokenizer_of(file))->bos() == engine::kNoToken);
  file.boolean("tokenizer.ggml.add_bos_token", true);
  CHECK((*tokenizer_of(file))->bos() == 1);
}

}  // namespace efimd::test
