#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/model.h"

namespace efimd::engine {

/// Finds a decoder's shape (model_reader.cpp) and weights (model_reader_weights.cpp) among a file's
/// keys and tensors. The table of architectures has a line for each. It stops at the first fault.
/// Used once.
class ModelReader {
 public:
  explicit ModelReader(const GgufFile& file) : file_(file) {}

  /// The shape but for the vocabulary, which is the tokenizer's.
  Result<ModelShape> read_shape();
  /// Every weight, its type and axes checked against `shape`. Refuses tensors that the architecture
  /// does not use, because they would change the result.
  Result<ModelWeights> read_weights(const ModelShape& shape);

 private:
  void read_architecture();
  void read_sizes();
  void read_heads();
  void read_experts();
  void read_norm();
  void read_rope();
  void read_rope_scaling();
  void read_yarn();
  void read_multipliers();
  void refuse_variants();

  bool has(std::string_view key) const { return file_.metadata().contains(key_of(key)); }
  /// The integer at ARCHITECTURE.`key` in 1..max; `fallback` when absent, a fault when there is
  /// none.
  int size_at(std::string_view key, std::optional<int> fallback = std::nullopt);
  float real_at(std::string_view key, float fallback);
  /// As real_at(); an absent key and 0 mean that nothing is scaled.
  float scale_at(std::string_view key);
  std::string key_of(std::string_view key) const { return architecture_ + "." + std::string(key); }

  LayerWeights read_layer(const ModelShape& shape, int layer);
  void read_attention(const ModelShape& shape, const std::string& prefix, LayerWeights& weights);
  void read_feed_forward(const ModelShape& shape, const std::string& prefix, LayerWeights& weights);
  void read_rope_factors(const ModelShape& shape, ModelWeights& weights);
  TensorView matrix(const std::string& name, std::int64_t rows, std::int64_t cols, Presence need);
  TensorView vector(const std::string& name, std::int64_t size, Presence need);
  void refuse_unused();

  /// Keeps the first fault only, because later ones are guesswork.
  void refuse(Fault fault, std::string what, std::string remedy);
  void damaged(std::string what) {
    refuse(Fault::kBadInput, std::move(what), "download the file again or use another model");
  }
  void unsupported(std::string what) {
    refuse(Fault::kUnsupported, std::move(what), "use another model");
  }

  const GgufFile& file_;
  std::string architecture_;            ///< as the file spells it
  const Architecture* kind_ = nullptr;  ///< set before anything else is read
  ModelShape shape_;
  std::set<std::string, std::less<>> used_;
  std::optional<Error> error_;
};

}  // namespace efimd::engine
