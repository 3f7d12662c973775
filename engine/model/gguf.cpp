#include "engine/model/gguf.h"

#include <array>
#include <utility>

#include "engine/model/gguf_reader.h"

namespace efimd::engine {
namespace {

constexpr std::array<std::pair<std::uint32_t, std::string_view>, 33> kGgmlTypes = {{
    {0, "F32"},     {1, "F16"},    {2, "Q4_0"},     {3, "Q4_1"},    {6, "Q5_0"},     {7, "Q5_1"},
    {8, "Q8_0"},    {9, "Q8_1"},   {10, "Q2_K"},    {11, "Q3_K"},   {12, "Q4_K"},    {13, "Q5_K"},
    {14, "Q6_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},      {25, "I16"},
    {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},  {30, "BF16"},    {34, "TQ1_0"},
    {35, "TQ2_0"},  {39, "MXFP4"}, {40, "NVFP4"},
}};

const GgufValue* find(const GgufFile& file, std::string_view key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? nullptr : &found->second;
}

template <class T>
const std::vector<T>* find_array(const GgufFile& file, std::string_view key) {
  const GgufValue* const value = find(file, key);
  const auto* const array = value == nullptr ? nullptr : std::get_if<GgufArray>(value);
  return array == nullptr ? nullptr : std::get_if<std::vector<T>>(array);
}

}  // namespace

std::string ggml_type_name(std::uint32_t number) {
  for (const auto& [type, name] : kGgmlTypes)
    if (type == number) return std::string(name);
  return "type " + std::to_string(number);
}

std::string_view tensor_type_name(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return "F32";
    case TensorType::kF16:
      return "F16";
    case TensorType::kBF16:
      return "BF16";
    case TensorType::kQ8_0:
      return "Q8_0";
    case TensorType::kQ4_0:
      return "Q4_0";
    case TensorType::kQ4_1:
      return "Q4_1";
    case TensorType::kQ5_0:
      return "Q5_0";
    case TensorType::kQ5_1:
      return "Q5_1";
    case TensorType::kQ4_K:
      return "Q4_K";
    case TensorType::kQ5_K:
      return "Q5_K";
    case TensorType::kQ6_K:
      return "Q6_K";
  }
  return "unknown";
}

bool is_readable(std::uint32_t number) {
  switch (static_cast<TensorType>(number)) {
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
    case TensorType::kQ8_0:
    case TensorType::kQ4_0:
    case TensorType::kQ4_1:
    case TensorType::kQ5_0:
    case TensorType::kQ5_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
    case TensorType::kQ6_K:
      return true;
  }
  return false;
}

std::string_view readable_types() {
  return "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K";
}

TensorBlock tensor_block(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return {1, 4};
    case TensorType::kF16:
    case TensorType::kBF16:
      return {1, 2};
    case TensorType::kQ8_0:
      return {32, 34};
    case TensorType::kQ4_0:
      return {32, 18};
    case TensorType::kQ4_1:
      return {32, 20};
    case TensorType::kQ5_0:
      return {32, 22};
    case TensorType::kQ5_1:
      return {32, 24};
    case TensorType::kQ4_K:
      return {256, 144};
    case TensorType::kQ5_K:
      return {256, 176};
    case TensorType::kQ6_K:
      return {256, 210};
  }
  return {1, 1};
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string name) {
  return GgufReader(bytes, std::move(name)).read();
}

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  Result<MappedFile> mapping = MappedFile::open(path);
  if (!mapping) return tl::unexpected<Error>(std::move(mapping.error()));
  Result<GgufFile> file = parse(mapping->bytes(), path.filename().string());
  if (file) file->mapping_ = std::move(*mapping);
  return file;
}

std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  const GgufValue* const value = find(*this, key);
  if (value == nullptr || !std::holds_alternative<std::int64_t>(*value)) return std::nullopt;
  return std::get<std::int64_t>(*value);
}

std::optional<double> GgufFile::real(std::string_view key) const {
  if (const auto whole = integer(key)) return static_cast<double>(*whole);
  const GgufValue* const value = find(*this, key);
  if (value == nullptr || !std::holds_alternative<double>(*value)) return std::nullopt;
  return std::get<double>(*value);
}

std::optional<std::string_view> GgufFile::string(std::string_view key) const {
  const GgufValue* const value = find(*this, key);
  if (value == nullptr || !std::holds_alternative<std::string_view>(*value)) return std::nullopt;
  return std::get<std::string_view>(*value);
}

const std::vector<std::string_view>* GgufFile::strings(std::string_view key) const {
  return find_array<std::string_view>(*this, key);
}

const std::vector<std::int64_t>* GgufFile::integers(std::string_view key) const {
  return find_array<std::int64_t>(*this, key);
}

const std::vector<double>* GgufFile::reals(std::string_view key) const {
  return find_array<double>(*this, key);
}

const TensorView* GgufFile::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace efimd::engine
