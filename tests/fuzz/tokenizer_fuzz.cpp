// Any bytes as text: every tokenizer gives valid text back, and cuts lie inside it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "engine/model/gguf.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/support/model_writer.h"

namespace {

using namespace efimd;

std::unique_ptr<engine::Tokenizer> tiny(const char* pre) {
  test::TinyModel model;
  if (pre != nullptr) {
    model.vocab = test::TinyModel::Vocab::kByteBpe;
    model.pre = pre;
  }
  const std::string bytes = test::tiny_model(model).bytes();
  const auto file = engine::GgufFile::parse(std::as_bytes(std::span(bytes)), "tiny.gguf");
  if (!file) std::abort();
  auto tokenizer = engine::Tokenizer::from_gguf(*file);
  if (!tokenizer) std::abort();
  return std::move(*tokenizer);
}

const std::vector<std::unique_ptr<engine::Tokenizer>>& tokenizers() {
  static const auto all = [] {
    std::vector<std::unique_ptr<engine::Tokenizer>> made;
    for (const char* const pre :
         {static_cast<const char*>(nullptr), "qwen2", "starcoder", "deepseek-coder"})
      made.push_back(tiny(pre));
    return made;
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string valid = utf8::sanitized(text);
  for (const auto& tokenizer : tokenizers()) {
    const auto tokens = tokenizer->encode(text, engine::Fragment::kInside);
    if (tokenizer->decode(tokens) != valid) __builtin_trap();
    if (tokenizer->line_cut(text) > size) __builtin_trap();
  }
  return 0;
}
