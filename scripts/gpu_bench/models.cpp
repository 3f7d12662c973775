// Steps of whole models: generation, prompts, keystrokes.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <numeric>
#include <string_view>

#include "bench.h"
#include "engine/backend/gpu/gpu_backend.h"
#include "repeated_rows.h"

using namespace efimd;
using namespace efimd::engine;

namespace {

constexpr int kStepTokens = 2048;

/// A model of a real shape; its layers share one set of random weights on the host, not on the device.
struct BenchModel {
  ModelShape shape;
  ModelWeights weights;
  std::deque<std::vector<std::byte>> storage;
  std::size_t bytes = 0;
  double flops = 0;  ///< of a token in the layers' products

  BenchModel(const Shape& of, TensorType type) : shape(of.model()) {
    std::mt19937 random(1);
    const auto tensor = [&](std::int64_t rows, std::int64_t cols) {
      // As in files: rows that are no multiple of a block take another type.
      const bool fits = cols % tensor_block(type).elements == 0;
      return repeated_tensor(storage, fits ? type : TensorType::kQ5_0, rows, cols, 0.02F, random);
    };
    const auto vector = [&](std::int64_t cols) {
      return repeated_tensor(storage, TensorType::kF32, 1, cols, 1, random);
    };
    const int kv = shape.kv_heads * shape.head_width;
    LayerWeights layer;
    layer.attention_norm = vector(of.width), layer.feed_forward_norm = vector(of.width);
    layer.query = tensor(of.width, of.width), layer.key = tensor(kv, of.width);
    layer.value = tensor(kv, of.width), layer.attention_output = tensor(of.width, of.width);
    layer.query_bias = vector(of.width), layer.key_bias = vector(kv), layer.value_bias = vector(kv);
    layer.gate = tensor(of.feed_forward, of.width), layer.up = tensor(of.feed_forward, of.width);
    layer.down = tensor(of.width, of.feed_forward);
    weights.layers.assign(static_cast<std::size_t>(of.layers), layer);
    weights.token_embedding = tensor(shape.vocabulary, of.width);
    weights.output = of.tied ? weights.token_embedding : tensor(shape.vocabulary, of.width);
    weights.output_norm = vector(of.width);
    // The bytes that one token must read: all but the embedding's rows.
    for (const TensorView* each : {&layer.query, &layer.key, &layer.value, &layer.attention_output,
                                   &layer.gate, &layer.up, &layer.down}) {
      bytes += static_cast<std::size_t>(of.layers) * static_cast<std::size_t>(each->rows) *
               each->row_bytes();
      flops += 2.0 * of.layers * static_cast<double>(each->rows * each->cols);
    }
    bytes += static_cast<std::size_t>(weights.output.rows) * weights.output.row_bytes();
  }
};

struct Variant {
  TensorType type;
  KvType kv_type = KvType::kF16;
  gpu::Variants kernels = gpu::kAllVariants;
  const char* without = "";  ///< what these lack, in words

