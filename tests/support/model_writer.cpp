#include "tests/support/model_writer.h"

#include <cmath>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <utility>

#include "base/utf8.h"

namespace efimd::test {
namespace {

using engine::TensorType;

enum TokenKind : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUnused = 5, kByte = 6 };

/// Left and right half of each word, in rank order: each half is one byte or an earlier word.
const std::vector<std::pair<std::string, std::string>> kMerges = {
    {" ", " "},   {"  ", "  "},   {"    ", "    "}, {"r", "e"},   {"t", "u"},    {"r", "n"},
    {"tu", "rn"}, {"re", "turn"}, {"i", "n"},       {"in", "t"},  {"f", "o"},    {"fo", "r"},
    {"i", "f"},   {"e", "l"},     {"s", "e"},       {"el", "se"}, {"d", "e"},    {"de", "f"},
    {"s", "t"},   {"a", "r"},     {"a", "u"},       {"au", "t"},  {"aut", "o"},  {"o", "n"},
    {"c", "on"},  {"con", "st"},  {"(", ")"},       {")", ";"},   {"()", ";"},   {"=", "="},
    {" ", "="},   {" =", " "},    {"w", "o"},       {"wo", "r"},  {"l", "d"},    {"wor", "ld"},
    {" ", "{"},   {"v", "a"},     {"va", "l"},      {"val", "u"}, {"valu", "e"}, {"n", "a"},
    {"m", "e"},   {"na", "me"},   {"s", "i"},       {"si", "z"},  {"siz", "e"},  {"t", "e"},
    {"te", "st"}, {"l", "l"},     {"u", "ll"},      {"n", "ull"}};

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> kinds;
  std::vector<float> scores;
  std::vector<std::string> merges;

  std::int32_t add(std::string text, std::int32_t kind, float score = 0) {
    tokens.push_back(std::move(text));
    kinds.push_back(kind);
    scores.push_back(score);
    return static_cast<std::int32_t>(tokens.size()) - 1;
  }
};

/// GPT-2's printable alphabet for bytes: printable Latin-1 stands for itself, the rest for U+0100
/// and up.
std::string byte_letters(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const auto stands = [](int b) {
      return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    };
    char32_t letter = byte;
    if (!stands(byte)) {
      letter = 256;
      for (int other = 0; other < byte; ++other) letter += stands(other) ? 0 : 1;
    }
    utf8::append(text, letter);
  }
  return text;
}

std::string sentencepiece_letters(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += c == ' ' ? std::string("\u2581") : std::string(1, c);
  return text;
}

void add_bytes(Vocabulary& vocabulary, TinyModel::Vocab kind) {
  for (int byte = 0; byte < 256; ++byte) {
    if (kind == TinyModel::Vocab::kByteBpe) {
      vocabulary.add(byte_letters(std::string(1, static_cast<char>(byte))), kNormal);
    } else {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
      vocabulary.add(name, kByte);
    }
  }
}

void add_words(Vocabulary& vocabulary, TinyModel::Vocab kind) {
  const bool bytes = kind == TinyModel::Vocab::kByteBpe;
  const auto letters = [&](const std::string& text) {
    return bytes ? byte_letters(text) : sentencepiece_letters(text);
  };
  float score = 0;
  if (!bytes) vocabulary.add(letters(" "), kNormal, -1000);
  for (const auto& [left, right] : kMerges) {
    vocabulary.add(letters(left + right), kNormal, score -= 1);
    vocabulary.merges.push_back(letters(left) + " " + letters(right));
  }
}

void write_vocabulary(GgufWriter& out, const TinyModel& model) {
  const bool bytes = model.vocab == TinyModel::Vocab::kByteBpe;
  Vocabulary vocabulary;
  const std::string prefix = "tokenizer.ggml.";
  vocabulary.add("<unk>", kUnknown);
  out.u32(prefix + "bos_token_id", vocabulary.add("<s>", kControl));
  out.u32(prefix + "fim_pre_token_id", vocabulary.add("<fim_prefix>", kControl));
  out.u32(prefix + "fim_suf_token_id", vocabulary.add("<fim_suffix>", kControl));
  out.u32(prefix + "fim_mid_token_id", vocabulary.add("<fim_middle>", kControl));
  out.u32(prefix + "fim_rep_token_id", vocabulary.add("<repo_name>", kControl));
  out.u32(prefix + "fim_sep_token_id", vocabulary.add("<file_sep>", kControl));
  const auto end = vocabulary.add("<eot>", kControl);
  out.u32(prefix + "eos_token_id", end).u32(prefix + "eot_token_id", end);
  add_bytes(vocabulary, model.vocab);
  add_words(vocabulary, model.vocab);
  const int padding = model.vocabulary - static_cast<int>(vocabulary.tokens.size());
  if (padding < 0) throw std::logic_error("TinyModel::vocabulary is too small");
  for (int i = 0; i < padding; ++i)
    vocabulary.add("<|unused_" + std::to_string(i) + "|>", kUnused, -1e4F);

  out.text(prefix + "model", bytes ? "gpt2" : "llama");
  out.text(prefix + "pre", bytes ? model.pre : "default");
  out.texts(prefix + "tokens", vocabulary.tokens).i32s(prefix + "token_type", vocabulary.kinds);
  out.boolean(prefix + "add_bos_token", false);
  if (bytes) {
    out.texts(prefix + "merges", vocabulary.merges);
  } else {
    out.f32s(prefix + "scores", vocabulary.scores).boolean(prefix + "add_space_prefix", false);
  }
}

