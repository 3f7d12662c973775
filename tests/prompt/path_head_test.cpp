#include "daemon/prompt/path_head.h"

#include <catch2/catch.hpp>
#include <string>

#include "daemon/prompt/planner.h"
#include "tests/support/marked.h"
#include "tests/support/scripted_engine.h"

using namespace efimd;
using Place = engine::FimFiles::Place;

namespace {

// Bytes that no text here has.
constexpr engine::TokenId kMark = 1;
constexpr engine::TokenId kRepository = 2;

test::ScriptedTokenizer tokenizer_with(Place place, engine::FimOrder order = engine::FimOrder::kPsm,
                                       engine::TokenId repository = engine::kNoToken) {
  engine::FimFiles files;
  files.place = place;
  files.names_repository = true;
  files.after_repository = "\n";
  files.mark = kMark;
  files.before_path = "#";
  files.after_path = "\n";
  return test::ScriptedTokenizer({.order = order, .files = files, .repository = repository});
}

std::string spelled(const std::vector<engine::TokenId>& tokens,
                    const test::ScriptedTokenizer& tokenizer) {
  const engine::FimTokens& fim = tokenizer.fim();
  std::string text;
  for (const engine::TokenId token : tokens)
    text += token == kMark         ? "@"
            : token == kRepository ? "<REPO>"
            : token == fim.prefix  ? "<PRE>"
            : token == fim.suffix  ? "<SUF>"
            : token == fim.middle  ? "<MID>"
                                   : std::string(tokenizer.bytes(token));
  return text;
}

std::string head_of(const prompt::FileName& name, engine::TokenId repository) {
  const auto tokenizer = tokenizer_with(Place::kBeforePrefix, engine::FimOrder::kPsm, repository);
  return spelled(prompt::path_head(name, tokenizer).front, tokenizer);
}

std::string prompt_in(const test::ScriptedTokenizer& tokenizer, prompt::View view) {
  const test::Marked place = test::marked("a;\nb^;\nc;\n");
  const text::Document document(place.text);
  prompt::Spine spine(tokenizer, prompt::path_head({"", "x.c"}, tokenizer));
  return spelled(prompt::anchored(view, *document.snapshot(), place.cursor, spine, tokenizer,
                                  prompt::Windows::of(2048, 100))
                     .tokens,
                 tokenizer);
}

}  // namespace

TEST_CASE("a path is said in the model's form, and its repository where that has one") {
  CHECK(head_of({"efimd", "src/a.c"}, kRepository) == "<REPO>efimd\n@#src/a.c\n");
  CHECK(head_of({"efimd", "src/a.c"}, engine::kNoToken) == "@#src/a.c\n");
  CHECK(head_of({"", "a.c"}, kRepository) == "@#a.c\n");
}

TEST_CASE("what has no name that can be written says none") {
  CHECK(head_of({"efimd", ""}, kRepository).empty());
  CHECK(head_of({"", "a\nb.c"}, kRepository).empty());
  CHECK(head_of({"", "a\xFF.c"}, kRepository).empty());
  CHECK(head_of({"", std::string(prompt::kNameBytesMax + 1, 'a')}, kRepository).empty());
  CHECK(head_of({"a\nb", "a.c"}, kRepository) == "@#a.c\n");
  CHECK(prompt::path_head({"efimd", "a.c"}, test::ScriptedTokenizer()).size() == 0);
}

TEST_CASE("prompts of every view have the path where the model wants it") {
  for (const auto view : {prompt::View::kFull, prompt::View::kShortAfter, prompt::View::kNear}) {
    CHECK(prompt_in(tokenizer_with(Place::kBeforePrefix), view) ==
          "@#x.c\n<PRE>a;\n<SUF>c;\n<MID>b");
    CHECK(prompt_in(tokenizer_with(Place::kInsidePrefix), view) ==
          "@<PRE>#x.c\na;\n<SUF>c;\n<MID>b");
    CHECK(prompt_in(tokenizer_with(Place::kInsidePrefix, engine::FimOrder::kSpm), view) ==
          "@<SUF>c;\n<PRE>#x.c\na;\n<MID>b");
  }
}

