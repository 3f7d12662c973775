#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "engine/model/gguf.h"
#include "engine/tokenizer/tokenizer.h"

namespace efimd::engine {

/// The two elements of a head that RoPE turns together.
enum class RopePairs {
  kAdjacent,  ///< (0,1) (2,3) ...: llama files, whose Q and K rows were permuted for it
  kHalves,    ///< (0,E/2) (1,E/2+1) ...: NeoX order, qwen2
};

enum class Norm {
  kRms,    ///< x / sqrt(mean(x^2) + epsilon) * weight
  kLayer,  ///< (x - mean) / sqrt(variance + epsilon) * weight + bias
};

enum class Activation {
  kSilu,  ///< x / (1 + exp(-x))
  kGelu,  ///< x / (1 + exp(-2u)), u = sqrt(2 / pi) * (x + 0.044715 x^3): the "tanh" form
};

/// YaRN (arXiv 2309.00071). Pairs that turn often keep their frequency; slow ones are interpolated
/// by rope_scale, with a ramp between.
struct YarnRamp {
  float extrapolation = 0;  ///< share of the ramp that counts; 0: no YaRN
  int original_context_tokens = 0;
  float turns_fast = 32;  ///< over the original context: from here on a pair keeps its frequency
  float turns_slow = 1;   ///< and down from here it is interpolated whole
};

/// A decoder's computation: its sizes, with the letters that kernels use, and the variations
/// between architectures. All else follows from which weights are present (LayerWeights). Devices
/// read this and never an architecture's name.
struct ModelShape {
  std::string_view architecture;  ///< a name of architecture.h's table, for people
  int layers = 0;                 ///< L
  int width = 0;                  ///< D
  int heads = 0;                  ///< H
  int kv_heads = 0;               ///< Hk, divides H
  int head_width = 0;             ///< E, even; heads * head_width need not equal width
  int feed_forward = 0;           ///< F; of one expert if there are experts
  int vocabulary = 0;             ///< V
  int context_tokens = 0;         ///< trained context

  Norm norm = Norm::kRms;  ///< of x; norms of heads are always kRms
  float norm_epsilon = 1e-5F;
  Activation activation = Activation::kSilu;

  RopePairs rope_pairs = RopePairs::kAdjacent;
  int rope_width = 0;  ///< leading elements of a head that are rotated; even, <= head_width
  float rope_base = 10000.0F;
  float rope_scale = 1.0F;      ///< positions are multiplied by it: 1 / factor of linear scaling
  float rope_magnitude = 1.0F;  ///< rotated elements are multiplied by it (YaRN)
  YarnRamp yarn;

  /// A token sees itself and the attention_window - 1 tokens before it; 0: all of them.
  int attention_window = 0;

  float embedding_scale = 1.0F;
  float attention_scale = 0.0F;  ///< of q . k; 0: 1 / sqrt(E)
  float residual_scale = 1.0F;   ///< of what attention and feed-forward add to x
  float logit_scale = 1.0F;      ///< logits are multiplied by it

  int experts = 0;       ///< 0: dense
  int experts_used = 0;  ///< for each token; the router's softmax over these makes their weights

  float score_scale() const {
    return attention_scale != 0 ? attention_scale
                                : 1.0F / std::sqrt(static_cast<float>(head_width));
  }
  /// Bytes of KV for one token in f16, all layers.
  std::size_t kv_bytes_per_token() const {
    return 2 * sizeof(std::uint16_t) * static_cast<std::size_t>(layers) *
           static_cast<std::size_t>(kv_heads) * static_cast<std::size_t>(head_width);
  }
};

/// One decoder block. Matrices are [rows = outputs][cols = inputs], rows contiguous; vectors are
/// F32. A weight that the architecture lacks is absent (rows == 0), and its operation is left out.
struct LayerWeights {
  TensorView attention_norm;                    ///< [D]
  TensorView attention_norm_bias;               ///< [D]
  TensorView query, key, value;                 ///< [H*E][D], [Hk*E][D], [Hk*E][D]
  TensorView query_bias, key_bias, value_bias;  ///< [H*E], [Hk*E], [Hk*E]
  TensorView query_norm, key_norm;              ///< [E]: RMS norm of each head before RoPE
  TensorView attention_output;                  ///< [D][H*E]
  TensorView attention_output_bias;             ///< [D]
  TensorView feed_forward_norm;                 ///< [D]
  TensorView feed_forward_norm_bias;            ///< [D]
  TensorView router;                            ///< [experts][D]
  TensorView gate;                              ///< [F][D]; absent: activation(up) without a gate
  TensorView up;                                ///< [F][D]
  TensorView down;                              ///< [D][F]
  TensorView gate_bias, up_bias, down_bias;     ///< [F], [F], [D]
  // With experts gate, up and down hold one expert's matrix below the other's: [experts * F][D] ...
};

struct ModelWeights {
  TensorView token_embedding;  ///< [V][D]
  std::vector<LayerWeights> layers;
  TensorView output_norm;       ///< [D]
  TensorView output_norm_bias;  ///< [D]
  TensorView output;            ///< [V][D]; the embedding itself when tied
  /// [rope_width / 2]: the frequency of a pair is divided by it (llama3). Absent: by 1.
  TensorView rope_factors;
};

/// A model file, opened and validated: shape, weights and tokenizer.
///
/// Owns: the mapping that its TensorViews point into. Thread: any (immutable).
class Model {
 public:
  /// Refuses a damaged file, a file without weights, and an architecture, tensor type or tokenizer
  /// that this build cannot run. The error names the key or tensor.
  static Result<std::shared_ptr<const Model>> open(const std::filesystem::path& path,
                                                   const FimOverride& fim = {});
  /// The same from a file that is read already; `path` is for messages and the name.
  static Result<std::shared_ptr<const Model>> from(GgufFile file, const std::filesystem::path& path,
                                                   const FimOverride& fim = {});

  const std::filesystem::path& path() const { return path_; }
  const std::string& name() const { return name_; }
  const ModelShape& shape() const { return shape_; }
  const ModelWeights& weights() const { return weights_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const GgufFile& file() const { return *file_; }
  /// Names the model, also in KV identities if EngineOptions::model_identity is unset. A digest of
  /// the metadata, the tensor directory, the file's size and 4 KiB of every tensor: a 15 GB file
  /// costs no full read.
  Digest digest() const { return digest_; }
  std::uint64_t parameters() const { return parameters_; }
  /// Parameters that one token uses: of the experts, only experts_used.
  std::uint64_t active_parameters() const { return active_parameters_; }
  std::uint64_t weight_bytes() const { return weight_bytes_; }
  /// "F16", "Q8_0", ...: the type of most weight bytes.
  const std::string& file_type() const { return file_type_; }
  /// Metadata `efim.fragment_trained`: broken words after <MID> need no healing.
  bool fragment_trained() const { return fragment_trained_; }

 private:
  Model() = default;
  /// Fills in what follows from the file alone: name, digest, counts.
  void describe();
  std::filesystem::path path_;
  std::string name_;
  std::unique_ptr<GgufFile> file_;
  ModelShape shape_;
  ModelWeights weights_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Digest digest_;
  std::uint64_t parameters_ = 0;
  std::uint64_t active_parameters_ = 0;
  std::uint64_t weight_bytes_ = 0;
  std::string file_type_;
  bool fragment_trained_ = false;
};

}  // namespace efimd::engine
