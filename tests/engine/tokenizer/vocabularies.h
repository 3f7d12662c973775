#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/gguf.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/support/model_writer.h"

namespace efimd::test {

/// Real vocabularies of ../shared/vocab that are there: "starcoder", "deepseek-coder", "llama-spm".
/// Says which are absent.
std::vector<std::string> real_vocabularies();
std::filesystem::path vocabulary_path(std::string_view name);

/// The tokenizer of a file; the test fails with its message when there is none.
std::unique_ptr<engine::Tokenizer> open_tokenizer(const std::filesystem::path& path);
/// The same for a file that is being written.
Result<std::unique_ptr<engine::Tokenizer>> tokenizer_of(const GgufWriter& writer);
std::unique_ptr<engine::Tokenizer> tiny_tokenizer(const TinyModel& model);

/// A file's token texts and types, to be changed and written again.
struct TokenLists {
  std::vector<std::string> texts;
  std::vector<std::int32_t> kinds;

  static TokenLists of(const GgufWriter& writer);
  void add(std::string text, std::int32_t kind);
  void write(GgufWriter& writer) const;
};

/// This repository's own sources, as code to tokenize: about 100 KB.
std::string real_code();

}  // namespace efimd::test
