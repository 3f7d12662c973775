#pragma once

// Operations on one row of activations, over the Vector of the file that includes this
// (vector_avx2.h or vector_avx512.h). Internal linkage throughout: see kernels.h.
#include "engine/backend/cpu/kernels/kernels.h"

namespace efimd::engine::cpu {
namespace {

using Reg = Vector::Reg;
constexpr int kLanes = Vector::kLanes;

inline Reg load_up_to(const float* at, int count) {
  return count >= kLanes ? Vector::load(at) : Vector::load_part(at, count);
}

inline void store_up_to(float* at, Reg value, int count) {
  if (count >= kLanes)
    Vector::store(at, value);
  else
    Vector::store_part(at, value, count);
}

/// e^x = 2^n * e^r with |r| <= ln 2 / 2. e^r comes from its Taylor series to r^7, whose rest is
/// 6e-9. x is held in -87.3 .. 88.0, so results stay normal: e^-100 reads as 1.2e-38. NaN stays
/// NaN. Seen through SiLU it is within 1e-6 of f64, relatively
/// (tests/engine/backend/rows_test.cpp).
inline Reg exp_of(Reg x) {
  x = Vector::min(Vector::set(88.0F), Vector::max(Vector::set(-87.3F), x));
  const Reg n = Vector::round(Vector::mul(x, Vector::set(1.44269504F)));
  // ln 2 in two parts; n * 0.693359375 is exact.
  Reg r = Vector::fma(n, Vector::set(-0.693359375F), x);
  r = Vector::fma(n, Vector::set(2.12194440e-4F), r);
  Reg series = Vector::set(1.0F / 5040);
  series = Vector::fma(series, r, Vector::set(1.0F / 720));
  series = Vector::fma(series, r, Vector::set(1.0F / 120));
  series = Vector::fma(series, r, Vector::set(1.0F / 24));
  series = Vector::fma(series, r, Vector::set(1.0F / 6));
  series = Vector::fma(series, r, Vector::set(0.5F));
  series = Vector::fma(series, r, Vector::set(1.0F));
  series = Vector::fma(series, r, Vector::set(1.0F));
  return Vector::mul(series, Vector::power_of_two(n));
}

void rms_norm(const float* x, const float* weight, int width, float epsilon, float* out) {
  Reg squares = Vector::zero();
  for (int i = 0; i < width; i += kLanes) {
    const Reg value = load_up_to(x + i, width - i);
    squares = Vector::fma(value, value, squares);
  }
  const float mean = Vector::sum(squares) / static_cast<float>(width);
  const Reg scale = Vector::set(1.0F / __builtin_sqrtf(mean + epsilon));
  for (int i = 0; i < width; i += kLanes) {
    const Reg scaled = Vector::mul(load_up_to(x + i, width - i), scale);
    store_up_to(out + i, Vector::mul(scaled, load_up_to(weight + i, width - i)), width - i);
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, int width, float epsilon,
                float* out) {
  Reg sums = Vector::zero();
  for (int i = 0; i < width; i += kLanes) sums = Vector::add(sums, load_up_to(x + i, width - i));
  const Reg mean = Vector::set(Vector::sum(sums) / static_cast<float>(width));
  Reg squares = Vector::zero();
  for (int i = 0; i < width; i += kLanes) {
    const Reg apart = Vector::sub(load_up_to(x + i, width - i), mean);
    // Lanes after the row are 0 - mean, so they must not count.
    const int lanes = width - i < kLanes ? width - i : kLanes;
    const Reg counted = Vector::select_first(lanes, apart, Vector::zero());
    squares = Vector::fma(counted, counted, squares);
  }
  const float variance = Vector::sum(squares) / static_cast<float>(width);
  const Reg scale = Vector::set(1.0F / __builtin_sqrtf(variance + epsilon));
  for (int i = 0; i < width; i += kLanes) {
    const int left = width - i;
    const Reg apart = Vector::mul(Vector::sub(load_up_to(x + i, left), mean), scale);
    store_up_to(out + i,
                Vector::fma(apart, load_up_to(weight + i, left), load_up_to(bias + i, left)), left);
  }
}

/// out = x / (1 + exp(-slope)) (* up), `count` lanes.
inline void store_sigmoid_product(Reg x, Reg slope, const float* up, int count, float* out) {
  const Reg below = Vector::add(Vector::set(1.0F), exp_of(Vector::sub(Vector::zero(), slope)));
  const Reg value = Vector::div(x, below);
  store_up_to(out, up == nullptr ? value : Vector::mul(value, load_up_to(up, count)), count);
}

void silu_mul(const float* gate, const float* up, int count, float* out) {
  for (int i = 0; i < count; i += kLanes) {
    const Reg x = load_up_to(gate + i, count - i);
    store_sigmoid_product(x, x, up == nullptr ? nullptr : up + i, count - i, out + i);
  }
}

void gelu_mul(const float* gate, const float* up, int count, float* out) {
  for (int i = 0; i < count; i += kLanes) {
    const Reg x = load_up_to(gate + i, count - i);
    const Reg cube = Vector::mul(Vector::mul(x, x), x);
    const Reg slope =
        Vector::mul(Vector::set(kGeluSlope), Vector::fma(Vector::set(kGeluCube), cube, x));
    store_sigmoid_product(x, slope, up == nullptr ? nullptr : up + i, count - i, out + i);
  }
}

void to_half(const float* x, int count, std::uint16_t* out) {
  for (int i = 0; i < count; i += kLanes) {
    const Reg value = Vector::min(
        Vector::set(kHalfMax), Vector::max(Vector::set(-kHalfMax), load_up_to(x + i, count - i)));
    if (count - i >= kLanes)
      Vector::store_half(out + i, value);
    else
      Vector::store_half_part(out + i, value, count - i);
  }
}

/// Largest |x| of a group of 32.
inline float largest_of_group(const float* x) {
  Reg largest = Vector::zero();
  for (int i = 0; i < kGroup; i += kLanes)
    largest = Vector::max(largest, Vector::absolute(Vector::load(x + i)));
  return Vector::maximum(largest);
}

}  // namespace
}  // namespace efimd::engine::cpu
