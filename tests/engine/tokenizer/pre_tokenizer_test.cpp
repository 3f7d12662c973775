#include "engine/tokenizer/pre_tokenizer.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace efimd::test {
namespace {

using engine::PreTokenizer;
using Pieces = std::vector<std::string>;

Pieces split(std::string_view rule, std::string_view text) {
  const auto* const known = engine::find_pre_tokenizer_rule(rule);
  REQUIRE(known != nullptr);
  const auto splitter = PreTokenizer::for_rule(*known);
  REQUIRE(splitter);
  Pieces pieces;
  splitter->split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

}  // namespace

TEST_CASE("qwen2 splits contractions in either case") {
  CHECK(split("qwen2", "it's don'T we'LL I've") ==
        Pieces{"it", "'s", " don", "'T", " we", "'LL", " I", "'ve"});
  CHECK(split("qwen2", "'quoted'") == Pieces{"'quoted", "'"});
}

TEST_CASE("qwen2 takes digits one by one") {
  CHECK(split("qwen2", "x1234") == Pieces{"x", "1", "2", "3", "4"});
  CHECK(split("qwen2", " 42½") == Pieces{" ", "4", "2", "½"});
}

TEST_CASE("qwen2 puts one sign in front of a word into its piece") {
  CHECK(split("qwen2", "(int)x->y_z") == Pieces{"(int", ")x", "->", "y", "_z"});
  CHECK(split("qwen2", "\tfoo  bar") == Pieces{"\tfoo", " ", " bar"});
}

TEST_CASE("qwen2 puts newlines behind signs into their piece") {
  CHECK(split("qwen2", "f();\n\nx") == Pieces{"f", "();\n\n", "x"});
  CHECK(split("qwen2", " {\r\n  a") == Pieces{" {\r\n", " ", " a"});
}

TEST_CASE("qwen2 takes blanks with the newlines behind them and leaves the indent") {
  CHECK(split("qwen2", "a \n\n    b") == Pieces{"a", " \n\n", "   ", " b"});
  CHECK(split("qwen2", "a\n\tb") == Pieces{"a", "\n", "\tb"});
  CHECK(split("qwen2", "a\n \n  1") == Pieces{"a", "\n \n", " ", " ", "1"});
}

TEST_CASE("qwen2 keeps blanks at the end together") {
  CHECK(split("qwen2", "a   ") == Pieces{"a", "   "});
  CHECK(split("qwen2", "   ") == Pieces{"   "});
}

TEST_CASE("starcoder splits digits first and keeps a newline and its indent together") {
  CHECK(split("starcoder", "a12 b") == Pieces{"a", "1", "2", " b"});
  CHECK(split("starcoder", "x;\n    y") == Pieces{"x", ";", "\n   ", " y"});
  CHECK(split("starcoder", "x\n\ty") == Pieces{"x", "\n", "\t", "y"});
  CHECK(split("starcoder", "it's It'S") == Pieces{"it", "'s", " It", "'", "S"});
  CHECK(split("refact", "a12 b") == split("starcoder", "a12 b"));
}

TEST_CASE("deepseek-coder makes each newline a piece and joins one blank to what follows") {
  CHECK(split("deepseek-coder", "a\r\n\n  b") == Pieces{"a", "\r", "\n", "\n", " ", " b"});
  CHECK(split("deepseek-coder", "x = 10;") == Pieces{"x", " = ", "1", "0", ";"});
  CHECK(split("deepseek-coder", "f(a, b)") == Pieces{"f", "(", "a", ",", " b", ")"});
}

TEST_CASE("a rule sees what the one before left as a text of its own") {
  // "12" is split off first, so the blanks before it are at a text's end and stay together.
  CHECK(split("starcoder", "a   12") == Pieces{"a", "   ", "1", "2"});
}

TEST_CASE("letters and blanks are Unicode's") {
  CHECK(split("qwen2", "naïve\u00A0été") == Pieces{"naïve", "\u00A0été"});
  CHECK(split("qwen2", "привет мир") == Pieces{"привет", " мир"});
}

TEST_CASE("a piece past the limit is cut between code points") {
  std::string text;
  for (std::size_t i = 0; i < PreTokenizer::kPieceBytesMax / 2; ++i) text += "語";
  Pieces pieces = split("qwen2", text);
  CHECK(pieces.size() == 2);
  std::string joined;
  for (const std::string& piece : pieces) {
    CHECK(piece.size() <= PreTokenizer::kPieceBytesMax);
    CHECK(utf8::valid_prefix(piece) == piece.size());
    joined += piece;
  }
  CHECK(joined == text);
}

TEST_CASE("gpt-2 puts a space in front of words, numbers and signs") {
  CHECK(split("gpt-2", "let x2 = 10;\n  y") ==
        Pieces{"let", " x", "2", " =", " 10", ";", "\n ", " y"});
  CHECK(split("gpt-2", "don't DON'T") == Pieces{"don", "'t", " DON", "'", "T"});
}

TEST_CASE("llama-bpe takes digits in threes") {
  CHECK(split("llama-bpe", "x = 12345;\n\n\ty") ==
        Pieces{"x", " =", " ", "123", "45", ";\n\n", "\ty"});
}

TEST_CASE(
    "dbrx, which Granite 4's files name, splits as llama-bpe does and has none of its habits") {
  CHECK(split("dbrx", "x = 12345;\n\n\ty") == split("llama-bpe", "x = 12345;\n\n\ty"));
  CHECK_FALSE(engine::find_pre_tokenizer_rule("dbrx")->takes_whole_tokens);
  CHECK_FALSE(engine::find_pre_tokenizer_rule("dbrx")->wants_bos);
}

TEST_CASE("seed-coder leaves newlines out of signs") {
  CHECK(split("seed-coder", "f();\n\n  x") == Pieces{"f", "();", "\n\n", " ", " x"});
}

TEST_CASE("deepseek-llm makes numbers one piece and takes a blank only in front of what it knows") {
  CHECK(split("deepseek-llm", "x = 123 y") == Pieces{"x", " =", " ", "123", " y"});
  CHECK(split("deepseek-llm", "a\n\n  b  ") == Pieces{"a", "\n", "\n", " ", " b", "  "});
}

TEST_CASE("the default rule splits signs off and numbers in threes") {
  CHECK(split("default", "f(12345) == x") == Pieces{"f", "(", "123", "45", ")", " ", "==", " x"});
}

TEST_CASE("an unknown pre-tokenizer rule is not known") {
  CHECK(engine::find_pre_tokenizer_rule("viking") == nullptr);
  CHECK_THAT(engine::pre_tokenizer_rule_names(), Catch::Contains("llama-bpe, qwen2"));
}

}  // namespace efimd::test
