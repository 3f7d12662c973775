#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/gguf.h"

namespace efimd::test {

/// Writes GGUF bytes, well-formed or not: counts, types, offsets and values can be made to lie.
///
/// Setting a key or a tensor again replaces it, so that a test says only what differs from a good
/// file.
class GgufWriter {
 public:
  std::uint32_t version = 3;
  std::uint32_t alignment = 32;               ///< of the layout; the key is written only when set()
  std::optional<std::uint64_t> tensor_count;  ///< written instead of the true count
  std::optional<std::uint64_t> metadata_count;  ///< written instead of the true count

  GgufWriter& u32(std::string_view key, std::uint32_t value);
  GgufWriter& u64(std::string_view key, std::uint64_t value);
  GgufWriter& i32(std::string_view key, std::int32_t value);
  GgufWriter& f32(std::string_view key, float value);
  GgufWriter& boolean(std::string_view key, bool value);
  GgufWriter& text(std::string_view key, std::string_view value);
  GgufWriter& texts(std::string_view key, const std::vector<std::string>& values);
  GgufWriter& i32s(std::string_view key, const std::vector<std::int32_t>& values);
  GgufWriter& f32s(std::string_view key, const std::vector<float>& values);
  /// A value of any type number, its bytes as they are.
  GgufWriter& raw(std::string_view key, std::uint32_t type, std::string bytes);
  GgufWriter& remove(std::string_view key);
  /// Writes the entry a second time under a key that is there already.
  GgufWriter& duplicate(std::string_view key);

  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> axes;  ///< fastest first, as in the file
    std::uint32_t type = 0;           ///< GGML's number
    std::string data;
    std::optional<std::uint64_t> offset;  ///< written instead of the true one
  };
  GgufWriter& tensor(Tensor tensor);
  /// Appends without replacing one of the same name.
  GgufWriter& extra_tensor(Tensor tensor);
  Tensor* find_tensor(std::string_view name);
  GgufWriter& remove_tensor(std::string_view name);

  std::string bytes() const;
  void write(const std::filesystem::path& path) const;

 private:
  struct Entry {
    std::string key;
    std::uint32_t type;
    std::string value;
  };
  std::vector<Entry> entries_;
  std::vector<Tensor> tensors_;
};

/// Bytes of `values` in `type`, rounded to the nearest of its levels. Quantized types want whole
/// blocks; their scales come from the largest value (or the range) alone, without a search.
std::string encode_tensor(std::span<const float> values, engine::TensorType type);
/// The type that a matrix with rows of `cols` has in a file of `type`: if K types do not fit, the
/// older type of the next size, as in published files.
engine::TensorType type_that_fits(engine::TensorType type, int cols);

/// A decoder small enough to write in each test. Its random weights have the scale cols^-0.5, so
/// that activations stay finite. It has the keys and tensors of real files of its architecture.
struct TinyModel {
  enum class Vocab { kSentencepiece, kByteBpe };
  enum class RopeScaling { kNone, kLinear, kYarn, kLlama3 };

  /// llama, qwen2, qwen3, qwen3moe, starcoder2, gemma or granite; others get llama's tensors.
  std::string architecture = "llama";
  int layers = 2;
  int width = 64;
  int heads = 4;
  int kv_heads = 2;
  int head_width = 16;
  int feed_forward = 128;
  int context = 512;
  float rope_base = 10000.0F;
  /// Of the matrices, if it fits; vectors are F32.
  engine::TensorType type = engine::TensorType::kF32;
  std::vector<engine::TensorType> types_in_turn =
      {};  ///< not empty: matrix after matrix, not `type`
  bool tied = false;
  bool fragment_trained = false;
  std::uint64_t seed = 1;
  Vocab vocab = Vocab::kSentencepiece;
  std::string pre = "qwen2";  ///< pre-tokenizer rule of a byte-level vocabulary
  int vocabulary = 320;       ///< padded with unused tokens; at least 318
  RopeScaling rope_scaling = RopeScaling::kNone;
  int window = 0;           ///< attention.sliding_window; 0: no such key
  int experts = 8;          ///< of qwen3moe
  int experts_used = 3;     ///< and how many of them a token uses
  bool all_biases = false;  ///< llama's optional ones, which Granite Code has
  float bias_deviation = 0.02F;
  float embedding_gain = 1;  ///< of the embedding; more makes layers change less of it
  float router_gain = 1;     ///< of the router; more makes its choices clearer
  /// Not 0: the last norm's weights have this size, with either sign, and so have the logits. A
  /// tied output then does not favour the token that it reads.
  float output_gain = 0;
};

/// The file's parts, for tests that change one of them before writing.
GgufWriter tiny_model(const TinyModel& model);

/// Writes `folder`/tiny-ARCHITECTURE-….gguf and returns its path.
std::filesystem::path write_tiny_model(const TinyModel& model, const std::filesystem::path& folder);

}  // namespace efimd::test
