#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/gguf.h"

namespace efimd::engine {

/// One pass over a GGUF file's bytes, up to the first fault. Used once; the file's bytes outlive it.
class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, std::string name);
  Result<GgufFile> read();

 private:
  /// A line of the tensor directory, before it is known where the data starts.
  struct DirectoryLine {
    std::string name;
    std::uint64_t rows = 1;
    std::uint64_t cols = 1;
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
  };

  // Each returns false once error_ is set.
  bool read_header();
  bool read_version();
  bool read_count(std::string_view what, std::uint64_t max, std::uint64_t bytes_each,
                  std::uint64_t& count);
  bool read_entry();
  bool read_value(std::uint32_t type, GgufValue& value);
  bool read_array(GgufArray& array);
  template <class Element>
  bool read_array_of(std::uint32_t type, std::uint64_t count, GgufArray& array);
  template <class Element>
  bool read_scalar(std::uint32_t type, Element& value);
  bool read_line();
  bool read_axes(DirectoryLine& line);
  bool read_alignment();
  bool shape(const DirectoryLine& line, TensorView& view);
  bool place(const DirectoryLine& line);

  bool read_text(std::string_view& text, std::uint64_t max);
  template <class Number>
  bool read_number(Number& number);
  bool take(std::uint64_t size, const std::byte*& bytes);

  bool refuse(Fault fault, std::string what, std::string remedy = {});
  bool damaged(std::string what) {
    return refuse(Fault::kBadInput, std::move(what), "download the file again");
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::string reading_ = "the header";  ///< what the byte at at_ belongs to, for messages
  std::uint64_t alignment_ = 32;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t metadata_count_ = 0;
  std::uint64_t array_elements_ = 0;
  std::uint64_t array_bytes_ = 0;  ///< of the memory that holds them
  std::vector<DirectoryLine> directory_;
  GgufFile file_;
  std::optional<Error> error_;
};

}  // namespace efimd::engine