void write_keys(GgufWriter& out, const TinyModel& model) {
  const std::string prefix = model.architecture + ".";
  out.text("general.architecture", model.architecture).text("general.name", "tiny");
  out.u32(prefix + "block_count", model.layers).u32(prefix + "context_length", model.context);
  out.u32(prefix + "embedding_length", model.width);
  out.u32(prefix + "feed_forward_length", model.feed_forward);
  out.u32(prefix + "attention.head_count", model.heads);
  out.u32(prefix + "attention.head_count_kv", model.kv_heads);
  out.u32(prefix + "attention.key_length", model.head_width);
  out.u32(prefix + "attention.value_length", model.head_width);
  out.u32(prefix + "rope.dimension_count", model.head_width);
  out.u32(prefix + "vocab_size", model.vocabulary);
  out.f32(prefix + "rope.freq_base", model.rope_base);
  out.f32(prefix + "attention.layer_norm_rms_epsilon", 1e-5F);
  if (model.fragment_trained) out.boolean("efim.fragment_trained", true);
}

/// Adds tensors with random weights, uniform with the wanted standard deviation.
class WeightWriter {
 public:
  WeightWriter(GgufWriter& out, const TinyModel& model) : out_(out), type_(model.type) {
    random_.seed(model.seed);
  }

  void matrix(const std::string& name, int rows, int cols) {
    const auto values = draw(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols), 0,
                             1 / std::sqrt(static_cast<float>(cols)));
    const TensorType type = type_that_fits(type_, cols);
    out_.extra_tensor({name,
                       {static_cast<std::uint64_t>(cols), static_cast<std::uint64_t>(rows)},
                       static_cast<std::uint32_t>(type),
                       encode_tensor(values, type),
                       {}});
  }
  void vector(const std::string& name, int size, float center, float deviation) {
    const auto values = draw(static_cast<std::size_t>(size), center, deviation);
    out_.extra_tensor({name,
                       {static_cast<std::uint64_t>(size)},
                       static_cast<std::uint32_t>(TensorType::kF32),
                       encode_tensor(values, TensorType::kF32),
                       {}});
  }

 private:
  std::vector<float> draw(std::size_t count, float center, float deviation) {
    std::vector<float> values(count);
    const float width = deviation * std::sqrt(12.0F);
    for (float& value : values) {
      const auto unit = static_cast<float>(random_() >> 40U) * 0x1p-24F;
      value = center + width * (unit - 0.5F);
    }
    return values;
  }

  GgufWriter& out_;
  TensorType type_;
  std::mt19937_64 random_;
};

void write_layer(WeightWriter& out, const TinyModel& model, int layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  const int query_rows = model.heads * model.head_width;
  const int kv_rows = model.kv_heads * model.head_width;
  out.vector(prefix + "attn_norm.weight", model.width, 1, 0.1F);
  for (const auto& [name, rows] :
       {std::pair("attn_q", query_rows), {"attn_k", kv_rows}, {"attn_v", kv_rows}}) {
    out.matrix(prefix + name + ".weight", rows, model.width);
    if (model.architecture == "qwen2") out.vector(prefix + name + ".bias", rows, 0, 0.02F);
  }
  out.matrix(prefix + "attn_output.weight", model.width, query_rows);
  out.vector(prefix + "ffn_norm.weight", model.width, 1, 0.1F);
  out.matrix(prefix + "ffn_gate.weight", model.feed_forward, model.width);
  out.matrix(prefix + "ffn_up.weight", model.feed_forward, model.width);
  out.matrix(prefix + "ffn_down.weight", model.width, model.feed_forward);
}

}  // namespace

GgufWriter tiny_model(const TinyModel& model) {
  GgufWriter out;
  write_keys(out, model);
  write_vocabulary(out, model);
  WeightWriter weights(out, model);
  weights.matrix("token_embd.weight", model.vocabulary, model.width);
  for (int layer = 0; layer < model.layers; ++layer) write_layer(weights, model, layer);
  weights.vector("output_norm.weight", model.width, 1, 0.1F);
  if (!model.tied) weights.matrix("output.weight", model.vocabulary, model.width);
  return out;
}

std::filesystem::path write_tiny_model(const TinyModel& model,
                                       const std::filesystem::path& folder) {
  const bool bytes = model.vocab == TinyModel::Vocab::kByteBpe;
  const std::string name = "tiny-" + model.architecture + (bytes ? "-bpe-" : "-spm-") +
                           std::string(engine::tensor_type_name(model.type)) + "-" +
                           std::to_string(model.seed) + (model.tied ? "-tied" : "") + ".gguf";
  tiny_model(model).write(folder / name);
  return folder / name;
}

}  // namespace efimd::test
