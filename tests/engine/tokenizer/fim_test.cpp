#include <catch2/catch.hpp>

#include "tests/engine/tokenizer/vocabularies.h"

namespace efimd::test {
namespace {

using engine::FimOrder;
using engine::kNoToken;
using engine::TokenId;

/// A tiny file without FIM metadata, whose tokens 2 to 6 have other texts.
GgufWriter renamed(const std::vector<std::string>& texts, std::int32_t kind = 3) {
  GgufWriter file = tiny_model({});
  for (const char* const role : {"pre", "suf", "mid", "rep", "sep"})
    file.remove("tokenizer.ggml.fim_" + std::string(role) + "_token_id");
  TokenLists lists = TokenLists::of(file);
  const std::vector<std::string> others = {"<x2>", "<x3>", "<x4>", "<x5>", "<x6>"};
  for (std::size_t i = 0; i < others.size(); ++i) {
    lists.texts[2 + i] = i < texts.size() ? texts[i] : others[i];
    lists.kinds[2 + i] = kind;
  }
  file.texts("tokenizer.ggml.tokens", lists.texts);
  return file.i32s("tokenizer.ggml.token_type", lists.kinds);
}

struct Expected {
  FimOrder order;
  TokenId prefix, suffix, middle;
};

void check(const GgufWriter& file, const Expected& expected, const std::string& reason) {
  const auto tokenizer = tokenizer_of(file);
  if (!tokenizer) FAIL(tokenizer.error().message());
  const engine::FimTokens& fim = (*tokenizer)->fim();
  CHECK(fim.order == expected.order);
  CHECK(fim.prefix == expected.prefix);
  CHECK(fim.suffix == expected.suffix);
  CHECK(fim.middle == expected.middle);
  CHECK(fim.reason == reason);
  for (const TokenId token : {fim.prefix, fim.suffix, fim.middle}) {
    if (token == kNoToken) continue;
    CHECK((*tokenizer)->ends_generation(token));
    CHECK((*tokenizer)->is_control(token));
    CHECK((*tokenizer)->bytes(token).empty());
  }
}

const std::string kNone = "the vocabulary has no fill-in-the-middle tokens";

}  // namespace

TEST_CASE("FIM tokens come from metadata first") {
  check(tiny_model({}), {FimOrder::kPsm, 2, 3, 4}, "metadata");
}

TEST_CASE("FIM tokens come from the older metadata keys") {
  GgufWriter file = renamed({});
  file.u32("tokenizer.ggml.prefix_token_id", 4).u32("tokenizer.ggml.suffix_token_id", 2);
  check(GgufWriter(file).u32("tokenizer.ggml.middle_token_id", 3), {FimOrder::kPsm, 4, 2, 3},
        "metadata");
  check(file, {FimOrder::kSpm, 4, 2, kNoToken}, "metadata");
}

TEST_CASE("FIM metadata outside the vocabulary is not used") {
  GgufWriter file = renamed({});
  file.u32("tokenizer.ggml.fim_pre_token_id", 320).u32("tokenizer.ggml.fim_suf_token_id", 3);
  check(file, {FimOrder::kNone, kNoToken, kNoToken, kNoToken}, kNone);
}

TEST_CASE("FIM tokens are known by their texts") {
  check(renamed({"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"}), {FimOrder::kPsm, 2, 4, 3},
        "by text: <|fim_prefix|>");
  check(renamed({"<fim_prefix>", "<fim_middle>", "<fim_suffix>"}), {FimOrder::kPsm, 2, 4, 3},
        "by text: <fim_prefix>");
  check(renamed({"▁<PRE>", "▁<MID>", "▁<SUF>", "▁<EOT>"}, 1), {FimOrder::kPsm, 2, 4, 3},
        "by text: ▁<PRE>");
}

TEST_CASE("DeepSeek's hole is the suffix's token and its end the middle's") {
  check(renamed({"<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>"}, 4),
        {FimOrder::kPsm, 3, 2, 4}, "by text: <｜fim▁begin｜>");
}

TEST_CASE("a prefix and a suffix without a middle make an SPM model") {
  check(renamed({"[SUFFIX]", "[PREFIX]"}), {FimOrder::kSpm, 3, 2, kNoToken}, "by text: [PREFIX]");
}

TEST_CASE("half a family of FIM tokens is none") {
  check(renamed({"<fim_prefix>", "<fim_suffix>"}), {FimOrder::kNone, kNoToken, kNoToken, kNoToken},
        kNone);
}

TEST_CASE("generation ends at every special token that frames text") {
  const auto tokenizer =
      tokenizer_of(renamed({"<|endoftext|>", "<|repo_name|>", "<|file_sep|>", "</s>", "word"}, 4));
  REQUIRE(tokenizer);
  for (const TokenId token : {2, 3, 4, 5, 7}) CHECK((*tokenizer)->ends_generation(token));
  for (const TokenId token : {0, 1, 6, 100}) CHECK_FALSE((*tokenizer)->ends_generation(token));
  CHECK((*tokenizer)->fim().repository == 3);
  CHECK((*tokenizer)->fim().file_separator == 4);
}

TEST_CASE("an ordinary word that is spelled like an end of text is none") {
  const auto tokenizer = tokenizer_of(renamed({"</s>", "<|im_end|>"}, 1));
  REQUIRE(tokenizer);
  CHECK_FALSE((*tokenizer)->ends_generation(2));
  CHECK((*tokenizer)->ends_generation(3));
}

TEST_CASE("the FIM tokens of real vocabularies are found") {
  for (const std::string& name : real_vocabularies()) {
    const auto tokenizer = open_tokenizer(vocabulary_path(name));
    const engine::FimTokens& fim = tokenizer->fim();
    INFO(name);
    if (name == "starcoder") {
      CHECK(fim.order == FimOrder::kPsm);
      CHECK(std::vector{fim.prefix, fim.middle, fim.suffix} == std::vector{1, 2, 3});
      CHECK(std::vector{fim.repository, fim.file_separator} == std::vector{5, 6});
      for (const TokenId token : {0, 1, 2, 3, 4, 5, 6}) CHECK(tokenizer->ends_generation(token));
      CHECK(tokenizer->bos() == kNoToken);
    } else if (name == "deepseek-coder") {
      CHECK(fim.order == FimOrder::kPsm);
      CHECK(std::vector{fim.prefix, fim.suffix, fim.middle} == std::vector{32016, 32015, 32017});
      CHECK(tokenizer->ends_generation(32014));
      CHECK(tokenizer->bos() == 32013);
    } else {
      CHECK(fim.order == FimOrder::kNone);
      CHECK(tokenizer->ends_generation(2));
      CHECK(tokenizer->bos() == 1);
    }
  }
}

}  // namespace efimd::test
