// A paste of any size is planned in the time that a window takes: what no prompt shows is not tokenized.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "daemon/prompt/planner.h"
#include "tests/support/scripted_engine.h"

using namespace efimd;

namespace {

/// The scripted tokenizer, which counts the bytes that it has read.
class CountingTokenizer final : public engine::Tokenizer {
 public:
  std::vector<engine::TokenId> encode(std::string_view text,
                                      engine::Fragment where) const override {
    bytes_read += text.size();
    return inner_.encode(text, where);
  }
  std::string_view bytes(engine::TokenId token) const override { return inner_.bytes(token); }
  std::size_t line_cut(std::string_view text) const override { return inner_.line_cut(text); }
  bool is_seam(char left, char right) const override { return inner_.is_seam(left, right); }
  int size() const override { return inner_.size(); }
  bool is_control(engine::TokenId token) const override { return inner_.is_control(token); }
  bool ends_generation(engine::TokenId token) const override {
    return inner_.ends_generation(token);
  }
  engine::TokenId bos() const override { return inner_.bos(); }
  const engine::FimTokens& fim() const override { return inner_.fim(); }

  mutable std::size_t bytes_read = 0;

 private:
  test::ScriptedTokenizer inner_;
};

std::string pasted(std::size_t bytes_min) {
  std::string text;
  while (text.size() < bytes_min) text += "  int value = 7;\n";
  return text;
}

constexpr std::size_t kPasted = 1'000'000;
/// Of a window of 2,048 tokens the planner reads some multiples of 16 KiB.
constexpr std::size_t kReadMax = 100'000;

}  // namespace

TEST_CASE("A-1: whether an anchor serves behind a long paste is known without reading the paste") {
  const CountingTokenizer tokenizer;
  const auto windows = prompt::Windows::of(2048, 384);
  text::Document document(pasted(5000));
  const std::size_t at = document.snapshot()->lines().start(100);
  prompt::Spine spine(tokenizer);
  prompt::Anchor anchor =
      prompt::anchored(prompt::View::kFull, *document.snapshot(), at, spine, tokenizer, windows)
          .anchor;
  const std::string paste = pasted(kPasted);
  REQUIRE(document.replace(at, at, paste));
  tokenizer.bytes_read = 0;
  prompt::follow(anchor, *document.snapshot(), tokenizer);
  const auto plan =
      prompt::continued(anchor, *document.snapshot(), at + paste.size(), tokenizer, windows);
  REQUIRE_FALSE(plan);
  CHECK(plan.error() == prompt::AnchorChange::kHoleTooLong);
  CHECK(tokenizer.bytes_read < kReadMax);
  // The undone paste leaves the anchor as it was.
  REQUIRE(document.replace(at, at + paste.size(), ""));
  prompt::follow(anchor, *document.snapshot(), tokenizer);
  CHECK(prompt::continued(anchor, *document.snapshot(), at, tokenizer, windows));
}

TEST_CASE("A-5: a spine reads no more of a long paste than a window shows") {
  const CountingTokenizer tokenizer;
  const bool follows_edits = GENERATE(false, true);
  const prompt::Spine::Limits limits{1489, GENERATE(0, 2048)};
  text::Document document(pasted(5000));
  const std::size_t at = document.snapshot()->lines().start(100);
  prompt::Spine spine(tokenizer);
  spine.follow(*document.snapshot(), at, limits);
  REQUIRE(spine.end() > at);
  const std::string paste = pasted(kPasted);
  REQUIRE(document.replace(at, at, paste));
  const std::size_t cut = at + paste.size();
  tokenizer.bytes_read = 0;
  if (follows_edits) CHECK_FALSE(spine.follow_edits(*document.snapshot(), cut, limits));
  spine.follow(*document.snapshot(), cut, limits);
  CHECK(tokenizer.bytes_read < kReadMax);
  CHECK(spine.begin() < cut);
  CHECK(spine.end() >= cut);
  const std::string_view text = document.snapshot()->bytes();
  const auto fresh = tokenizer.encode(text.substr(spine.begin(), spine.end() - spine.begin()),
                                      engine::Fragment::kInside);
  CHECK(std::ranges::equal(spine.tokens(), fresh));
}
