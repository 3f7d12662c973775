// What this processor runs, and which kernels that means.
#include "engine/backend/cpu/isa.h"

#include <cstdlib>
#include <string>

#include "engine/backend/cpu/cpu_backend.h"

#if defined(EFIMD_CPU_X86)
#include <cpuid.h>

#include <cstring>
#endif

namespace efimd::engine {

namespace {

/// Without EFIMD_ISA. __builtin_cpu_supports also asks the operating system whether it saves the
/// wide registers.
Isa detected_isa() {
#if defined(EFIMD_CPU_X86)
  __builtin_cpu_init();
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  if (!f16c || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return Isa::kScalar;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni");
  return avx512 ? Isa::kAvx512 : Isa::kAvx2;
#else
  return Isa::kScalar;
#endif
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "";
}

Isa best_isa() {
  const Isa best = detected_isa();
  const char* wanted = std::getenv("EFIMD_ISA");
  if (wanted == nullptr) return best;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512})
    if (isa_name(isa) == wanted && isa < best) return isa;
  return best;
}

namespace cpu {

bool runs_here(Isa isa) { return isa <= detected_isa(); }

const CpuKernels& kernels_of(Isa isa) {
#if defined(EFIMD_CPU_X86)
  if (isa == Isa::kAvx512) return avx512_kernels();
  if (isa == Isa::kAvx2) return avx2_kernels();
#endif
  static_cast<void>(isa);
  return scalar_kernels();
}

std::string processor_name() {
#if defined(EFIMD_CPU_X86)
  char brand[49] = {};
  for (unsigned part = 0; part < 3; ++part) {
    unsigned registers[4] = {};
    if (__get_cpuid(0x80000002U + part, &registers[0], &registers[1], &registers[2],
                    &registers[3]) == 0) {
      return "x86-64 processor";
    }
    std::memcpy(brand + part * sizeof registers, registers, sizeof registers);
  }
  std::string name(brand);
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name.empty() ? "x86-64 processor" : name;
#else
  return "processor";
#endif
}

}  // namespace cpu

}  // namespace efimd::engine
