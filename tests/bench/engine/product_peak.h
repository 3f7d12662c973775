#pragma once

namespace efimd::bench {

/// Products of a byte and a byte that so many threads do in a second, if all their factors lie in
/// registers. VNNI if there is, else AVX2; 0 without.
double product_peak(int threads);

}  // namespace efimd::bench
