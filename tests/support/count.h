#pragma once

#include <cstdlib>

namespace efimd::test {

/// How often a test tries: few times beside all others, and as often as the environment says by hand.
inline int times(const char* variable, int few) {
  const char* const value = std::getenv(variable);
  const int many = value == nullptr ? 0 : std::atoi(value);
  return many > 0 ? many : few;
}

}  // namespace efimd::test
