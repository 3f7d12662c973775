#include "tests/engine/tokenizer/vocabularies.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <span>

namespace efimd::test {

std::filesystem::path vocabulary_path(std::string_view name) {
  return std::filesystem::path(EFIMD_SHARED_DIR) / "vocab" /
         ("ggml-vocab-" + std::string(name) + ".gguf");
}

std::vector<std::string> real_vocabularies() {
  std::vector<std::string> present;
  for (const char* const name : {"starcoder", "deepseek-coder", "llama-spm"}) {
    if (std::filesystem::exists(vocabulary_path(name))) {
      present.emplace_back(name);
    } else {
      WARN("skipped: no " << vocabulary_path(name) << " (set EFIMD_SHARED_DIR)");
    }
  }
  return present;
}

std::unique_ptr<engine::Tokenizer> open_tokenizer(const std::filesystem::path& path) {
  const auto file = engine::GgufFile::open(path);
  if (!file) FAIL(file.error().message());
  auto tokenizer = engine::Tokenizer::from_gguf(*file);
  if (!tokenizer) FAIL(tokenizer.error().message());
  return std::move(*tokenizer);
}

Result<std::unique_ptr<engine::Tokenizer>> tokenizer_of(const GgufWriter& writer) {
  const std::string bytes = writer.bytes();
  const auto file = engine::GgufFile::parse(std::as_bytes(std::span(bytes)), "test.gguf");
  if (!file) return tl::unexpected<Error>(file.error());
  return engine::Tokenizer::from_gguf(*file);
}

std::unique_ptr<engine::Tokenizer> tiny_tokenizer(const TinyModel& model) {
  auto tokenizer = tokenizer_of(tiny_model(model));
  if (!tokenizer) FAIL(tokenizer.error().message());
  return std::move(*tokenizer);
}

TokenLists TokenLists::of(const GgufWriter& writer) {
  const std::string bytes = writer.bytes();
  const auto file = engine::GgufFile::parse(std::as_bytes(std::span(bytes)), "test.gguf");
  REQUIRE(file);
  TokenLists lists;
  for (const std::string_view text : *file->strings("tokenizer.ggml.tokens"))
    lists.texts.emplace_back(text);
  for (const std::int64_t kind : *file->integers("tokenizer.ggml.token_type"))
    lists.kinds.push_back(static_cast<std::int32_t>(kind));
  return lists;
}

void TokenLists::add(std::string text, std::int32_t kind) {
  texts.push_back(std::move(text));
  kinds.push_back(kind);
}

void TokenLists::write(GgufWriter& writer) const {
  writer.texts("tokenizer.ggml.tokens", texts).i32s("tokenizer.ggml.token_type", kinds);
  writer.f32s("tokenizer.ggml.scores", std::vector<float>(texts.size()));
}

std::string real_code() {
  std::vector<std::filesystem::path> paths;
  for (const char* const room : {"base", "engine/model", "engine/tokenizer"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(EFIMD_SOURCE_DIR) / room))
      if (const auto kind = entry.path().extension(); kind == ".h" || kind == ".cpp")
        paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::string text;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  return text;
}

}  // namespace efimd::test
