#include <catch2/catch.hpp>
#include <span>

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

/// As `renamed`, with a name by which a model is known.
GgufWriter named(const std::string& name, const std::vector<std::string>& texts,
                 std::int32_t kind = 3) {
  GgufWriter file = renamed(texts, kind);
  return file.text("general.name", name);
}

const std::string kVouched =
    "the file's metadata names its tokens; whether it was trained with them is not known here";
const std::string kNone = "the vocabulary has no fill-in-the-middle tokens";

}  // namespace

TEST_CASE("FIM tokens come from metadata first") {
  check(tiny_model({}), {FimOrder::kPsm, 2, 3, 4}, kVouched);
}

TEST_CASE("FIM tokens come from the older metadata keys") {
  GgufWriter file = renamed({});
  file.u32("tokenizer.ggml.prefix_token_id", 4).u32("tokenizer.ggml.suffix_token_id", 2);
  check(GgufWriter(file).u32("tokenizer.ggml.middle_token_id", 3), {FimOrder::kPsm, 4, 2, 3},
        kVouched);
  check(file, {FimOrder::kSpm, 4, 2, kNoToken}, kVouched);
}

TEST_CASE("FIM metadata outside the vocabulary is not used") {
  GgufWriter file = renamed({});
  file.u32("tokenizer.ggml.fim_pre_token_id", 320).u32("tokenizer.ggml.fim_suf_token_id", 3);
  check(file, {FimOrder::kNone, kNoToken, kNoToken, kNoToken}, kNone);
}

TEST_CASE("FIM metadata that names spare tokens is not used") {
  // Converters write CodeGemma's keys into the files of other Gemmas, too.
  for (const std::int32_t kind : {3, 4, 5}) {
    GgufWriter gemma = renamed({"<unused60>", "<unused61>", "<unused62>"}, kind);
    gemma.u32("tokenizer.ggml.prefix_token_id", 2).u32("tokenizer.ggml.middle_token_id", 3);
    gemma.u32("tokenizer.ggml.suffix_token_id", 4).text("general.architecture", "gemma");
    check(gemma, {FimOrder::kNone, kNoToken, kNoToken, kNoToken}, kNone);
  }
}

TEST_CASE("a known model's FIM tokens are found by their texts") {
  GgufWriter qwen =
      named("Qwen2.5 Coder 7B", {"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"});
  check(qwen.text("general.architecture", "qwen2"), {FimOrder::kPsm, 2, 4, 3},
        "Qwen2.5-Coder; tokens by text: <|fim_prefix|>");
  check(named("granite-3b-code-base", {"<fim_prefix>", "<fim_middle>", "<fim_suffix>"}),
        {FimOrder::kPsm, 2, 4, 3}, "Granite Code; tokens by text: <fim_prefix>");
  GgufWriter granite4 =
      named("Granite 4.0 Micro", {"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"});
  granite4.text("general.architecture", "granite");
  check(granite4, {FimOrder::kPsm, 2, 4, 3}, "Granite Code; tokens by text: <|fim_prefix|>");
  check(named("codellama_codellama-7b-hf", {"▁<PRE>", "▁<MID>", "▁<SUF>", "▁<EOT>"}, 1),
        {FimOrder::kPsm, 2, 4, 3}, "Code Llama; tokens by text: ▁<PRE>");
}

TEST_CASE("a model is known by its architecture, its base name or its file's name as well") {
  const std::vector<std::string> tokens = {"<fim_prefix>", "<fim_middle>", "<fim_suffix>"};
  GgufWriter file = named("model", tokens);
  check(GgufWriter(file).text("general.architecture", "starcoder2"), {FimOrder::kPsm, 2, 4, 3},
        "StarCoder2; tokens by text: <fim_prefix>");
  check(GgufWriter(file).text("general.basename", "granite-code"), {FimOrder::kPsm, 2, 4, 3},
        "Granite Code; tokens by text: <fim_prefix>");
}

TEST_CASE("FIM tokens alone prove nothing") {
  check(named("some model", {"<fim_prefix>", "<fim_middle>", "<fim_suffix>"}),
        {FimOrder::kNone, kNoToken, kNoToken, kNoToken},
        "the vocabulary has <fim_prefix>, but this model is not known to be trained with it; "
        "[model.fim] in config.toml overrides this");
  // The name of a model that was trained does not make another architecture one.
  GgufWriter other = named("qwen2.5-coder", {"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"});
  CHECK((*tokenizer_of(other.text("general.architecture", "llama")))->fim().order ==
        FimOrder::kNone);
}

