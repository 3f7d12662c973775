#include "engine/model/gguf_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/utf8.h"

// Weights are used in place, so the file's byte order must be the processor's.
static_assert(std::endian::native == std::endian::little);

namespace efimd::engine {
namespace {

// Far above any file seen (a 150k vocabulary, 1500 tensors); past them the file is refused.
constexpr std::uint64_t kMetadataMax = 1U << 16;
constexpr std::uint64_t kTensorsMax = 1U << 16;
constexpr std::uint64_t kArrayMax = 1U << 24;  ///< elements of all arrays together
/// Arrays are kept wider than the file writes them (a bool becomes 8 bytes). This is the memory
/// beyond the file's own size. With it, reading a file takes no more memory than its size and a
/// constant.
constexpr std::uint64_t kArrayBytesBeyondFileMax = 1U << 24;
constexpr std::uint64_t kStringMax = 1U << 24;
constexpr std::uint64_t kNameMax = 1U << 10;
constexpr std::uint32_t kAxesMax = 4;
constexpr std::uint64_t kAlignmentMin =
    8;  ///< the specification's; weights are read as whole words
constexpr std::uint64_t kAlignmentMax = 1U << 20;
constexpr std::uint64_t kElementsMax = std::uint64_t{1}
                                       << 48;  ///< of one tensor: bytes stay in 64 bits

constexpr std::uint64_t kEntryBytesMin = 8 + 4 + 1;
constexpr std::uint64_t kLineBytesMin = 8 + 4 + 8 + 4 + 8;

/// Value types of metadata, with the file's numbers.
enum ValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// Bytes of one value; 0 for strings, arrays and unknown types.
std::uint64_t value_bytes(std::uint32_t type) {
  constexpr std::array<std::uint8_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < kBytes.size() ? kBytes[type] : 0;
}

bool is_real(std::uint32_t type) { return type == kF32 || type == kF64; }

/// A name from the file as a message may show it.
std::string shown(std::string_view name) {
  constexpr std::size_t kShownMax = 80;
  std::string text = utf8::sanitized(name.substr(0, std::min(kShownMax, name.size())));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, '?');
  return text;
}

}  // namespace

GgufReader::GgufReader(std::span<const std::byte> bytes, std::string name) : bytes_(bytes) {
  file_.name_ = std::move(name);
  file_.bytes_ = bytes;
}

Result<GgufFile> GgufReader::read() {
  bool good = read_header();
  for (std::uint64_t i = 0; good && i < metadata_count_; ++i) good = read_entry();
  good = good && read_alignment();
  for (std::uint64_t i = 0; good && i < tensor_count_; ++i) good = read_line();
  const std::uint64_t padded = (at_ + alignment_ - 1) / alignment_ * alignment_;
  file_.data_start_ = std::min<std::uint64_t>(padded, bytes_.size());
  for (std::size_t i = 0; good && i < directory_.size(); ++i) good = place(directory_[i]);
  if (!good) return tl::unexpected<Error>(std::move(*error_));
  return std::move(file_);
}

bool GgufReader::read_header() {
  if (bytes_.empty()) return damaged("is empty");
  const std::size_t magic_size = std::min<std::size_t>(4, bytes_.size());
  const std::string_view magic(reinterpret_cast<const char*>(bytes_.data()), magic_size);
  if (magic != std::string_view("GGUF").substr(0, magic_size))
    return refuse(Fault::kBadInput, "starts with \"" + shown(magic) + "\", not GGUF",
                  "name a model in GGUF format");
  at_ = magic_size;
  return read_version() && read_count("tensors", kTensorsMax, kLineBytesMin, tensor_count_) &&
         read_count("metadata entries", kMetadataMax, kEntryBytesMin, metadata_count_);
}

bool GgufReader::read_version() {
  std::uint32_t version = 0;
  if (!read_number(version)) return false;
  if (version == 2 || version == 3) return true;
  if (version != 0 && (version & 0xFFFFU) == 0)
    return refuse(Fault::kUnsupported, "is a big-endian GGUF file",
                  "use the little-endian file of this model");
  return refuse(Fault::kUnsupported,
                "has GGUF version " + std::to_string(version) + "; versions 2 and 3 are read",
                "convert the model with current tools");
}

bool GgufReader::read_count(std::string_view what, std::uint64_t max, std::uint64_t bytes_each,
                            std::uint64_t& count) {
  if (!read_number(count)) return false;
  const std::string claim = "claims " + std::to_string(count) + " " + std::string(what);
  if (count > max) return damaged(claim + "; at most " + std::to_string(max) + " are read");
  const std::size_t rest = bytes_.size() - at_;
  if (count > rest / bytes_each)
    return damaged(claim + ", but only " + std::to_string(rest) + " bytes follow");
  return true;
}

