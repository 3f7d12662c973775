#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/models/offered_models.h"
#include "daemon/models/speed/machine_speed.h"

namespace efimd::service {

/// A model of the list on this machine.
struct JudgedModel {
  OfferedModel model;
  GuessedSpeed speed;              ///< on the device where its answer comes first
  std::uint64_t memory_bytes = 0;  ///< weights, KV of kWindowTokens, and kBesideBytes
  bool fits = false;               ///< in kMemoryShare of the memory
  bool fast = false;               ///< its answer is there within kFirstAnswerMsMax
  std::string reason;              ///< why it is not recommended, or why it is
};

struct Recommendation {
  std::vector<JudgedModel> models;  ///< in the list's order, best first
  /// Into `models`: the first that fits, is fast, and has no restricted licence. If none is fast,
  /// the fastest that fits. nullopt: none fits.
  std::optional<std::size_t> chosen;
};

inline constexpr double kFirstAnswerMsMax = 300;
inline constexpr int kWindowTokens = 4096;
inline constexpr std::uint64_t kBesideBytes = std::uint64_t{512} << 20;
/// Editors and compilers want the rest.
inline constexpr double kMemoryShare = 0.6;

/// `memory_bytes` of the machine; 0: not known, everything fits. A GPU's own memory is not asked
/// for: layers that it cannot hold run on the CPU, slower than is said here. Without devices nothing
/// is fast.
Recommendation recommend(const std::vector<OfferedModel>& models,
                         const std::vector<DeviceRates>& devices, std::uint64_t memory_bytes);

/// A model of the list as machine_speed.h counts it.
TokenCost token_cost(const OfferedModel& model);

/// Bytes of the models that fit, for devices_here(). `memory_bytes` as in recommend().
std::vector<std::uint64_t> bytes_of_fitting(const std::vector<OfferedModel>& models,
                                            std::uint64_t memory_bytes);

}  // namespace efimd::service
