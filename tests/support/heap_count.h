#pragma once

#include <cstddef>

namespace efimd::test {

/// The memory that the current thread took from operator new since the count began. A binary that
/// links heap_count.cpp has every operator new counted, its shared libraries' too.
struct HeapCount {
  std::ptrdiff_t live_bytes = 0;  ///< taken and not given back; below 0 when older memory was freed
  std::ptrdiff_t peak_bytes = 0;
  std::size_t largest_bytes = 0;  ///< of one allocation
};

void begin_heap_count();
HeapCount heap_count();

}  // namespace efimd::test
