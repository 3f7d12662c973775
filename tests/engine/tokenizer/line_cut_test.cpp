#include <catch2/catch.hpp>
#include <random>

#include "engine/tokenizer/seams.h"
#include "tests/engine/tokenizer/vocabularies.h"
#include "tests/support/marked.h"

namespace efimd::test {
namespace {

using engine::Fragment;
using engine::NewlineGlue;
using engine::TokenId;

/// `source` carries its expected cut.
void check(std::string_view source, NewlineGlue glue) {
  const Marked expected = marked(source);
  INFO(source);
  CHECK(engine::line_cut(expected.text, glue) == expected.cursor);
}

/// Whether the text's cut leaves its tokens as they are without it.
bool exact_cut(const engine::Tokenizer& tokenizer, std::string_view text) {
  const std::size_t cut = tokenizer.line_cut(text);
  auto parts = tokenizer.encode(text.substr(0, cut), Fragment::kInside);
  const auto right = tokenizer.encode(text.substr(cut), Fragment::kInside);
  parts.insert(parts.end(), right.begin(), right.end());
  return parts == tokenizer.encode(text, Fragment::kInside);
}

/// Of `tries` cuts in real code, how many leave the tokens as they are without the cut.
int exact_cuts(const engine::Tokenizer& tokenizer, const std::string& code, int tries) {
  constexpr std::size_t kWindow = 600;
  std::mt19937 random(7);
  int exact = 0;
  for (int i = 0; i < tries; ++i) {
    const std::size_t begin = random() % (code.size() - kWindow);
    const std::string_view text = std::string_view(code).substr(begin, 1 + random() % kWindow);
    exact += exact_cut(tokenizer, text) ? 1 : 0;
  }
  return exact;
}

void check_cuts(const std::string& name, const engine::Tokenizer& tokenizer) {
  constexpr int kTries = 400;
  const std::string code = real_code();
  REQUIRE(code.size() > 20'000);
  INFO(name);
  CHECK(exact_cuts(tokenizer, code, kTries) >= kTries * 99 / 100);
  std::string crlf;
  for (const char c : code) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  CHECK(exact_cuts(tokenizer, crlf, kTries) >= kTries * 99 / 100);
}

}  // namespace

TEST_CASE("a line is cut behind its newline where newlines stand alone") {
  check("a\n^    b", NewlineGlue::kNone);
  check("a\nb\n^", NewlineGlue::kNone);
  check("a\r\n^b", NewlineGlue::kNone);
  check("a\r^b", NewlineGlue::kNone);
  check("^one line", NewlineGlue::kNone);
  check("^", NewlineGlue::kNone);
}

TEST_CASE("a line is cut in front of all blanks where newline and indent are one token") {
  check("a;^\n    b", NewlineGlue::kIndent);
  check("a;^  \n\n\t", NewlineGlue::kIndent);
  check("a;^\r\n  b c", NewlineGlue::kIndent);
  check("^\n\n  b", NewlineGlue::kIndent);
  check("^one line", NewlineGlue::kIndent);
  check("a;^\u00a0\n  b", NewlineGlue::kIndent);
  check("a;^ \u3000\u2003\r\n\u0085\n  b", NewlineGlue::kIndent);
  check("a;\u200b^\n  b", NewlineGlue::kIndent);  // no blank, as its width is none
  check("a\xC2\xA0\xA0^\n  b", NewlineGlue::kIndent);
}

TEST_CASE("the starcoder rule asks for a cut in front of the indent, the others do not") {
  for (const std::string& name : real_vocabularies()) {
    const auto tokenizer = open_tokenizer(vocabulary_path(name));
    CHECK(tokenizer->line_cut("a;\n    b") == (name == "starcoder" ? 2U : 3U));
  }
}

TEST_CASE("both sides of a line cut tokenize as they do together (A-2)") {
  for (const std::string& name : real_vocabularies())
    check_cuts(name, *open_tokenizer(vocabulary_path(name)));
  check_cuts("efim-boot", *open_tokenizer(std::filesystem::path(EFIMD_SOURCE_DIR) / "models" /
                                          "efim-boot.gguf"));
  for (const std::string& name : real_vocabularies())
    for (const std::string blank : {"\u0085", "\u00a0", "\u2028", "\u2003", "\u3000"})
      for (const std::string& text :
           {"a" + blank + "\n\n's", blank + "\nb", "(" + blank + "\r\n"}) {
        INFO(name << ": " << text);
        CHECK(exact_cut(*open_tokenizer(vocabulary_path(name)), text));
      }
  TinyModel model;
  model.vocab = TinyModel::Vocab::kByteBpe;
  check_cuts("tiny qwen2", *tiny_tokenizer(model));
}

}  // namespace efimd::test
