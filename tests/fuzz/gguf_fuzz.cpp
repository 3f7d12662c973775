// A whole file from outside: the reader, then the model and the tokenizer that are made of it.
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/model/model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace efimd::engine;
  auto file = GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz.gguf");
  if (!file) return 0;
  for (const auto& [name, tensor] : file->tensors()) {
    // The first and the last byte of each tensor must be inside the file.
    const std::byte* const end = tensor.row(tensor.rows - 1) + tensor.row_bytes();
    if (tensor.data < file->bytes().data() || end > file->bytes().data() + size) __builtin_trap();
  }
  const auto model = Model::from(std::move(*file), "fuzz.gguf");
  if (!model) return 0;
  const Tokenizer& tokenizer = (*model)->tokenizer();
  for (const TokenId token : tokenizer.encode("if (x) {\n    return 1;\n}", Fragment{}))
    if (token < 0 || token >= tokenizer.size()) __builtin_trap();
  return 0;
}
