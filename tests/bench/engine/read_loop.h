#pragma once

#include <cstddef>
#include <cstdint>

namespace efimd::bench {

/// Reads `bytes` (a multiple of 256) and adds them up. Compiled for the widest registers of this
/// processor, with four sums: out of the first-level cache it is several times as fast as memory.
using ReadLoop = std::uint64_t (*)(const std::byte* at, std::size_t bytes);

struct NamedReadLoop {
  const char* name;
  ReadLoop loop;
};
/// The one for this processor.
NamedReadLoop read_loop();

}  // namespace efimd::bench
