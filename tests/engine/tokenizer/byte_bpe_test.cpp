#include <array>
#include <catch2/catch.hpp>

#include "tests/engine/tokenizer/vocabularies.h"

namespace efimd::test {
namespace {

using engine::Fragment;
using engine::TokenId;

TinyModel byte_model(std::string pre = "qwen2") {
  TinyModel model;
  model.vocab = TinyModel::Vocab::kByteBpe;
  model.pre = std::move(pre);
  return model;
}

/// The texts of a text's tokens, for readable comparisons.
std::vector<std::string> spelled(const engine::Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> texts;
  for (const TokenId token : tokenizer.encode(text, Fragment::kInside))
    texts.emplace_back(tokenizer.bytes(token));
  return texts;
}

using Pieces = std::vector<std::string>;

constexpr std::array kRules = {"default", "gpt-2",          "mellum",       "starcoder",
                               "refact",  "deepseek-coder", "deepseek-llm", "llama-bpe",
                               "dbrx",    "qwen2",          "seed-coder"};

}  // namespace

TEST_CASE("byte-level BPE merges by rank and never across spelled") {
  const auto tokenizer = tiny_tokenizer(byte_model());
  CHECK(spelled(*tokenizer, "return") == Pieces{"return"});
  CHECK(spelled(*tokenizer, "returned") == Pieces{"return", "e", "d"});
  CHECK(spelled(*tokenizer, "world int") == Pieces{"world", " ", "int"});
  CHECK(spelled(*tokenizer, "return(int)") == Pieces{"return", "(", "int", ")"});
}

TEST_CASE("of equal ranks the leftmost pair merges first") {
  const auto tokenizer = tiny_tokenizer(byte_model());
  CHECK(spelled(*tokenizer, "===") == Pieces{"==", "="});
  CHECK(spelled(*tokenizer, "\n       ") == Pieces{"\n", "    ", "  ", " "});
}

TEST_CASE("byte-level BPE gives any text back, also what the vocabulary has no words for") {
  for (const char* const pre : kRules) {
    const auto tokenizer = tiny_tokenizer(byte_model(pre));
    for (const std::string& text :
         {std::string("\t\r\n\r x"), std::string("naïve ½ 你好 🦙\u200d"),
          std::string("a\0b", 3), std::string("\u2581 ▁▁")})
      CHECK(tokenizer->decode(tokenizer->encode(text, Fragment::kInside)) == text);
  }
}

TEST_CASE("an empty text has no tokens") {
  const auto tokenizer = tiny_tokenizer(byte_model());
  CHECK(tokenizer->encode("", Fragment::kTextStart).empty());
}

TEST_CASE("invalid bytes are encoded as U+FFFD") {
  const auto tokenizer = tiny_tokenizer(byte_model());
  CHECK(tokenizer->decode(tokenizer->encode("a\xFFz\xE4\xBD", Fragment::kInside)) ==
        "a\uFFFDz\uFFFD\uFFFD");
}

TEST_CASE("a megabyte without a break is encoded and comes back") {
  const auto tokenizer = tiny_tokenizer(byte_model());
  for (const char letter : {'l', ' ', '\n'}) {
    const std::string text(std::size_t{1} << 20, letter);
    CHECK(tokenizer->decode(tokenizer->encode(text, Fragment::kInside)) == text);
  }
}

TEST_CASE("text that spells a special token is plain text") {
  const auto tokenizer = tiny_tokenizer(byte_model());
  for (const std::string text : {"<fim_prefix>", "<eot>", "<s>", "<|unused_1|>"}) {
    const auto tokens = tokenizer->encode(text, Fragment::kInside);
    CHECK(tokens.size() > 1);
    for (const TokenId token : tokens) CHECK_FALSE(tokenizer->is_control(token));
  }
}

TEST_CASE("a user-defined token is taken whole, but not when it is spelled as a special one") {
  GgufWriter file = tiny_model(byte_model());
  TokenLists lists = TokenLists::of(file);
  const auto tool = static_cast<TokenId>(lists.texts.size());
  for (const char* const text : {"<tool_call>", "<|User|>", "<tool_call>x"}) lists.add(text, 4);
  lists.write(file);
  const auto tokenizer = tokenizer_of(file);
  REQUIRE(tokenizer);
  const auto encode = [&](std::string_view text) {
    return (*tokenizer)->encode(text, Fragment::kInside);
  };
  CHECK(encode("<tool_call>") == std::vector<TokenId>{tool});
  CHECK(encode("<tool_call>x") == std::vector<TokenId>{tool + 2});
  CHECK((*tokenizer)->bytes(tool) == "<tool_call>");
  CHECK(encode("<|User|>").size() > 1);
  CHECK((*tokenizer)->decode(encode("a <tool_call>\n")) == "a <tool_call>\n");
}

TEST_CASE("control tokens and ids outside the vocabulary have no bytes") {
  const auto tokenizer = tiny_tokenizer(byte_model());
  CHECK(tokenizer->size() == 320);
  for (const TokenId token : {0, 1, 2, 319, -1, 320, 1 << 30})
    CHECK(tokenizer->bytes(token).empty());
  CHECK(tokenizer->is_control(319));
  CHECK_FALSE(tokenizer->is_control(320));
  CHECK_FALSE(tokenizer->ends_generation(-1));
}

TEST_CASE("a file that names no rule gets its maker's, as far as that is known") {
  const auto same = [](GgufWriter file, const char* rule) {
    const std::string code = real_code();
    const auto named = tokenizer_of(GgufWriter(file).text("tokenizer.ggml.pre", rule));
    const auto unnamed = tokenizer_of(file.remove("tokenizer.ggml.pre"));
    REQUIRE(named);
    REQUIRE(unnamed);
    return (*unnamed)->encode(code, Fragment::kInside) == (*named)->encode(code, Fragment::kInside);
  };
  const auto file_of = [](const char* architecture) {
    return tiny_model(byte_model()).text("general.architecture", architecture);
  };
  CHECK(same(file_of("starcoder2"), "starcoder"));
  CHECK(same(file_of("qwen2"), "qwen2"));
  CHECK(same(file_of("llama"), "default"));
  GgufWriter deepseek = file_of("llama");
  TokenLists lists = TokenLists::of(deepseek);
  lists.add("<｜fim▁begin｜>", 3);
  lists.write(deepseek);
  CHECK(same(deepseek, "deepseek-coder"));
  for (const char* const other : {"starcoder", "qwen2", "deepseek-coder"})
    CHECK_FALSE(same(file_of("llama"), other));  // the rules differ on this code
}

TEST_CASE("a byte-level vocabulary that cannot work is refused by name") {
  const auto refusal = [](const GgufWriter& file) {
    const auto tokenizer = tokenizer_of(file);
    return tokenizer ? std::string("accepted") : tokenizer.error().message();
  };
  const GgufWriter good = tiny_model(byte_model());
  CHECK(refusal(good) == "accepted");
  CHECK_THAT(refusal(GgufWriter(good).text("tokenizer.ggml.pre", "viking")),
             Catch::Contains("tokenizer.ggml.pre names the pre-tokenizer rule \"viking\"") &&
                 Catch::Contains("default, gpt-2,"));
  CHECK(refusal(GgufWriter(good).remove("tokenizer.ggml.pre")) == "accepted");
  CHECK_THAT(refusal(GgufWriter(good).remove("tokenizer.ggml.merges")),
             Catch::Contains("has no tokenizer.ggml.merges"));
  CHECK_THAT(refusal(GgufWriter(good).texts("tokenizer.ggml.merges", {"r e", "zz top"})),
             Catch::Contains("merge 1, \"zz top\""));
  CHECK_THAT(refusal(GgufWriter(good).texts("tokenizer.ggml.merges", {""})),
             Catch::Contains("merge 0"));
  CHECK_THAT(refusal(GgufWriter(good).text("tokenizer.ggml.model", "rwkv")),
             Catch::Contains("tokenizer.ggml.model \"rwkv\""));
  CHECK_THAT(refusal(GgufWriter(good).remove("tokenizer.ggml.model")),
             Catch::Contains("tokenizer.ggml.model"));
  CHECK_THAT(refusal(GgufWriter(good).remove("tokenizer.ggml.tokens")),
             Catch::Contains("tokenizer.ggml.tokens"));
  CHECK_THAT(refusal(GgufWriter(good).texts("tokenizer.ggml.tokens", {"a"})),
             Catch::Contains("token_type"));
  CHECK_THAT(refusal(GgufWriter(good)
                         .remove("tokenizer.ggml.token_type")
                         .texts("tokenizer.ggml.tokens", {"a", "b"})),
             Catch::Contains("no token for byte 9"));
}

}  // namespace efimd::test
