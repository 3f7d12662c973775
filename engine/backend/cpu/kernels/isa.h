#pragma once

#include <string>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/cpu/kernels/kernels.h"

namespace efimd::engine::cpu {

/// Whether this processor and its operating system run `isa`, whatever EFIMD_ISA says.
bool runs_here(Isa isa);
/// The kernels of an instruction set that runs here.
const CpuKernels& kernels_of(Isa isa);
/// "Intel(R) Xeon(R) Processor"
std::string processor_name();

}  // namespace efimd::engine::cpu
