#pragma once

#include <optional>

/// Operations in a second of a large product of bf16 matrices with sums in f32 by cuBLAS: what this
/// card reaches. None if the toolkit came without cuBLAS, or if the card has no such products.
std::optional<double> bf16_flops_per_s();
