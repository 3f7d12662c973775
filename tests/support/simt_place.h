#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace efimd::simt {

/// The place at which a fiber goes on. jump(here, there) leaves one and goes on at another; it returns
/// when something jumps to `here`.
#ifdef __x86_64__

struct Place {
  void *code = nullptr, *stack = nullptr, *frame = nullptr;
};

/// Makes the place the beginning of a fiber on its stack. `enter` never returns.
inline void begin_at(Place& place, void (*enter)(), std::byte* stack, std::size_t bytes) {
  // As a call leaves it: eight bytes past a multiple of 16.
  const auto top = reinterpret_cast<std::uintptr_t>(stack + bytes) / 16 * 16 - 8;
  place = {reinterpret_cast<void*>(enter), reinterpret_cast<void*>(top), nullptr};
}

/// Without a call: fibers wait at the same calls, so a processor that foresees where a call returns
/// to foresees it for the other fiber, too. With the compiler's own jumps, which must be in a function
/// of their own, all returns behind them are foreseen wrongly.
[[gnu::always_inline]] inline void jump(Place& here, const Place& there) {
  Place* from = &here;
  const Place* to = &there;
  asm volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rax, (%0)\n\t"
      "movq %%rsp, 8(%0)\n\t"
      "movq %%rbp, 16(%0)\n\t"
      "movq 8(%1), %%rsp\n\t"
      "movq 16(%1), %%rbp\n\t"
      "jmpq *(%1)\n"
      "1:\n\t"
      "endbr64"
      : "+D"(from), "+S"(to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
        "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

#else

struct Place {
  std::array<void*, 5> saved = {};
  ucontext_t start = {};
  bool is_new = false;
};

inline void begin_at(Place& place, void (*enter)(), std::byte* stack, std::size_t bytes) {
  place.is_new = true;
  getcontext(&place.start);
  place.start.uc_stack.ss_sp = stack;
  place.start.uc_stack.ss_size = bytes;
  makecontext(&place.start, enter, 0);
}

[[noreturn, gnu::noinline]] inline void go_on(Place& place) {
  if (std::exchange(place.is_new, false)) setcontext(&place.start);
  __builtin_longjmp(place.saved.data(), 1);
}

[[gnu::noinline]] inline void jump(Place& here, Place& there) {
  if (__builtin_setjmp(here.saved.data()) == 0) go_on(there);
}

#endif

}  // namespace efimd::simt
