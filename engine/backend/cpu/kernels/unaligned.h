#pragma once

#include <cstring>

namespace efimd::engine::cpu {

/// A value in the bytes of a file, at any alignment. Not for files that are compiled for newer
/// processors: see kernels.h on why.
template <class T>
T read(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace efimd::engine::cpu
