#pragma once

#include <cstddef>
#include <span>

namespace efimd {

/// Keeps this process alive if a mapped file is shortened or its disk fails. Instead of ending by
/// SIGBUS, the process reads zeros from there on, and was_cut() says so. Code that computes with
/// the bytes asks afterwards, and discards the result.
///
/// The first guard installs the process's handler of SIGBUS; a SIGBUS outside guarded mappings ends
/// the process as usual. Thread: any, but the mapping is not read while its guard is made or
/// destroyed. Limits: kMappingsMax (mapping_guard.cpp) at a time; more are not guarded.
class MappingGuard {
 public:
  /// `mapping` starts on a page.
  explicit MappingGuard(std::span<const std::byte> mapping);
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;
  ~MappingGuard();

  bool was_cut() const;

 private:
  int slot_;  ///< none: not guarded
};

}  // namespace efimd
