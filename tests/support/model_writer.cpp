#include "tests/support/model_writer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
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

bool is_one_of(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

void write_rope_keys(GgufWriter& out, const TinyModel& model) {
  const std::string prefix = model.architecture + ".rope.";
  out.u32(prefix + "dimension_count", model.head_width).f32(prefix + "freq_base", model.rope_base);
  if (model.rope_scaling == TinyModel::RopeScaling::kLinear)
    out.text(prefix + "scaling.type", "linear").f32(prefix + "scaling.factor", 4);
  if (model.rope_scaling == TinyModel::RopeScaling::kYarn)
    out.text(prefix + "scaling.type", "yarn")
        .f32(prefix + "scaling.factor", 4)
        .u32(prefix + "scaling.original_context_length", model.context / 4);
}

/// Granite's multipliers, of the size that its files have.
void write_multipliers(GgufWriter& out) {
  out.f32("granite.embedding_scale", 12).f32("granite.residual_scale", 0.22F);
  out.f32("granite.attention.scale", 0.09F).f32("granite.logit_scale", 3);
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
  out.u32(prefix + "vocab_size", model.vocabulary);
  const bool layer_norm = model.architecture == "starcoder2";
  out.f32(prefix + "attention.layer_norm_" + (layer_norm ? "epsilon" : "rms_epsilon"), 1e-5F);
  write_rope_keys(out, model);
  if (model.window > 0) out.u32(prefix + "attention.sliding_window", model.window);
  if (model.architecture == "granite") write_multipliers(out);
  if (model.architecture == "qwen3moe") {
    out.u32(prefix + "expert_count", model.experts);
    out.u32(prefix + "expert_used_count", model.experts_used);
    out.u32(prefix + "expert_feed_forward_length", model.feed_forward);
  }
  if (model.fragment_trained) out.boolean("efim.fragment_trained", true);
}

/// Adds tensors with random weights, uniform with the wanted standard deviation.
class WeightWriter {
 public:
  WeightWriter(GgufWriter& out, const TinyModel& model)
      : out_(out), types_(model.types_in_turn), random_(model.seed) {
    if (types_.empty()) types_.push_back(model.type);
  }

  void matrix(const std::string& name, int rows, int cols, float gain = 1) {
    matrix_of(type_that_fits(types_[matrices_++ % types_.size()], cols), name, rows, cols, gain);
  }
  /// F32 for any type of the others.
  void router(const std::string& name, int experts, int cols, float gain) {
    matrix_of(TensorType::kF32, name, experts, cols, gain);
  }
  /// The experts' matrices, one below the other.
  void matrices(const std::string& name, int count, int rows, int cols) {
    matrix(name, count * rows, cols);
    out_.find_tensor(name)->axes = {static_cast<std::uint64_t>(cols),
                                    static_cast<std::uint64_t>(rows),
                                    static_cast<std::uint64_t>(count)};
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
  void matrix_of(TensorType type, const std::string& name, int rows, int cols, float gain) {
    const auto values = draw(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols), 0,
                             gain / std::sqrt(static_cast<float>(cols)));
    out_.extra_tensor({name,
                       {static_cast<std::uint64_t>(cols), static_cast<std::uint64_t>(rows)},
                       static_cast<std::uint32_t>(type),
                       encode_tensor(values, type),
                       {}});
  }
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
  std::vector<TensorType> types_;
  std::size_t matrices_ = 0;  ///< written so far
  std::mt19937_64 random_;
};

void write_norm(WeightWriter& out, const TinyModel& model, const std::string& name) {
  const bool last = name == "output_norm" && model.output_gain != 0;
  out.vector(name + ".weight", model.width, last ? 0 : 1, last ? model.output_gain : 0.1F);
  if (model.architecture == "starcoder2")
    out.vector(name + ".bias", model.width, 0,
               model.bias_deviation * (last ? model.output_gain : 1));
}

void write_attention(WeightWriter& out, const TinyModel& model, const std::string& prefix) {
  const int query_rows = model.heads * model.head_width;
  const int kv_rows = model.kv_heads * model.head_width;
  const bool biases = model.all_biases || is_one_of(model.architecture, {"qwen2", "starcoder2"});
  write_norm(out, model, prefix + "attn_norm");
  for (const auto& [name, rows] :
       {std::pair("attn_q", query_rows), {"attn_k", kv_rows}, {"attn_v", kv_rows}}) {
    out.matrix(prefix + name + ".weight", rows, model.width);
    if (biases) out.vector(prefix + name + ".bias", rows, 0, model.bias_deviation);
  }
  if (is_one_of(model.architecture, {"qwen3", "qwen3moe"})) {
    out.vector(prefix + "attn_q_norm.weight", model.head_width, 1.5F, 0.3F);
    out.vector(prefix + "attn_k_norm.weight", model.head_width, 1.5F, 0.3F);
  }
  out.matrix(prefix + "attn_output.weight", model.width, query_rows);
  if (model.all_biases || model.architecture == "starcoder2")
    out.vector(prefix + "attn_output.bias", model.width, 0, model.bias_deviation);
}

void write_experts(WeightWriter& out, const TinyModel& model, const std::string& prefix) {
  out.router(prefix + "ffn_gate_inp.weight", model.experts, model.width, model.router_gain);
  for (const char* const name : {"ffn_gate_exps", "ffn_up_exps"})
    out.matrices(prefix + name + ".weight", model.experts, model.feed_forward, model.width);
  out.matrices(prefix + "ffn_down_exps.weight", model.experts, model.width, model.feed_forward);
}

void write_dense(WeightWriter& out, const TinyModel& model, const std::string& prefix) {
  const bool gated = model.architecture != "starcoder2";
  if (gated) out.matrix(prefix + "ffn_gate.weight", model.feed_forward, model.width);
  out.matrix(prefix + "ffn_up.weight", model.feed_forward, model.width);
  out.matrix(prefix + "ffn_down.weight", model.width, model.feed_forward);
  if (gated && !model.all_biases) return;
  if (gated) out.vector(prefix + "ffn_gate.bias", model.feed_forward, 0, model.bias_deviation);
  out.vector(prefix + "ffn_up.bias", model.feed_forward, 0, model.bias_deviation);
  out.vector(prefix + "ffn_down.bias", model.width, 0, model.bias_deviation);
}

void write_layer(WeightWriter& out, const TinyModel& model, int layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  write_attention(out, model, prefix);
  write_norm(out, model, prefix + "ffn_norm");
  if (model.architecture == "qwen3moe")
    write_experts(out, model, prefix);
  else
    write_dense(out, model, prefix);
}

/// The factors of llama 3.1: 1 for fast pairs, 8 for slow ones, a ramp between.
void write_rope_factors(GgufWriter& out, const TinyModel& model) {
  const int pairs = model.head_width / 2;
  std::vector<float> factors;
  for (int pair = 0; pair < pairs; ++pair)
    factors.push_back(
        std::clamp(16.0F * static_cast<float>(pair) / static_cast<float>(pairs) - 4, 1.0F, 8.0F));
  out.extra_tensor({"rope_freqs.weight",
                    {static_cast<std::uint64_t>(pairs)},
                    static_cast<std::uint32_t>(TensorType::kF32),
                    encode_tensor(factors, TensorType::kF32),
                    {}});
}

}  // namespace

GgufWriter tiny_model(const TinyModel& model) {
  GgufWriter out;
  write_keys(out, model);
  write_vocabulary(out, model);
  WeightWriter weights(out, model);
  weights.matrix("token_embd.weight", model.vocabulary, model.width, model.embedding_gain);
  for (int layer = 0; layer < model.layers; ++layer) write_layer(weights, model, layer);
  write_norm(weights, model, "output_norm");
  if (model.rope_scaling == TinyModel::RopeScaling::kLlama3) write_rope_factors(out, model);
  if (!model.tied && model.architecture != "gemma")
    weights.matrix("output.weight", model.vocabulary, model.width);
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
