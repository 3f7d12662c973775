#include "tests/engine/model/gguf_fields.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace efimd::test {
namespace {

constexpr std::uint32_t kString = 8;
constexpr std::uint32_t kArray = 9;

/// Walks the file once; every number that it takes becomes a field.
class Walk {
 public:
  explicit Walk(std::string_view bytes) : bytes_(bytes) {}

  std::vector<GgufField> fields() {
    at_ = 4;
    number(4);
    const std::uint64_t tensors = number(8);
    const std::uint64_t entries = number(8);
    for (std::uint64_t i = 0; i < entries; ++i) entry();
    for (std::uint64_t i = 0; i < tensors; ++i) directory_line();
    return std::move(fields_);
  }

 private:
  std::uint64_t number(std::size_t size) {
    if (size > bytes_.size() - at_) throw std::logic_error("the file is not sound");
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, size);
    fields_.push_back({at_, size, name_});
    at_ += size;
    return value;
  }

  std::string_view text() {
    const std::uint64_t size = number(8);
    const std::string_view found = bytes_.substr(at_, size);
    at_ += found.size();
    return found;
  }

  /// A text that names the fields from its own length on.
  void named_text() {
    const std::size_t length = fields_.size();
    name_ = text();
    fields_[length].name = name_;
  }

  void entry() {
    named_text();
    const auto type = static_cast<std::uint32_t>(number(4));
    if (type != kArray) return value(type);
    const auto element = static_cast<std::uint32_t>(number(4));
    const std::uint64_t count = number(8);
    for (std::uint64_t i = 0; i < count; ++i) value(element);
  }

  void value(std::uint32_t type) {
    constexpr std::array<std::size_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == kString) {
      text();
    } else if (kBytes.at(type) >= 4) {
      number(kBytes.at(type));
    } else {
      at_ += kBytes.at(type);
    }
  }

  void directory_line() {
    named_text();
    const std::uint64_t axes = number(4);
    for (std::uint64_t i = 0; i < axes; ++i) number(8);
    number(4);
    number(8);
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::string name_;
  std::vector<GgufField> fields_;
};

}  // namespace

std::vector<GgufField> gguf_fields(std::string_view bytes) { return Walk(bytes).fields(); }

}  // namespace efimd::test
