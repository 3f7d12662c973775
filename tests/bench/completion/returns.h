#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace efimd::bench {

/// The user turned to a file from another.
struct Visit {
  std::uint32_t file = 0;
  int tokens = 0;  ///< of the file then
};

inline constexpr std::size_t kVisitsMax = 100'000;
inline constexpr std::uint32_t kVisitedFilesMax = 8192;
inline constexpr int kVisitTokensMax = 1 << 24;

/// Reads lines of "seconds,file,tokens,file,tokens,...": what was visited then, in order. The time is
/// for people; files are numbered from 1. Blank lines and those that begin with # are passed over.
/// kBadInput names the line.
Result<std::vector<Visit>> parse_visits(std::string_view csv);

/// The same visits, and after every `files` of them as many files that are looked into once, as
/// one who follows definitions does.
std::vector<Visit> with_looks(const std::vector<Visit>& visits, int files);

enum class KeepOrder {
  kOldest,   ///< the longest unused goes first
  kReturns,  ///< the daemon's: completion::Returns
  kBest,     ///< knows the future; no order keeps more
};
enum class Tier { kMemory, kDisk };  ///< KvPool's order, or Catalog's

/// Of the visits to files that were visited before.
struct Returned {
  std::size_t returns = 0;
  std::size_t whole = 0;   ///< KV of all of the file's window was there
  std::size_t tokens = 0;  ///< of the windows
  std::size_t anew = 0;    ///< tokens that had to be evaluated anew
  Returned& operator+=(const Returned& other);
};

struct KeepSetup {
  Tier tier = Tier::kMemory;
  KeepOrder order = KeepOrder::kOldest;
  int capacity_tokens = 0;
  int window_tokens = 8192;  ///< of a file, as window.tokens
};

/// Replays the visits through the real pool, or the real catalog. Text that changed between two visits
/// counts as unchanged: the order is measured, not what an edit makes stale.
Returned replay_visits(const std::vector<Visit>& visits, const KeepSetup& setup);

}  // namespace efimd::bench
