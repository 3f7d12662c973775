#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"
#include "daemon/config/config.h"
#include "tests/bench/completion/samples.h"

namespace efimd::bench {

/// The gain and the cost of keeping KV on disk.
struct KeepingResult {
  std::string description;       ///< model and device
  completion::Receipt cold;      ///< of the whole prompt, nothing kept
  completion::Receipt warm;      ///< of the first character typed after a restart
  completion::Receipt unbroken;  ///< of the same one where no restart came before
  double load_mb_s = 0;          ///< pages read and checked, from a disk whose cache was emptied
  double disk_mb_s = 0;          ///< the same file read from end to end, likewise
  /// First tokens of keystrokes, with a store and without: the same key at the same place with the
  /// same prompt in both.
  Samples with_ms, without_ms;
  int keys_apart = 0;  ///< keys left out because their prompts were not the same
  Samples more_ms;     ///< of each key, with a store less without
  Interval more_ms_median;
};

struct KeepingSetup {
  service::Config config;
  std::filesystem::path model;
  std::filesystem::path folder;  ///< of the store, for this measurement alone; on the user's disk
  std::string text;              ///< of a file
  int prompt_tokens = 3000;      ///< most tokens of a prompt
  int keys = 100;                ///< pressed with a store and without, kKeyMs apart
};
inline constexpr int kKeyMs = 120;
/// So many with a store, then as many without, or the other way round. Each runs while the other is
/// idle, and so soon after it that a change of the machine's pace meets both.
inline constexpr int kKeysInTurn = 20;

/// Opens the text in one life of the service, ends it when all is kept, and opens it in the next.
/// Prompts show all that fits at once, so that the cold one is what the warm one spares.
///
/// Thread: its caller's; takes the time of evaluating the prompt twice and
/// 2 * keys * kKeyMs, with a pause of a second or two each kKeysInTurn.
Result<KeepingResult> run_keeping(const KeepingSetup& setup);

}  // namespace efimd::bench
