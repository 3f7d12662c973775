#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "tests/support/model_writer.h"
#include "tests/support/put.h"

namespace efimd::test {
namespace {

enum GgufType : std::uint32_t {
  kTypeU32 = 4,
  kTypeI32 = 5,
  kTypeF32 = 6,
  kTypeBool = 7,
  kTypeString = 8,
  kTypeArray = 9,
  kTypeU64 = 10,
};

void put_text(std::string& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  out += text;
}

template <class T>
std::string scalar(T value) {
  std::string bytes;
  put(bytes, value);
  return bytes;
}

template <class T>
std::string array(std::uint32_t element_type, const std::vector<T>& values) {
  std::string bytes;
  put(bytes, element_type);
  put<std::uint64_t>(bytes, values.size());
  for (const T& value : values) {
    if constexpr (std::is_same_v<T, std::string>) {
      put_text(bytes, value);
    } else {
      put(bytes, value);
    }
  }
  return bytes;
}

void pad(std::string& out, std::size_t alignment) {
  out.resize((out.size() + alignment - 1) / alignment * alignment);
}

}  // namespace

GgufWriter& GgufWriter::raw(std::string_view key, std::uint32_t type, std::string bytes) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found == entries_.end()) {
    entries_.push_back({std::string(key), type, std::move(bytes)});
  } else {
    found->type = type;
    found->value = std::move(bytes);
  }
  return *this;
}

GgufWriter& GgufWriter::u32(std::string_view key, std::uint32_t value) {
  return raw(key, kTypeU32, scalar(value));
}
GgufWriter& GgufWriter::u64(std::string_view key, std::uint64_t value) {
  return raw(key, kTypeU64, scalar(value));
}
GgufWriter& GgufWriter::i32(std::string_view key, std::int32_t value) {
  return raw(key, kTypeI32, scalar(value));
}
GgufWriter& GgufWriter::f32(std::string_view key, float value) {
  return raw(key, kTypeF32, scalar(value));
}
GgufWriter& GgufWriter::boolean(std::string_view key, bool value) {
  return raw(key, kTypeBool, scalar<std::uint8_t>(value ? 1 : 0));
}
GgufWriter& GgufWriter::text(std::string_view key, std::string_view value) {
  std::string bytes;
  put_text(bytes, value);
  return raw(key, kTypeString, std::move(bytes));
}
GgufWriter& GgufWriter::texts(std::string_view key, const std::vector<std::string>& values) {
  return raw(key, kTypeArray, array(kTypeString, values));
}
GgufWriter& GgufWriter::i32s(std::string_view key, const std::vector<std::int32_t>& values) {
  return raw(key, kTypeArray, array(kTypeI32, values));
}
GgufWriter& GgufWriter::f32s(std::string_view key, const std::vector<float>& values) {
  return raw(key, kTypeArray, array(kTypeF32, values));
}

GgufWriter& GgufWriter::remove(std::string_view key) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
  return *this;
}

GgufWriter& GgufWriter::duplicate(std::string_view key) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found == entries_.end()) throw std::logic_error("no such key: " + std::string(key));
  const Entry copy = *found;
  entries_.push_back(copy);
  return *this;
}

GgufWriter& GgufWriter::tensor(Tensor tensor) {
  if (Tensor* const found = find_tensor(tensor.name)) {
    *found = std::move(tensor);
    return *this;
  }
  return extra_tensor(std::move(tensor));
}

GgufWriter& GgufWriter::extra_tensor(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return *this;
}

GgufWriter::Tensor* GgufWriter::find_tensor(std::string_view name) {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

GgufWriter& GgufWriter::remove_tensor(std::string_view name) {
  std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.name == name; });
  return *this;
}

std::string GgufWriter::bytes() const {
  std::string out = "GGUF";
  put(out, version);
  put<std::uint64_t>(out, tensor_count.value_or(tensors_.size()));
  put<std::uint64_t>(out, metadata_count.value_or(entries_.size()));
  for (const Entry& entry : entries_) {
    put_text(out, entry.key);
    put(out, entry.type);
    out += entry.value;
  }
  std::string data;
  for (const Tensor& tensor : tensors_) {
    put_text(out, tensor.name);
    put(out, static_cast<std::uint32_t>(tensor.axes.size()));
    for (const std::uint64_t axis : tensor.axes) put(out, axis);
    put(out, tensor.type);
    put<std::uint64_t>(out, tensor.offset.value_or(data.size()));
    data += tensor.data;
    pad(data, alignment);
  }
  pad(out, alignment);
  return out + data;
}

void GgufWriter::write(const std::filesystem::path& path) const {
  const std::string content = bytes();
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace efimd::test
