#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace efimd::kernels {

/// Blocks and threads of a kernel.
struct Launch {
  std::array<std::uint32_t, 3> grid;
  std::array<std::uint32_t, 2> block;
};

/// How a kernel is started that does the work of `groups` workgroups of its shader; `kernel` as gpu::Kernel counts.
Launch launch_of(int kernel, const std::array<std::uint32_t, 3>& groups);
/// The name under which kernels/entries.cuh exports it.
std::string entry_name(int kernel, std::uint32_t type, bool many);

}  // namespace efimd::kernels
