#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

/// The words of CUDA that kernels/ uses, for a C++ compiler. Kernels become functions, and each
/// thread of a block a fiber that runs until it waits for the others. It shows mistakes of indexes,
/// of barriers and of exchange between lanes. It shows nothing of speed, of the memory model, or of
/// a GPU compiler's code.
///
/// Included before the kernels by the compiler's -include.
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static  // one block runs at a time
#define __launch_bounds__(...)

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }

namespace efimd::simt {

struct Dim {
  unsigned x = 0, y = 0, z = 0;
};
/// Of the thread that runs.
extern Dim thread_index, block_index, block_size;
void wait_for_block();
void wait_for_warp();
/// The value that lane ` lane` of this warp gives.
std::uint32_t exchange(std::uint32_t value, unsigned lane);
unsigned lane();
/// As late as may be, when it is waited for; or at once (Order::kBackward).
void start_copy(unsigned* to, const unsigned* from);
void close_batch();
void wait_for_batches_but(std::size_t open);

}  // namespace efimd::simt

#define threadIdx (::efimd::simt::thread_index)
#define blockIdx (::efimd::simt::block_index)
#define blockDim (::efimd::simt::block_size)

inline void __syncthreads() { ::efimd::simt::wait_for_block(); }
inline void __syncwarp() { ::efimd::simt::wait_for_warp(); }
inline float __shfl_sync(unsigned, float value, int lane) {
  return std::bit_cast<float>(
      ::efimd::simt::exchange(std::bit_cast<std::uint32_t>(value), static_cast<unsigned>(lane)));
}
inline float __shfl_xor_sync(unsigned mask, float value, int bits) {
  return __shfl_sync(mask, value,
                     static_cast<int>(::efimd::simt::lane() ^ static_cast<unsigned>(bits)));
}
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
/// Four bytes of x (0 .. 3) and y (4 .. 7), named by the selector's hexadecimal digits.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long both = static_cast<unsigned long long>(y) << 32U | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(both >> (8 * (selector >> (4 * i) & 7U)) & 0xFFU) << (8 * i);
  return result;
}
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline int __dp4a(int a, int b, int sum) {
  for (int shift = 0; shift < 32; shift += 8)
    sum += static_cast<signed char>(a >> shift) * static_cast<signed char>(b >> shift);
  return sum;
}

namespace efimd::kernels {
float half_to_float(unsigned bits);
unsigned float_to_half(float value);

void mma_16x8x16(unsigned a_upper, unsigned a_lower, unsigned b, int (&sums)[4]);
void mma_16x8x32(const unsigned (&a)[4], const unsigned (&b)[2], int (&sums)[4]);
void mma_f16(const unsigned (&a)[4], const unsigned (&b)[2], float (&sums)[4]);
void mma_bf16(const unsigned (&a)[4], const unsigned (&b)[2], float (&sums)[4]);

inline void copy_16(unsigned* shared, const unsigned* from) { simt::start_copy(shared, from); }
inline void close_batch() { simt::close_batch(); }
template <int kOpen>
void wait_for_batches() {
  simt::wait_for_batches_but(kOpen);
}
}  // namespace efimd::kernels
