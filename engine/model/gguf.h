#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"

namespace efimd::engine {

/// Element types of GGUF tensors that this build reads, with GGML's numbers.
enum class TensorType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

std::string_view tensor_type_name(TensorType type);
/// The name of any of GGML's types, even if this build does not read it; "type 99" for numbers
/// without one.
std::string ggml_type_name(std::uint32_t number);
/// Whether one of GGML's types is a TensorType.
bool is_readable(std::uint32_t number);
/// The names of all readable types, for refusals: "F32, F16, ... and Q6_K".
std::string_view readable_types();
/// Elements that share a block, and the block's bytes: Q8_0 is 32 weights in 34 bytes. Their
/// contents: engine/backend /cpu/kernels/weight_blocks.h.
struct TensorBlock {
  int elements;
  int bytes;
};
TensorBlock tensor_block(TensorType type);

/// A tensor inside a mapped file: `rows` rows of `cols` contiguous elements (rows == 1 for vectors,
/// 0 when absent).
struct TensorView {
  TensorType type = TensorType::kF32;
  const std::byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  bool present() const { return rows != 0; }
  std::size_t row_bytes() const {
    const TensorBlock block = tensor_block(type);
    return static_cast<std::size_t>(cols / block.elements) * static_cast<std::size_t>(block.bytes);
  }
  const std::byte* row(std::int64_t index) const {
    return data + static_cast<std::size_t>(index) * row_bytes();
  }
};

/// The values of an array entry; strings point into the mapping.
using GgufArray =
    std::variant<std::vector<std::string_view>, std::vector<std::int64_t>, std::vector<double>>;
/// One metadata value. Integers of every width (and bool) read as int64, floats as double.
using GgufValue = std::variant<std::int64_t, double, std::string_view, GgufArray>;

/// A GGUF file (versions 2 and 3, little-endian), checked whole before anything is used. Every
/// count, length, type, offset and alignment lies inside the file. A fault names the key or tensor
/// and the byte. Weight bytes are not touched, so that opening costs the same for a model of any
/// size.
///
///   offset  size  field              then
///   0       4     "GGUF"             metadata: key string, u32 type, value
///   4       4     version            tensor directory: name, u32 axes, u64 x axes, u32 type,
///   8       8     tensor count         u64 offset from the start of the data
///   16      8     metadata count     padding to general.alignment (32); tensor data
///
/// Source: ggml's specification of the format. Limits: the k…Max of gguf_reader.cpp; more is
/// refused.
class GgufFile {
 public:
  static Result<GgufFile> open(const std::filesystem::path& path);
  /// The same over bytes that outlive the result (tests, fuzzing).
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// False after another program has changed the file. Do not trust anything read since.
  bool intact() const { return !mapping_ || mapping_->intact(); }
  /// MappedFile::stamp(); empty for bytes that are no file.
  std::string stamp() const { return mapping_ ? mapping_->stamp() : std::string(); }
  /// Takes some of bytes(), which are not needed soon, out of this process's memory.
  void give_back(std::span<const std::byte> bytes) const {
    if (mapping_) mapping_->give_back(bytes);
  }
  /// Bytes before the tensor data: header, metadata, directory, padding.
  std::size_t data_start() const { return data_start_; }

  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;  ///< integers convert
  std::optional<std::string_view> string(std::string_view key) const;
  /// Null when the key is absent or holds another kind of array.
  const std::vector<std::string_view>* strings(std::string_view key) const;
  const std::vector<std::int64_t>* integers(std::string_view key) const;
  const std::vector<double>* reals(std::string_view key) const;

  /// All tensors whose type this build reads; types it does not read are kept in unreadable().
  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  const TensorView* tensor(std::string_view name) const;
  /// Tensor name -> GGML type number, for files with types that this build cannot run.
  const std::map<std::string, std::uint32_t, std::less<>>& unreadable() const {
    return unreadable_;
  }

 private:
  friend class GgufReader;
  GgufFile() = default;
  std::string name_;
  std::optional<MappedFile> mapping_;
  std::span<const std::byte> bytes_;
  std::size_t data_start_ = 0;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, std::uint32_t, std::less<>> unreadable_;
};

}  // namespace efimd::engine