TEST_CASE("models that carry FIM tokens untrained are not asked, whatever their metadata says") {
  for (const char* const name : {"OpenCoder 8B Base", "replit-code-v1_5-3b", "CodeLlama-34b-hf",
                                 "codellama_codellama-7b-python-hf", "CodeLlama 13B Python"}) {
    INFO(name);
    for (GgufWriter file : {named(name, {"<PRE>", "<MID>", "<SUF>"}), tiny_model({})}) {
      const auto tokenizer = tokenizer_of(file.text("general.name", name));
      REQUIRE(tokenizer);
      CHECK((*tokenizer)->fim().order == FimOrder::kNone);
      CHECK_THAT((*tokenizer)->fim().reason, Catch::Contains("was not trained with them"));
      for (const TokenId token : {2, 3, 4}) {
        CHECK((*tokenizer)->ends_generation(token));
        CHECK((*tokenizer)->is_control(token));
      }
    }
  }
}

TEST_CASE("DeepSeek's hole is the suffix's token and its end the middle's") {
  check(
      named("deepseek-coder-6.7b-base", {"<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>"}, 4),
      {FimOrder::kPsm, 3, 2, 4}, "DeepSeek-Coder; tokens by text: <｜fim▁begin｜>");
}

TEST_CASE("models that know only suffix, prefix, middle keep their order") {
  check(named("Codestral 22B", {"[SUFFIX]", "[PREFIX]"}), {FimOrder::kSpm, 3, 2, kNoToken},
        "Codestral; tokens by text: [PREFIX]");
  check(named("Seed Coder 8B Base", {"<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"}),
        {FimOrder::kSpm, 3, 2, 4}, "Seed-Coder; tokens by text: <[fim-prefix]>");
  check(named("Mellum 4b Base", {"<fim_suffix>", "<fim_prefix>", "<fim_middle>"}),
        {FimOrder::kSpm, 3, 2, 4}, "Mellum; tokens by text: <fim_prefix>");
}

TEST_CASE("the path of a file is written as the model was trained to see it") {
  using Place = engine::FimFiles::Place;
  const auto fim = [](const GgufWriter& file, const engine::FimOverride& wanted = {}) {
    const std::string bytes = file.bytes();
    const auto gguf = engine::GgufFile::parse(std::as_bytes(std::span(bytes)), "test.gguf");
    REQUIRE(gguf);
    const auto tokenizer = engine::Tokenizer::from_gguf(*gguf, wanted);
    REQUIRE(tokenizer);
    return (*tokenizer)->fim();
  };
  const auto files = [&](const GgufWriter& file) { return fim(file).files; };
  GgufWriter qwen = named("Qwen2.5-Coder-3B", {"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
                                               "<|repo_name|>", "<|file_sep|>"});
  qwen.text("general.architecture", "qwen2");
  CHECK(files(qwen).place == Place::kBeforePrefix);
  CHECK(files(qwen).mark == 6);
  CHECK(files(qwen).names_repository);
  CHECK(files(qwen).after_repository == "\n");
  CHECK(fim(qwen).repository == 5);
  CHECK(files(qwen).after_path == "\n");
  const auto respelled =
      fim(qwen, {.repository = "<|file_sep|>", .file_separator = "<|repo_name|>"});
  CHECK(respelled.files.mark == 5);
  CHECK(respelled.repository == 6);
  const auto deepseek =
      files(named("deepseek-coder", {"<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>"}, 4));
  CHECK(deepseek.place == Place::kInsidePrefix);
  CHECK(deepseek.mark == kNoToken);
  CHECK(deepseek.before_path == "#");
  GgufWriter starcoder =
      named("x", {"<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<repo_name>", "<file_sep>"});
  starcoder.text("general.architecture", "starcoder2");
  CHECK(files(starcoder).place == Place::kInsidePrefix);
  CHECK(files(starcoder).mark == 6);
  CHECK(files(starcoder).names_repository);
  CHECK(files(starcoder).after_repository.empty());
  // StarCoder2's form needs its separator: without that token there is none.
  GgufWriter bare = named("x", {"<fim_prefix>", "<fim_middle>", "<fim_suffix>"});
  CHECK(files(bare.text("general.architecture", "starcoder2")).place == Place::kNowhere);
  CHECK(files(tiny_model({})).place == Place::kNowhere);
}

