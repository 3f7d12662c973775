#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kernels/operations.h"

namespace efimd::kernels {

/// A kernel by the name under which kernels/entries.cuh exports it, its blocks and their threads.
struct Launch {
  std::string name;
  std::array<std::uint32_t, 3> grid;
  std::array<std::uint32_t, 2> block;
};

/// How the work of `groups` workgroups of a shader is done; any operation but kCopy. `type` and `many` are
/// gpu::Operation's. Products of prompts go to the tensor cores.
Launch launch_of(Kernel kernel, std::uint32_t type, bool many,
                 const std::array<std::uint32_t, 3>& groups);

}  // namespace efimd::kernels
