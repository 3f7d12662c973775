#include <catch2/catch.hpp>
#include <random>

#include "engine/tokenizer/vocabulary.h"

using namespace efimd::engine;

namespace {

/// The text again, whole tokens as "<id>".
std::string marked(const WholeTokens& wholes, std::string_view text) {
  std::string out;
  wholes.split(
      text, [&](std::string_view plain) { out += plain; },
      [&](TokenId token) { out += "<" + std::to_string(token) + ">"; });
  return out;
}

/// The rule, with every token looked at everywhere.
std::string marked_by_scan(const std::vector<WholeTokens::Whole>& wholes, std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const WholeTokens::Whole* best = nullptr;
    for (const WholeTokens::Whole& whole : wholes)
      if (text.starts_with(whole.text) &&
          (best == nullptr || whole.text.size() > best->text.size()))
        best = &whole;
    out += best == nullptr ? std::string(1, text.front()) : "<" + std::to_string(best->token) + ">";
    text.remove_prefix(best == nullptr ? 1 : best->text.size());
  }
  return out;
}

}  // namespace

TEST_CASE("the leftmost user-defined token is taken, of several there the longest") {
  const WholeTokens wholes({{"ab", 1}, {"abc", 2}, {"b", 3}, {"abc", 4}, {"\xFF", 5}});
  CHECK(marked(wholes, "xabcb\xFFz") == "x<2><3><5>z");
  CHECK(marked(wholes, "ab") == "<1>");
  CHECK(marked(wholes, "aab") == "a<1>");
  CHECK(marked(WholeTokens(), "ab") == "ab");
}

TEST_CASE("user-defined tokens are found as a look at each of them finds them") {
  std::mt19937 random(2);
  const auto word = [&](std::size_t longest) {
    std::string text(1 + random() % longest, '\0');
    for (char& c : text) c = "ab\xFF"[random() % 3];
    return text;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<WholeTokens::Whole> list;
    for (TokenId id = 0; id < static_cast<TokenId>(random() % 30); ++id)
      list.push_back({word(4), id});
    const WholeTokens wholes(list);
    for (int text = 0; text < 10; ++text) {
      const std::string bytes = word(40);
      CHECK(marked(wholes, bytes) == marked_by_scan(list, bytes));
    }
  }
}
