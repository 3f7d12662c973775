#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/models/speed/expected_speed.h"

namespace efimd::service {

// The speed that a model would have that is not here yet. The device runs a made-up model with the
// same type of weights, in the shape of Qwen2.5-Coder-1.5B; its rates are taken for other sizes.

/// What a device does with one type of weights.
struct WeightRates {
  double bytes_per_s = 0;       ///< read by steps of one token
  double parameters_per_s = 0;  ///< times tokens, by steps of many
};

struct DeviceRates {
  std::string kind, name;
  WeightRates eight_bits;              ///< Q8_0; also for F16 and BF16
  WeightRates four_bits;               ///< Q4_K; also for Q5_K and Q6_K
  std::uint64_t weight_bytes_max = 0;  ///< DeviceHere::weight_bytes_max

  bool takes(std::uint64_t bytes) const {
    return weight_bytes_max == 0 || bytes <= weight_bytes_max;
  }
};

/// Measures each device; takes about three seconds for one and 600 MB of memory. A device that fails
/// is left out.
std::vector<DeviceRates> machine_speed(const std::vector<DeviceHere>& devices);

/// What one token costs with a model.
struct TokenCost {
  std::uint64_t bytes = 0;       ///< of weights that one token reads
  std::uint64_t parameters = 0;  ///< that one token uses
  std::string weights;           ///< "Q8_0", "Q4_K_M", as in file names
};

struct GuessedSpeed {
  std::string device_kind, device_name;
  double generation_tokens_per_s = 0;
  double prompt_tokens_per_s = 0;
  /// Until a keystroke's answer is there: kReadTokens typed ones are read, kWrittenTokens written.
  double first_answer_ms = 0;
};
inline constexpr int kReadTokens = 3;
inline constexpr int kWrittenTokens = 8;  ///< a short line

/// ", for models of up to 9.8 GiB" if the device is there a second time for larger ones.
std::string limit_text(const DeviceRates& device);

GuessedSpeed guessed_speed(const DeviceRates& device, const TokenCost& cost);

/// The type of weights that a GGUF file's name says, "Q4_K_M" of "coder.Q4_K_M.gguf"; empty if none.
std::string weights_in_name(std::string_view file);
/// Bits of a parameter in such a file, with what stays larger in it; 0 if the type is not known.
double bits_of_weights(std::string_view weights);

}  // namespace efimd::service