bool GgufReader::read_entry() {
  reading_ = "the key of metadata entry " + std::to_string(file_.metadata_.size());
  std::string_view key;
  if (!read_text(key, kNameMax)) return false;
  reading_ = "key " + shown(key);
  std::uint32_t type = 0;
  GgufValue value;
  if (!read_number(type) || !read_value(type, value)) return false;
  if (!file_.metadata_.emplace(key, std::move(value)).second)
    return damaged("has the key " + shown(key) + " twice");
  return true;
}

bool GgufReader::read_value(std::uint32_t type, GgufValue& value) {
  if (type == kString) return read_text(value.emplace<std::string_view>(), kStringMax);
  if (type == kArray) return read_array(value.emplace<GgufArray>());
  if (is_real(type)) return read_scalar(type, value.emplace<double>());
  return read_scalar(type, value.emplace<std::int64_t>());
}

bool GgufReader::read_array(GgufArray& array) {
  std::uint32_t type = 0;
  std::uint64_t count = 0;
  if (!read_number(type) || !read_number(count)) return false;
  if (type == kArray) return damaged(reading_ + " is an array of arrays, which no model needs");
  const std::uint64_t bytes_each = type == kString ? sizeof(std::uint64_t) : value_bytes(type);
  if (bytes_each == 0)
    return damaged(reading_ + " is an array of the unknown type " + std::to_string(type));
  if (count > kArrayMax - array_elements_)
    return damaged(reading_ + " claims " + std::to_string(count) + " elements; a file may have " +
                   std::to_string(kArrayMax));
  if (count > (bytes_.size() - at_) / bytes_each)
    return damaged("ends at byte " + std::to_string(bytes_.size()) + ", inside " + reading_ +
                   ", an array of " + std::to_string(count));
  const std::uint64_t kept_each = type == kString ? sizeof(std::string_view) : sizeof(std::int64_t);
  if (count * kept_each > bytes_.size() + kArrayBytesBeyondFileMax - array_bytes_)
    return damaged(reading_ + " claims " + std::to_string(count) +
                   " elements, which would take too much memory");
  array_elements_ += count;
  array_bytes_ += count * kept_each;
  if (type == kString) return read_array_of<std::string_view>(type, count, array);
  if (is_real(type)) return read_array_of<double>(type, count, array);
  return read_array_of<std::int64_t>(type, count, array);
}

template <class Element>
bool GgufReader::read_array_of(std::uint32_t type, std::uint64_t count, GgufArray& array) {
  auto& values = array.emplace<std::vector<Element>>(static_cast<std::size_t>(count));
  for (Element& value : values) {
    if constexpr (std::is_same_v<Element, std::string_view>) {
      if (!read_text(value, kStringMax)) return false;
    } else {
      if (!read_scalar(type, value)) return false;
    }
  }
  return true;
}

template <class Element>
bool GgufReader::read_scalar(std::uint32_t type, Element& value) {
  const auto as = [&]<class Number>(Number number) {
    if (!read_number(number)) return false;
    if constexpr (std::is_same_v<Number, std::uint64_t> && std::is_integral_v<Element>) {
      // Nothing that is read here comes near 2^63: what does not fit is out of every range.
      number = std::min<Number>(number, std::numeric_limits<std::int64_t>::max());
    }
    value = static_cast<Element>(number);
    return true;
  };
  switch (type) {
    case kU8:
    case kBool:
      return as(std::uint8_t{});
    case kI8:
      return as(std::int8_t{});
    case kU16:
      return as(std::uint16_t{});
    case kI16:
      return as(std::int16_t{});
    case kU32:
      return as(std::uint32_t{});
    case kI32:
      return as(std::int32_t{});
    case kU64:
      return as(std::uint64_t{});
    case kI64:
      return as(std::int64_t{});
    case kF32:
      return as(float{});
    case kF64:
      return as(double{});
    default:
      return damaged(reading_ + " has the unknown type " + std::to_string(type));
  }
}

bool GgufReader::read_alignment() {
  constexpr std::string_view kKey = "general.alignment";
  if (!file_.metadata_.contains(kKey)) return true;
  const std::int64_t value = file_.integer(kKey).value_or(-1);
  const auto alignment = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
  if (!std::has_single_bit(alignment) || alignment < kAlignmentMin || alignment > kAlignmentMax)
    return damaged("has general.alignment " + std::to_string(value) +
                   ", which is not a power of two from 8 to 1048576");
  alignment_ = alignment;
  return true;
}

