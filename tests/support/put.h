#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

namespace efimd::test {

/// The bytes of `value`, little-endian, to the end of `out`.
template <class T>
void put(std::string& out, T value) {
  static_assert(std::is_trivially_copyable_v<T> && std::endian::native == std::endian::little);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

}  // namespace efimd::test
