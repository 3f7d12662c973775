// The instruction sets that this processor runs, and their kernels.
#include "engine/backend/cpu/kernels/isa.h"

#include <cstdlib>
#include <string>

#include "engine/backend/cpu/cpu_backend.h"

#if defined(EFIMD_CPU_X86)
#include <cpuid.h>

#include <cstring>
#endif

namespace efimd::engine {

namespace {

constexpr Isa kBestFirst[] = {Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvxVnni, Isa::kAvx2,
                              Isa::kScalar};

#if defined(EFIMD_CPU_X86)
// __builtin_cpu_supports also asks the operating system whether it saves the wide registers.
bool has_avx2() {
  __builtin_cpu_init();
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool has_avx_vnni() {
  constexpr unsigned kAvxVnniBit = 1U << 4U;  // of EAX, leaf 7, subleaf 1
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvxVnniBit) != 0;
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}

bool has_avx512_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }
#endif

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvxVnni:
      return "avxvnni";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512bf16";
  }
  return "";
}

Isa best_isa() {
  const char* wanted = std::getenv("EFIMD_ISA");
  for (const Isa isa : kBestFirst)
    if (wanted != nullptr && isa_name(isa) == wanted && cpu::runs_here(isa)) return isa;
  for (const Isa isa : kBestFirst)
    if (cpu::runs_here(isa)) return isa;
  return Isa::kScalar;
}

namespace cpu {

bool runs_here(Isa isa) {
  if (isa == Isa::kScalar) return true;
#if defined(EFIMD_CPU_X86)
  if (!has_avx2()) return false;
  switch (isa) {
    case Isa::kAvxVnni:
      return has_avx_vnni();
    case Isa::kAvx512:
      return has_avx512();
    case Isa::kAvx512Bf16:
      return has_avx512_bf16();
    default:
      return true;
  }
#else
  return false;
#endif
}

const CpuKernels& kernels_of(Isa isa) {
#if defined(EFIMD_CPU_X86)
  if (isa == Isa::kAvx512Bf16) return avx512bf16_kernels();
  if (isa == Isa::kAvx512) return avx512_kernels();
  if (isa == Isa::kAvxVnni) return avxvnni_kernels();
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