bool GgufReader::read_line() {
  reading_ = "line " + std::to_string(directory_.size()) + " of the tensor directory";
  std::string_view name;
  if (!read_text(name, kNameMax)) return false;
  DirectoryLine line;
  line.name = shown(name);
  reading_ = "the directory's line of tensor " + line.name;
  if (!read_axes(line) || !read_number(line.type) || !read_number(line.offset)) return false;
  line.name = std::string(name);
  directory_.push_back(std::move(line));
  return true;
}

bool GgufReader::read_axes(DirectoryLine& line) {
  std::uint32_t axes = 0;
  if (!read_number(axes)) return false;
  if (axes < 1 || axes > kAxesMax)
    return damaged("tensor " + line.name + " has " + std::to_string(axes) + " axes; 1 to 4 exist");
  for (std::uint32_t i = 0; i < axes; ++i) {
    std::uint64_t size = 0;
    if (!read_number(size)) return false;
    if (size == 0 || size > kElementsMax / (line.rows * line.cols))
      return damaged("tensor " + line.name + " has " + std::to_string(size) + " elements on axis " +
                     std::to_string(i));
    (i == 0 ? line.cols : line.rows) *= size;
  }
  return true;
}

bool GgufReader::shape(const DirectoryLine& line, TensorView& view) {
  view.type = static_cast<TensorType>(line.type);
  view.rows = static_cast<std::int64_t>(line.rows);
  view.cols = static_cast<std::int64_t>(line.cols);
  const int block = tensor_block(view.type).elements;
  if (view.cols % block == 0) return true;
  return damaged("tensor " + shown(line.name) + " is " + ggml_type_name(line.type) +
                 " with rows of " + std::to_string(line.cols) + ", no multiple of " +
                 std::to_string(block));
}

bool GgufReader::place(const DirectoryLine& line) {
  const std::string tensor = "tensor " + shown(line.name);
  if (file_.tensors_.contains(line.name) || file_.unreadable_.contains(line.name))
    return damaged("has the " + tensor + " twice");
  if (line.offset % alignment_ != 0)
    return damaged(tensor + " starts at offset " + std::to_string(line.offset) +
                   ", no multiple of " + std::to_string(alignment_));
  const bool readable = is_readable(line.type);
  TensorView view;
  if (readable && !shape(line, view)) return false;
  // The sizes of unreadable types are not known here; such a file is refused as a model anyway.
  const std::uint64_t size = readable ? std::uint64_t{view.row_bytes()} * line.rows : 0;
  const std::uint64_t room = bytes_.size() - file_.data_start_;
  if (line.offset > room || size > room - line.offset) {
    const std::uint64_t start = std::min(line.offset, kElementsMax) + file_.data_start_;
    return damaged("ends at byte " + std::to_string(bytes_.size()) + ", " + tensor + " needs " +
                   std::to_string(start + size));
  }
  view.data = bytes_.data() + file_.data_start_ + line.offset;
  if (readable) {
    file_.tensors_.emplace(line.name, view);
  } else {
    file_.unreadable_.emplace(line.name, line.type);
  }
  return true;
}

bool GgufReader::read_text(std::string_view& text, std::uint64_t max) {
  std::uint64_t size = 0;
  if (!read_number(size)) return false;
  if (size > max)
    return damaged(reading_ + " has a string of " + std::to_string(size) + " bytes before byte " +
                   std::to_string(at_) + "; at most " + std::to_string(max) + " are read");
  const std::byte* bytes = nullptr;
  if (!take(size, bytes)) return false;
  text = {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
  return true;
}

template <class Number>
bool GgufReader::read_number(Number& number) {
  const std::byte* bytes = nullptr;
  if (!take(sizeof(Number), bytes)) return false;
  std::memcpy(&number, bytes, sizeof(Number));
  return true;
}

bool GgufReader::take(std::uint64_t size, const std::byte*& bytes) {
  if (size > bytes_.size() - at_)
    return damaged("ends at byte " + std::to_string(bytes_.size()) + ", inside " + reading_);
  bytes = bytes_.data() + at_;
  at_ += static_cast<std::size_t>(size);
  return true;
}

bool GgufReader::refuse(Fault fault, std::string what, std::string remedy) {
  error_ = Error{fault, file_.name_ + ": " + what, std::move(remedy)};
  return false;
}

}  // namespace efimd::engine