TEST_CASE("other files are shown to the families that were trained so, each in its own form") {
  using Place = engine::FimFiles::Place;
  struct Family {
    std::string name, architecture;
    std::vector<std::string> texts;
    FimOrder order;
    Place place;
    TokenId mark;
    std::string before_path;
    bool paths_are_comments = false;
  };
  const std::vector<std::string> star = {"<fim_prefix>", "<fim_suffix>", "<fim_middle>",
                                         "<reponame>"};
  const std::vector<Family> families = {
      {"codegemma 2b",
       "gemma",
       {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>"},
       FimOrder::kPsm,
       Place::kBeforePrefix,
       5,
       ""},
      {"codestral 22b",
       "llama",
       {"[PREFIX]", "[SUFFIX]"},
       FimOrder::kSpm,
       Place::kInsidePrefix,
       kNoToken,
       "+++++ "},
      {"mellum 4b",
       "llama",
       {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<filename>"},
       FimOrder::kSpm,
       Place::kBeforePrefix,
       5,
       ""},
      {"granite 3b code base", "llama", star, FimOrder::kPsm, Place::kInsidePrefix, kNoToken, "",
       true},
      {"seed coder 8b",
       "llama",
       {"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"},
       FimOrder::kSpm,
       Place::kInsidePrefix,
       kNoToken,
       "",
       true},
  };
  for (const Family& family : families) {
    CAPTURE(family.name);
    const auto tokenizer = tokenizer_of(
        named(family.name, family.texts).text("general.architecture", family.architecture));
    if (!tokenizer) FAIL(tokenizer.error().message());
    const engine::FimTokens& fim = (*tokenizer)->fim();
    CHECK(fim.order == family.order);
    CHECK(fim.files.place == family.place);
    CHECK(fim.files.mark == family.mark);
    CHECK(fim.files.before_path == family.before_path);
    CHECK(fim.files.paths_are_comments == family.paths_are_comments);
    CHECK(fim.files.shows_others);
  }
}

TEST_CASE("the configuration's FIM tokens and order win") {
  const GgufWriter file = named("some model", {"<a>", "<b>", "<c>", "<d>", "<e>"});
  const std::string bytes = file.bytes();
  const auto gguf = engine::GgufFile::parse(std::as_bytes(std::span(bytes)), "test.gguf");
  REQUIRE(gguf);
  const auto opened = [&](const engine::FimOverride& wanted) {
    return engine::Tokenizer::from_gguf(*gguf, wanted);
  };
  engine::FimOverride wanted;
  wanted.prefix = "<b>";
  wanted.suffix = "<a>";
  wanted.middle = "<c>";
  wanted.file_separator = "<e>";
  auto tokenizer = opened(wanted);
  REQUIRE(tokenizer);
  const engine::FimTokens& fim = (*tokenizer)->fim();
  CHECK(fim.order == FimOrder::kPsm);
  CHECK(std::vector{fim.prefix, fim.suffix, fim.middle, fim.file_separator} ==
        std::vector{3, 2, 4, 6});
  CHECK(fim.reason == "config.toml: [model.fim]");
  for (const TokenId token : {2, 3, 4, 6}) CHECK((*tokenizer)->ends_generation(token));

  wanted.order = FimOrder::kSpm;
  CHECK((*opened(wanted))->fim().order == FimOrder::kSpm);
  wanted.order = FimOrder::kNone;
  CHECK((*opened(wanted))->fim().prefix == kNoToken);
  wanted.middle = "<nothing>";
  CHECK_THAT(opened(wanted).error().message(),
             Catch::Contains("model.fim.middle: test.gguf has no token \"<nothing>\""));
  CHECK_THAT(opened({.order = FimOrder::kPsm, .prefix = "<a>"}).error().message(),
             Catch::Contains("prefix, suffix and (for psm) middle must be given"));
}

TEST_CASE("the configuration can ask a model that is not known to be trained") {
  const GgufWriter file = named("some model", {"<fim_prefix>", "<fim_middle>", "<fim_suffix>"});
  const std::string bytes = file.bytes();
  const auto gguf = engine::GgufFile::parse(std::as_bytes(std::span(bytes)), "test.gguf");
  REQUIRE(gguf);
  const auto tokenizer = engine::Tokenizer::from_gguf(*gguf, {.order = FimOrder::kPsm});
  REQUIRE(tokenizer);
  CHECK((*tokenizer)->fim().order == FimOrder::kPsm);
  CHECK((*tokenizer)->fim().prefix == 2);
}

TEST_CASE("half a family of FIM tokens is none") {
  check(named("granite", {"<fim_prefix>", "<fim_suffix>"}),
        {FimOrder::kNone, kNoToken, kNoToken, kNoToken}, kNone);
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
