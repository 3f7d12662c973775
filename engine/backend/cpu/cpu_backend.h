#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "engine/backend/backend.h"
#include "engine/backend/kv_type.h"
#include "engine/backend/weights_form.h"
#include "engine/model/model.h"

namespace efimd::engine {

/// Instruction sets that the CPU kernels are written for. kScalar is the specification.
enum class Isa {
  kScalar,
  kAvx2,        ///< with FMA and F16C
  kAvxVnni,     ///< the same with VNNI in 256 bits
  kAvx512,      ///< F, BW, VL, DQ and VNNI; a processor without VNNI takes the one above
  kAvx512Bf16,  ///< the same with BF16
  kAmx,         ///< the same with AMX's tiles of int8
  kNeon,        ///< of every 64-bit ARM processor
  kNeonDot,     ///< the same with dotprod
  kNeonI8mm,    ///< the same with i8mm
};
/// All, each architecture's from the slowest to the fastest.
inline constexpr Isa kIsas[] = {Isa::kScalar, Isa::kAvx2,       Isa::kAvxVnni,
                                Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx,
                                Isa::kNeon,   Isa::kNeonDot,    Isa::kNeonI8mm};

/// As in settings: "avx512".
std::string_view isa_name(Isa isa);
/// Of its arithmetic: instruction sets whose results have the same bits share a name, and so KV.
std::string_view arithmetic_name(Isa isa);
/// As in texts: "AVX-512 VNNI".
std::string_view isa_title(Isa isa);
/// The best that this processor and its operating system run. EFIMD_ISA (a name of isa_name()) lowers
/// it, for tests.
Isa best_isa();

struct CpuOptions {
  int threads = 0;         ///< 0: one per physical core
  std::optional<Isa> isa;  ///< best_isa() when absent; kUnsupported when it does not run here
  int page_count = 0;
  int step_tokens_max = 64;
  KvType kv_type = KvType::kF16;
  WeightsForm weights = WeightsForm::kMapped;
  bool weights_at_once = false;  ///< panels are made before the first step, not beside steps
  WeightsTold weights_told = {};
};

/// Most bytes of weights of which `form` makes panels now, if KV may take `kv_bytes`.
std::size_t panels_bytes_max(WeightsForm form, std::size_t kv_bytes);

/// Backend::page_bytes() of the CPU device for such a model.
std::size_t cpu_page_bytes(const ModelShape& shape, KvType type);

/// The CPU device. Weights are used in place in the mapped file, or from panels. Activations take
/// about step_tokens_max * 16 * F bytes, logits V * 4 for each row that asks. 8-bit KV is refused
/// for heads of more than 256 elements (kUnsupported).
Result<std::unique_ptr<Backend>> make_cpu_backend(std::shared_ptr<const Model> model,
                                                  const CpuOptions& options);
/// The same over weights of `model`, or a part of its layers; without one they outlive the result (tests, benchmarks).
Result<std::unique_ptr<Backend>> make_cpu_backend(const ModelShape& shape,
                                                  const ModelWeights& weights,
                                                  const CpuOptions& options,
                                                  std::shared_ptr<const Model> model = nullptr);

}  // namespace efimd::engine