TEST_CASE("what idle time evaluates of a file begins as its prompts do") {
  for (const Place place : {Place::kBeforePrefix, Place::kInsidePrefix}) {
    const auto tokenizer = tokenizer_with(place);
    const text::Document document("a;\nb;\n");
    prompt::Spine spine(tokenizer, prompt::path_head({"", "x.c"}, tokenizer));
    const prompt::Plan plan = prompt::anchored(prompt::View::kFull, *document.snapshot(), 4, spine,
                                               tokenizer, prompt::Windows::of(2048, 100));
    const std::string chain = spelled(prompt::spine_prompt(spine, tokenizer), tokenizer);
    const std::string prompt = spelled(plan.tokens, tokenizer);
    CHECK(prompt.starts_with(chain.substr(0, chain.find("b;"))));
  }
}

namespace {

std::string shown(const context::Head& head, std::size_t tokens_max,
                  Place place = Place::kBeforePrefix, engine::TokenId mark = kMark,
                  bool shows_others = true) {
  engine::FimFiles files;
  files.place = place;
  files.shows_others = shows_others;
  files.mark = mark;
  files.after_path = "\n";
  const test::ScriptedTokenizer tokenizer({.order = engine::FimOrder::kPsm, .files = files});
  const prompt::PathHead path = prompt::path_head({"", "x.c"}, head, tokens_max, tokenizer);
  return spelled(path.front, tokenizer) + "|" + spelled(path.inside, tokenizer) + "|" +
         std::to_string(path.other_files);
}

const context::Head kHead{{{"a.h", "int f();\nint g();\n", {"f", "g"}, "imported"},
                           {"b.h", "int h();\n", {"h"}, "imported"}}};

}  // namespace

TEST_CASE("A-13: other files stand in front of the text's own path, each with its own") {
  CHECK(shown(kHead, 1000) == "@a.h\nint f();\nint g();\n@b.h\nint h();\n@x.c\n||2");
  CHECK(shown(kHead, 1000, Place::kInsidePrefix) ==
        "@a.h\nint f();\nint g();\n@b.h\nint h();\n@|x.c\n|2");
  CHECK(shown(kHead, 1000, Place::kInsidePrefix, engine::kNoToken) ==
        "|a.h\nint f();\nint g();\nb.h\nint h();\nx.c\n|2");
}

TEST_CASE("A-13: files that no known mark tells apart have their paths in comments") {
  engine::FimFiles files;
  files.place = Place::kInsidePrefix;
  files.shows_others = true;
  files.paths_are_comments = true;
  files.after_path = "\n";
  const test::ScriptedTokenizer tokenizer({.order = engine::FimOrder::kPsm, .files = files});
  const auto inside = [&](const context::Head& head) {
    const prompt::PathHead path = prompt::path_head({"", "m/x.py"}, head, 1000, tokenizer);
    CHECK(path.front.empty());
    return spelled(path.inside, tokenizer);
  };
  CHECK(inside(kHead) == "// a.h\nint f();\nint g();\n// b.h\nint h();\n# m/x.py\n");
  CHECK(inside({}).empty());
}

TEST_CASE("A-13: a head keeps to its tokens, and cuts at lines") {
  CHECK(shown(kHead, 0) == "@x.c\n||0");
  const context::Head long_one{
      {{"a.h", "int f();\n" + std::string(200, 'q') + "\nint g();\n", {}, "imported"}}};
  CHECK(shown(long_one, 60) == "@a.h\nint f();\n@x.c\n||1");
}

TEST_CASE("A-13: a model that was not trained with other files is shown none") {
  CHECK(shown(kHead, 1000, Place::kBeforePrefix, kMark, false) == "@x.c\n||0");
  CHECK(shown(kHead, 1000, Place::kNowhere) == "||0");
}

TEST_CASE("A-14: edited texts are files behind after, and the last of them stay if room is short") {
  auto tokenizer = tokenizer_with(Place::kBeforePrefix);
  const std::vector<context::Slot> texts = {{"a.c", "int first_of_all;\n", {}, ""},
                                            {"b.c", "int second;\n", {}, ""}};
  CHECK(prompt::edited_texts(texts, 100, tokenizer).empty());  // not trained with other files
  engine::FimFiles files = tokenizer.fim().files;
  files.shows_others = true;
  const auto shown = [&](std::size_t most, engine::FimOrder order) {
    const test::ScriptedTokenizer shows({.order = order, .files = files});
    return spelled(prompt::edited_texts(texts, most, shows), shows);
  };
  using enum engine::FimOrder;
  CHECK(shown(100, kPsm) == "@#a.c\nint first_of_all;\n@#b.c\nint second;\n");
  CHECK(shown(30, kPsm) == "@#b.c\nint second;\n");
  CHECK(shown(4, kPsm).empty());
  CHECK(shown(100, kSpm).empty());
}
