// fuzz_seeds FOLDER: small good model files to start the gguf corpus from.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "tests/support/model_writer.h"

int main(int argc, char** argv) {
  using namespace efimd::test;
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  try {
    std::filesystem::create_directories(argv[1]);
    TinyModel model;
    model.layers = 1;
    model.width = 2;
    model.heads = model.kv_heads = 1;
    model.head_width = 2;
    model.feed_forward = 2;
    model.tied = true;
    write_tiny_model(model, argv[1]);
    model.vocab = TinyModel::Vocab::kByteBpe;
    model.architecture = "qwen2";
    write_tiny_model(model, argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
