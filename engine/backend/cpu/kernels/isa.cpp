// The instruction sets that this processor runs, and their kernels.
#include "engine/backend/cpu/kernels/isa.h"

#include <cstdlib>
#include <string>

#include "engine/backend/cpu/cpu_backend.h"

#if defined(EFIMD_CPU_X86)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#elif defined(EFIMD_CPU_ARM)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace efimd::engine {

namespace {

struct Names {
  std::string_view name;
  std::string_view title;
};

Names names_of(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return {"scalar", "scalar"};
    case Isa::kAvx2:
      return {"avx2", "AVX2"};
    case Isa::kAvxVnni:
      return {"avxvnni", "AVX-VNNI"};
    case Isa::kAvx512:
      return {"avx512", "AVX-512 VNNI"};
    case Isa::kAvx512Bf16:
      return {"avx512bf16", "AVX-512 VNNI BF16"};
    case Isa::kAmx:
      return {"amx", "AVX-512 VNNI BF16, AMX"};
    case Isa::kNeon:
      return {"neon", "NEON"};
    case Isa::kNeonDot:
      return {"neondot", "NEON dotprod"};
    case Isa::kNeonI8mm:
      return {"neoni8mm", "NEON i8mm"};
  }
  return {};
}

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

/// Asks Linux for the tiles, once; threads that begin later have them, too. It refuses where it does not
/// save them (before 5.16), and if a signal stack is too small for them.
bool use_of_tiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
  constexpr int kTileData = 18;               // the state's number in XCR0
  static const bool kPermitted = ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return kPermitted;
#else
  return false;
#endif
}

bool has_amx() {
  constexpr unsigned kTiles = 1U << 24U;  // of EDX, leaf 7, subleaf 0
  constexpr unsigned kInt8 = 1U << 25U;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kTiles) != 0 &&
         (edx & kInt8) != 0 && use_of_tiles();
}
#endif

}  // namespace

std::string_view isa_name(Isa isa) { return names_of(isa).name; }

std::string_view arithmetic_name(Isa isa) {
  return isa_name(isa == Isa::kAmx ? Isa::kAvx512Bf16 : isa);
}

std::string_view isa_title(Isa isa) { return names_of(isa).title; }

Isa best_isa() {
  const char* wanted = std::getenv("EFIMD_ISA");
  Isa best = Isa::kScalar;
  for (const Isa isa : kIsas) {
    if (!cpu::runs_here(isa)) continue;
    if (wanted != nullptr && isa_name(isa) == wanted) return isa;
    best = isa;
  }
  return best;
}

namespace cpu {

bool runs_here(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return true;
#if defined(EFIMD_CPU_X86)
    case Isa::kAvx2:
      return has_avx2();
    case Isa::kAvxVnni:
      return has_avx2() && has_avx_vnni();
    case Isa::kAvx512:
      return has_avx2() && has_avx512();
    case Isa::kAvx512Bf16:
      return has_avx2() && has_avx512_bf16();
    case Isa::kAmx:
      return has_avx2() && has_avx512_bf16() && has_amx();
#elif defined(EFIMD_CPU_ARM)
    case Isa::kNeon:
      return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0;
    case Isa::kNeonDot:
      return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    case Isa::kNeonI8mm:
      return runs_here(Isa::kNeonDot) && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#endif
    default:
      return false;
  }
}

const CpuKernels& kernels_of(Isa isa) {
  switch (isa) {
#if defined(EFIMD_CPU_X86)
    case Isa::kAvx2:
      return avx2_kernels();
    case Isa::kAvxVnni:
      return avxvnni_kernels();
    case Isa::kAvx512:
      return avx512_kernels();
    case Isa::kAvx512Bf16:
      return avx512bf16_kernels();
    case Isa::kAmx:
      return amx_kernels();
#elif defined(EFIMD_CPU_ARM)
    case Isa::kNeon:
      return neon_kernels();
    case Isa::kNeonDot:
      return neondot_kernels();
    case Isa::kNeonI8mm:
      return neoni8mm_kernels();
#endif
    default:
      return scalar_kernels();
  }
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
#elif defined(EFIMD_CPU_ARM)
  return "ARM processor";
#else
  return "processor";
#endif
}

}  // namespace cpu

}  // namespace efimd::engine
