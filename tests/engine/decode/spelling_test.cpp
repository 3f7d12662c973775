#include "engine/decode/spelling.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <set>
#include <string>

using namespace efimd::engine;

namespace {

/// Tokens that are what a test says; empty ones and the last are control tokens.
class WordList final : public Tokenizer {
 public:
  explicit WordList(std::vector<std::string> words) : words_(std::move(words)) {}
  std::vector<TokenId> encode(std::string_view, Fragment) const override { return {}; }
  std::string_view bytes(TokenId token) const override {
    return words_.at(static_cast<std::size_t>(token));
  }
  std::size_t line_cut(std::string_view) const override { return 0; }
  bool is_seam(char, char) const override { return false; }
  int size() const override { return static_cast<int>(words_.size()); }
  bool is_control(TokenId token) const override {
    return bytes(token).empty() || token == size() - 1;
  }
  bool ends_generation(TokenId token) const override { return is_control(token); }
  TokenId bos() const override { return kNoToken; }
  const FimTokens& fim() const override { return fim_; }

 private:
  std::vector<std::string> words_;
  FimTokens fim_;
};

std::set<TokenId> set_of(std::span<const TokenId> tokens) { return {tokens.begin(), tokens.end()}; }

/// What ByteOrder must agree with: every token looked at.
std::set<TokenId> fitting_by_scan(const Tokenizer& tokenizer, std::string_view rest) {
  std::set<TokenId> fit;
  for (TokenId token = 0; token < tokenizer.size(); ++token) {
    const std::string_view bytes = tokenizer.bytes(token);
    if (tokenizer.is_control(token) || bytes.empty()) continue;
    if (bytes.starts_with(rest) || rest.starts_with(bytes)) fit.insert(token);
  }
  return fit;
}

}  // namespace

TEST_CASE("tokens that begin with given bytes stand together") {
  const WordList words({"name", "n", "na", "b", "", "nab", "name", "nc", "\xC3\xA9", "end"});
  const ByteOrder order(words);
  CHECK(set_of(order.beginning_with("na")) == std::set<TokenId>{0, 2, 5, 6});
  CHECK(set_of(order.beginning_with("name")) == std::set<TokenId>{0, 6});
  CHECK(set_of(order.beginning_with("\xC3")) == std::set<TokenId>{8});
  CHECK(order.beginning_with("names").empty());
  CHECK(order.beginning_with("").size() == 8);  // neither the empty one nor the control token
}

TEST_CASE("a token fits when it spells a beginning of the rest, or the rest and more") {
  const WordList words({"name", "n", "na", "b", "nab", "names", "am", "end"});
  const ByteOrder order(words);
  CHECK(set_of(order.fitting("nam")) == std::set<TokenId>{0, 1, 2, 5});
  CHECK(set_of(order.fitting("n")) == std::set<TokenId>{0, 1, 2, 4, 5});
  CHECK(set_of(order.fitting("namesake")) == std::set<TokenId>{0, 1, 2, 5});
  CHECK(order.fitting("x").empty());
}

TEST_CASE("control tokens never fit, whatever their bytes") {
  const WordList words({"a", "end"});
  CHECK(ByteOrder(words).fitting("end").empty());
}

TEST_CASE("what fits is what a look at every token finds, for any bytes") {
  std::mt19937 random(3);
  const auto word = [&](std::size_t longest) {
    std::string text(random() % (longest + 1), '\0');
    for (char& c : text) c = "ab\x00\xFF"[random() % 4];
    return text;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> texts(1 + random() % 40);
    std::ranges::generate(texts, [&] { return word(4); });
    const WordList words(texts);
    const ByteOrder order(words);
    for (int query = 0; query < 20; ++query) {
      const std::string rest = word(6);
      if (rest.empty()) continue;
      const auto fit = order.fitting(rest);
      CHECK(set_of(fit) == fitting_by_scan(words, rest));
      CHECK(set_of(fit).size() == fit.size());
    }
  }
}
