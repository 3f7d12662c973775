#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace efimd::test {

/// Source text with its cursor: marked("int a = ^;") is "int a = ;" and byte 8.
struct Marked {
  std::string text;
  std::size_t cursor = 0;
};

inline Marked marked(std::string_view source) {
  const std::size_t at = source.find('^');
  if (at == std::string_view::npos || source.find('^', at + 1) != std::string_view::npos)
    throw std::logic_error("marked() wants exactly one ^");
  return {std::string(source.substr(0, at)) + std::string(source.substr(at + 1)), at};
}

}  // namespace efimd::test
