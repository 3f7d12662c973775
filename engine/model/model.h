#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "engine/model/gguf.h"
#include "engine/tokenizer/tokenizer.h"

namespace efimd::engine {

enum class Architecture { kLlama, kQwen2 };

/// Which two elements of a head RoPE turns together.
enum class RopePairs {
  kAdjacent,  ///< (0,1) (2,3) ...: llama files, whose Q and K rows were permuted for it
  kHalves,    ///< (0,E/2) (1,E/2+1) ...: NeoX order, qwen2
};

/// The sizes of a decoder, by the letters of style.md.
struct ModelShape {
  Architecture architecture = Architecture::kLlama;
  int layers = 0;          ///< L
  int width = 0;           ///< D
  int heads = 0;           ///< H
  int kv_heads = 0;        ///< Hk, divides H
  int head_width = 0;      ///< E, even; heads * head_width need not equal width
  int feed_forward = 0;    ///< F
  int vocabulary = 0;      ///< V
  int context_tokens = 0;  ///< trained context
  RopePairs rope_pairs = RopePairs::kAdjacent;
  int rope_width = 0;  ///< leading elements of a head that are rotated; even, <= head_width
  float rope_base = 10000.0F;
  float rope_scale = 1.0F;  ///< positions are multiplied by it: 1 / factor of linear scaling
  float norm_epsilon = 1e-5F;

  /// Bytes of KV for one token in f16, all layers.
  std::size_t kv_bytes_per_token() const {
    return 2 * sizeof(std::uint16_t) * static_cast<std::size_t>(layers) *
           static_cast<std::size_t>(kv_heads) * static_cast<std::size_t>(head_width);
  }
};

/// One decoder block. Matrices are [rows = outputs][cols = inputs], rows contiguous; vectors are
/// F32. Biases are empty (rows == 0) where the architecture has none.
struct LayerWeights {
  TensorView attention_norm;                    ///< [D]
  TensorView query, key, value;                 ///< [H*E][D], [Hk*E][D], [Hk*E][D]
  TensorView query_bias, key_bias, value_bias;  ///< [H*E], [Hk*E], [Hk*E]
  TensorView attention_output;                  ///< [D][H*E]
  TensorView feed_forward_norm;                 ///< [D]
  TensorView gate, up;                          ///< [F][D]
  TensorView down;                              ///< [D][F]
};

struct ModelWeights {
  TensorView token_embedding;  ///< [V][D]
  std::vector<LayerWeights> layers;
  TensorView output_norm;  ///< [D]
  TensorView output;       ///< [V][D]; the embedding itself when tied
};

/// A model file, opened and validated: shape, weights and tokenizer.
///
/// Owns: the mapping that its TensorViews point into. Thread: any (immutable).
class Model {
 public:
  /// Refuses with the offending key or tensor: a damaged file, an architecture, tensor type or
  /// tokenizer that this build cannot run, a file without weights.
  static Result<std::shared_ptr<const Model>> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::string& name() const { return name_; }
  const ModelShape& shape() const { return shape_; }
  const ModelWeights& weights() const { return weights_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const GgufFile& file() const { return *file_; }
  /// Names the model in KV identities: digest of the metadata, the tensor directory, the file's
  /// size and 4 KiB of every tensor, so that a 15 GB file costs no full read.
  Digest digest() const { return digest_; }
  std::uint64_t parameters() const { return parameters_; }
  std::uint64_t weight_bytes() const { return weight_bytes_; }
  /// "F16", "Q8_0", ...: the type of most weight bytes.
  const std::string& file_type() const { return file_type_; }
  /// Metadata `efim.fragment_trained`: broken words behind <MID> need no healing.
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
  std::uint64_t weight_bytes_ = 0;
  std::string file_type_;
  bool fragment_trained_ = false;
};

}  // namespace efimd::engine
