// fuzz_seeds FOLDER: sound model files of 2 to 5 KB for fuzz_gguf to start from, with vocabularies
// as small as each kind of tokenizer takes. seeds/gguf holds what it writes.
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/model_writer.h"

namespace {

using namespace efimd::test;

struct SmallVocabulary {
  std::vector<std::string> tokens = {"<unk>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>",
                                     "<eot>"};
  std::vector<std::int32_t> kinds = {2, 3, 3, 3, 3};
  std::vector<std::string> merges;

  void add(std::string token) {
    tokens.push_back(std::move(token));
    kinds.push_back(1);
  }
};

SmallVocabulary pieces() {
  SmallVocabulary vocabulary;
  for (const char* const piece : {"\u2581", "a", "b", "\u2581a", "ab", "\n"}) vocabulary.add(piece);
  return vocabulary;
}

/// The letters that byte-level BPE writes for the bytes that every vocabulary must have.
SmallVocabulary letters() {
  SmallVocabulary vocabulary;
  for (char c = '!'; c <= '~'; ++c) vocabulary.add(std::string(1, c));
  for (const char* const letter : {"\u0120", "\u010A", "\u0109"}) vocabulary.add(letter);
  vocabulary.add("if");
  vocabulary.merges = {"i f"};
  return vocabulary;
}

GgufWriter small_model(const std::string& architecture, const SmallVocabulary& vocabulary) {
  TinyModel model;
  model.architecture = architecture;
  model.layers = 1;
  model.width = model.head_width = model.feed_forward = 2;
  model.heads = model.kv_heads = 1;
  model.experts = 2;
  model.experts_used = 1;
  model.tied = true;
  if (!vocabulary.merges.empty()) model.vocab = TinyModel::Vocab::kByteBpe;
  const auto count = static_cast<int>(vocabulary.tokens.size());
  const std::string key = "tokenizer.ggml.";
  GgufWriter out = tiny_model(model);
  out.texts(key + "tokens", vocabulary.tokens).i32s(key + "token_type", vocabulary.kinds);
  out.f32s(key + "scores", std::vector<float>(vocabulary.tokens.size(), -1));
  if (!vocabulary.merges.empty()) out.texts(key + "merges", vocabulary.merges);
  std::uint32_t id = 1;
  for (const char* const name : {"fim_pre", "fim_suf", "fim_mid", "eot"})
    out.u32(key + name + "_token_id", id++);
  for (const char* const name : {"bos", "eos", "fim_rep", "fim_sep"})
    out.remove(key + name + "_token_id");
  out.u32(architecture + ".vocab_size", static_cast<std::uint32_t>(count));
  GgufWriter::Tensor& embedding = *out.find_tensor("token_embd.weight");
  embedding.axes[1] = static_cast<std::uint64_t>(count);
  embedding.data.resize(vocabulary.tokens.size() * 2 * sizeof(float));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[1];
    std::filesystem::create_directories(folder);
    small_model("llama", pieces()).write(folder / "llama-sentencepiece.gguf");
    small_model("qwen2", letters()).write(folder / "qwen2-bytes.gguf");
    small_model("qwen3moe", pieces()).write(folder / "qwen3moe-sentencepiece.gguf");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
