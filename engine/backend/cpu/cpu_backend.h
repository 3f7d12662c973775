#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "engine/backend/backend.h"
#include "engine/model/model.h"

namespace efimd::engine {

/// Instruction sets that the CPU kernels are written for. kScalar is the specification.
enum class Isa { kScalar, kAvx2, kAvx512 };

std::string_view isa_name(Isa isa);
/// The best that this processor and its operating system run. EFIMD_ISA (scalar, avx2, avx512) lowers it, for tests.
Isa best_isa();

struct CpuOptions {
  int threads = 0;  ///< 0: one per physical core
  std::optional<Isa> isa;
  int page_count = 0;
  int step_tokens_max = 64;
};

/// The CPU device. KV is f16; weights are used where the file is mapped.
Result<std::unique_ptr<Backend>> make_cpu_backend(std::shared_ptr<const Model> model,
                                                  const CpuOptions& options);

}  // namespace efimd::engine
