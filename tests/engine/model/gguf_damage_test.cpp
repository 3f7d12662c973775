// What a damaged file does to everything that reads it: refusals, never a crash. Sanitizer builds
// make this sharp; tests/fuzz goes further.
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <span>
#include <string>

#include "engine/model/gguf.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/support/model_writer.h"

namespace efimd::test {
namespace {

/// Reads all that can be read of `bytes`; how far it came. A heap copy of the exact size shows
/// sanitizers every byte read past the end.
enum class Reach { kNothing, kFile, kTokenizer };
Reach read_all(std::string_view bytes) {
  const std::unique_ptr<char[]> copy(new char[bytes.size() + 1]);
  std::copy(bytes.begin(), bytes.end(), copy.get() + 1);  // unaligned, as nothing may rely on it
  const auto data = std::as_bytes(std::span(copy.get() + 1, bytes.size()));
  const auto file = engine::GgufFile::parse(data, "damaged.gguf");
  if (!file) {
    CHECK_FALSE(file.error().what.empty());
    return Reach::kNothing;
  }
  const auto tokenizer = engine::Tokenizer::from_gguf(*file);
  if (!tokenizer) return Reach::kFile;
  const auto tokens = (*tokenizer)->encode("int main() {\n  return 0;\n}", engine::Fragment{});
  for (const engine::TokenId token : tokens) CHECK(token < (*tokenizer)->size());
  return Reach::kTokenizer;
}

TinyModel smallest(TinyModel::Vocab vocab) {
  TinyModel model;
  model.layers = 1;
  model.width = 32;
  model.heads = 1;
  model.kv_heads = 1;
  model.head_width = 32;
  model.feed_forward = 32;
  model.tied = true;
  model.vocab = vocab;
  return model;
}

}  // namespace

TEST_CASE("a file cut anywhere is refused") {
  for (const auto vocab : {TinyModel::Vocab::kSentencepiece, TinyModel::Vocab::kByteBpe}) {
    const std::string bytes = tiny_model(smallest(vocab)).bytes();
    REQUIRE(read_all(bytes) == Reach::kTokenizer);
    // Behind the directory only the last tensor's end matters: every length there would be slow.
    const auto file = engine::GgufFile::parse(std::as_bytes(std::span(bytes)), "whole.gguf");
    const std::size_t data_start = file->data_start();
    std::size_t accepted = 0;
    for (std::size_t size = 0; size < bytes.size(); size += size < data_start + 64 ? 1 : 997)
      accepted += read_all(std::string_view(bytes).substr(0, size)) == Reach::kNothing ? 0U : 1U;
    CHECK(accepted == 0);
  }
}

TEST_CASE("flipped bytes are refused or read, never followed") {
  std::mt19937 random(11);
  for (const auto vocab : {TinyModel::Vocab::kSentencepiece, TinyModel::Vocab::kByteBpe}) {
    const std::string good = tiny_model(smallest(vocab)).bytes();
    const auto file = engine::GgufFile::parse(std::as_bytes(std::span(good)), "whole.gguf");
    const std::size_t data_start = file->data_start();
    int reached = 0;
    for (int round = 0; round < 1500; ++round) {
      std::string bytes = good;
      for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips)
        bytes[random() % data_start] = static_cast<char>(random());
      reached += read_all(bytes) == Reach::kTokenizer ? 1 : 0;
    }
    CHECK(reached > 0);  // else the flips only ever tested the first check
  }
}

TEST_CASE("numbers turned to extremes are refused or read, never followed") {
  const std::string good = tiny_model(smallest(TinyModel::Vocab::kSentencepiece)).bytes();
  const auto file = engine::GgufFile::parse(std::as_bytes(std::span(good)), "whole.gguf");
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string bytes = good;
    const std::size_t at = random() % (file->data_start() - 8);
    const std::size_t size = random() % 2 == 0 ? 4 : 8;
    const char fill = random() % 2 == 0 ? '\xFF' : '\0';
    bytes.replace(at, size, size, fill);
    if (random() % 2 == 0) bytes[at + size - 1] = '\x7F';
    refused += read_all(bytes) == Reach::kTokenizer ? 0 : 1;
  }
  CHECK(refused > 0);
}

}  // namespace efimd::test
