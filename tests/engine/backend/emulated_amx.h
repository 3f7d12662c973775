#pragma once

#include "engine/backend/cpu/kernels/kernels.h"

// A processor with AVX-512 but without AMX can so try what is written for AMX. Like kernels.h this holds
// no inline functions.
namespace efimd::test {

/// Rows that are whole panels, by tiles whose instructions are done in C++; any number of tokens.
void multiply_by_emulated_tiles(const engine::cpu::Weights& weights, engine::cpu::RowRange rows,
                                const engine::cpu::Inputs& in, const engine::cpu::Outputs& out);

/// The table of AVX-512, but many tokens by such tiles.
const engine::cpu::CpuKernels& emulated_amx_kernels();

/// Products of two tiles since the start.
int multiplied_tiles();

/// Instructions since the start that a processor would have refused, because of tiles without a shape
/// or of shapes that do not fit each other.
int refused_tile_instructions();

}  // namespace efimd::test
