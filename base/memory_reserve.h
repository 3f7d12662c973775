#pragma once

namespace efimd {

/// Memory that is given back when an allocation fails, so that what is small succeeds: destructors
/// of the JSON library allocate, and cannot fail. What is large still fails with std::bad_alloc.
///
/// Thread: any.
class MemoryReserve {
 public:
  /// Sets the reserve aside, and takes the process's new_handler.
  static void begin();
  /// Sets it aside again, if it was given back and there is memory by now.
  static void restore();
};

}  // namespace efimd