  /// Whether targets are of it.
  bool plain() const { return kv_type == KvType::kF16 && kernels == gpu::kAllVariants; }
  std::string name(const Shape& of) const {
    return std::string(of.name) + " " + std::string(tensor_type_name(type)) +
           (kv_type == KvType::kQ8 ? ", KV q8, " : ", ") + without;
  }
};
// Each of gpu::Variants with and without, where weights of that type use it.
constexpr Variant kVariants[] = {
    {TensorType::kBF16},
    {TensorType::kQ8_0},
    {TensorType::kQ4_K},
    {TensorType::kQ4_K, KvType::kQ8},
    {TensorType::kBF16, KvType::kF16, {true, false, true}, "without half_products, "},
    {TensorType::kQ8_0, KvType::kF16, {false, true, true}, "without quantized_products, "},
    {TensorType::kQ8_0, KvType::kF16, {true, true, false}, "without tensor_attention, "},
    {TensorType::kQ4_K, KvType::kF16, {false, true, true}, "without quantized_products, "}};

/// Of the bandwidth of copying, that generation is to reach; 0: any.
double generation_target(std::string_view shape, TensorType type) {
  if (shape == "7B" || shape == "tiny") return type == TensorType::kBF16 ? 0.85 : 0.75;
  return shape == "0.5B" && type == TensorType::kQ8_0 ? 0.50 : 0;
}
constexpr double kPromptTarget = 0.55;    ///< of the matrix rate
constexpr double kKeystrokeTarget = 1.2;  ///< times a step of one token

class Measurement {
 public:
  Measurement(Bench& bench, const Shape& of, const Variant& variant, const BenchModel& model,
              Backend& backend)
      : bench_(bench),
        extent_(bench.extent),
        variant_(variant),
        shape_name_(of.name),
        name_(variant.name(of)),
        model_(model),
        backend_(backend),
        pages_(static_cast<std::size_t>(extent_.contexts.back() / kPageTokens + 2)) {
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  void all() {
    // Tokens attend to the keys and values of others, not to the memory's old contents.
    steps(extent_.contexts.back() + 1);
    for (const int context : extent_.contexts) generation(context);
    for (const int prompt : extent_.prompts) prompts(prompt);
    keystrokes();
  }

 private:
  /// Whether the numbers of the shape are those of the targets for models that fill a card.
  bool has_targets() const {
    return variant_.plain() && (shape_name_ == "7B" || shape_name_ == "tiny");
  }

  void step(int position, int count, bool logits) {
    std::vector<TokenId> tokens(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
      tokens[static_cast<std::size_t>(i)] = (position + i) * 7919 % model_.shape.vocabulary;
    const StepSequence sequence{0, count, position, pages_};
    const int last = count - 1;
    auto done = backend_.begin({tokens, {&sequence, 1}, {&last, logits ? 1U : 0U}});
    for (int layer = 0; done && layer < model_.shape.layers; ++layer)
      done = run_layer(backend_, layer);
    must_have(done);
    if (logits) must_have(backend_.logits());
  }
  void steps(int tokens) {
    for (int at = 0; at < tokens; at += kStepTokens)
      step(at, std::min(kStepTokens, tokens - at), at + kStepTokens >= tokens);
  }

  void generation(int context) {
    const double ms = bench_.median_ms([&] { step(context, 1, true); });
    const double read = static_cast<double>(model_.bytes) +
                        static_cast<double>(backend_.page_bytes()) / kPageTokens * context;
    const Share share = bench_.rates.of_copying(read, ms);
    const std::string what = name_ + "generation after " + std::to_string(context);
    bench_.report.line(what, ms, 1e3 / ms, "tokens/s", share);
    const double wanted = generation_target(shape_name_, variant_.type);
    if (variant_.plain() && wanted > 0 && context == extent_.context)
      bench_.report.target({what + ", of copying", share.value, Target::Bound::kAtLeast, wanted});
  }

  void prompts(int tokens) {
    const double ms = bench_.median_ms([&] { steps(tokens); });
    const Share share = bench_.rates.of_products(tokens * model_.flops, ms);
    const std::string what = name_ + "prompt of " + std::to_string(tokens);
    bench_.report.line(what, ms, tokens / ms * 1e3, "tokens/s", share);
    if (!has_targets() || tokens != extent_.prompt) return;
    const auto value = share.of == nullptr ? std::nullopt : std::optional(share.value);
    bench_.report.target(
        {what + ", of cuBLAS in bf16", value, Target::Bound::kAtLeast, kPromptTarget});
  }

  void keystrokes() {
    double one = 0, worst = 0;
    int worst_tokens = 0;
    for (const int tokens : extent_.keystroke) {
      const double ms = bench_.median_ms([&] { step(extent_.context, tokens, true); });
      bench_.report.line(name_ + "keystroke of " + std::to_string(tokens) + " after " +
                             std::to_string(extent_.context),
                         ms, tokens / ms * 1e3, "tokens/s");
      if (tokens == 1) {
        one = ms;
      } else if (ms / one > worst) {
        worst = ms / one;
        worst_tokens = tokens;
      }
    }
    if (has_targets())
      bench_.report.target({name_ + "keystroke of " + std::to_string(worst_tokens) + " after " +
                                std::to_string(extent_.context) + ", of one's time",
                            worst, Target::Bound::kAtMost, kKeystrokeTarget});
  }

  Bench& bench_;
  const Extent& extent_;
  const Variant variant_;
  const std::string_view shape_name_;
  const std::string name_;
  const BenchModel& model_;
  Backend& backend_;
  std::vector<PageIndex> pages_;
};

void measure_variant(Bench& bench, const Shape& of, const Variant& variant) {
  const BenchModel model(of, variant.type);
  const int pages = bench.extent.contexts.back() / kPageTokens + 2;
  auto made = gpu::make_gpu_backend(open_device({.variants = variant.kernels}), model.shape,
                                    model.weights, {pages, kStepTokens, variant.kv_type});
  if (!made && made.error().fault == Fault::kNoMemory) {
    std::printf("SKIPPED  %sdoes not fit: %s\n", variant.name(of).c_str(),
                made.error().what.c_str());
    return;
  }
  must_have(made);
  if ((*made)->page_count() < pages) {
    std::printf("SKIPPED  %sits KV does not fit\n", variant.name(of).c_str());
    return;
  }
  Measurement(bench, of, variant, model, **made).all();
}

}  // namespace

ModelShape Shape::model() const {
  ModelShape shape;
  shape.architecture = "qwen2";
  shape.layers = layers, shape.width = width, shape.heads = heads;
  shape.kv_heads = kv_heads, shape.head_width = width / heads;
  shape.feed_forward = feed_forward, shape.vocabulary = vocabulary;
  shape.context_tokens = context_tokens, shape.rope_width = shape.head_width;
  shape.rope_pairs = RopePairs::kHalves, shape.rope_base = 1e6F;
  return shape;
}

void measure_model(Bench& bench, const Shape& shape) {
  for (const Variant& variant : kVariants)
    attempt(bench, variant.name(shape), [&] { measure_variant(bench, shape, variant); });
}
