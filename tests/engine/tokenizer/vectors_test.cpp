// Texts and their token ids that the llama.cpp project keeps beside real vocabularies.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/engine/tokenizer/vocabularies.h"

namespace efimd::test {
namespace {

using engine::Fragment;
using engine::TokenId;

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> read_texts(const std::filesystem::path& path) {
  const std::string_view mark = "\n__ggml_vocab_test__\n";
  const std::string all = read_all(path);
  std::vector<std::string> texts;
  for (std::size_t begin = 0, end = 0; (end = all.find(mark, begin)) != std::string::npos;
       begin = end + mark.size())
    texts.push_back(all.substr(begin, end - begin));
  return texts;
}

std::vector<std::vector<TokenId>> read_ids(const std::filesystem::path& path) {
  std::istringstream all(read_all(path));
  std::vector<std::vector<TokenId>> ids;
  for (std::string line; std::getline(all, line);) {
    std::istringstream numbers(line);
    ids.emplace_back(std::istream_iterator<TokenId>(numbers), std::istream_iterator<TokenId>());
  }
  return ids;
}

std::vector<TokenId> encode_start(const engine::Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.encode(text, Fragment::kTextStart);
}

}  // namespace

TEST_CASE("the test vectors of real vocabularies come out exactly") {
  for (const std::string& name : real_vocabularies()) {
    const auto path = vocabulary_path(name);
    const auto tokenizer = open_tokenizer(path);
    const auto texts = read_texts(path.string() + ".inp");
    const auto ids = read_ids(path.string() + ".out");
    REQUIRE(texts.size() == ids.size());
    REQUIRE(texts.size() > 40);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      INFO(name << ", text " << i << ": " << texts[i]);
      CHECK(encode_start(*tokenizer, texts[i]) == ids[i]);
    }
  }
}

TEST_CASE("the test vectors' texts come back from their tokens") {
  for (const std::string& name : real_vocabularies()) {
    const auto path = vocabulary_path(name);
    const auto tokenizer = open_tokenizer(path);
    for (const std::string& text : read_texts(path.string() + ".inp"))
      CHECK(tokenizer->decode(tokenizer->encode(text, Fragment::kInside)) == text);
  }
}

}  // namespace efimd::test
