#pragma once

namespace efimd::bench {

/// Products of a byte and a byte that so many threads do in a second, if all their factors lie in
/// registers. 0 if this processor has no instruction that this measures (AVX-512 VNNI).
double product_peak(int threads);

}  // namespace efimd::bench
