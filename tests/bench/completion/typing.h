#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/completion/bench_service.h"
#include "tests/bench/completion/samples.h"
#include "tests/bench/completion/typist.h"

namespace efimd::bench {

/// What typing was like.
struct TypingResult {
  std::size_t keys_by_hand = 0;   ///< what the texts take without any suggestion
  std::size_t keys = 0;           ///< pressed: typed and accepting
  std::size_t accepted = 0;       ///< of these, accepting
  std::size_t answered = 0;       ///< keys whose answer came before the next key made it old
  std::size_t suggested = 0;      ///< of these, with a suggestion
  std::size_t typed_through = 0;  ///< of these, answered from the suggestion on the screen
  Samples suggestion_ms;          ///< from a key to the suggestion that it brought
  double typing_s = 0;            ///< of the person's time
  double cpu_s = 0;               ///< of this process, while typing

  double saved_share() const;
  double cpu_s_per_minute() const;
};

struct TypingOptions {
  double speed = 1;  ///< of the person; the machine's is what it is
  std::uint32_t seed = 1;
};

/// Types the exercise at a person's pace, a completion asked for at each key, suggestions accepted
/// as acceptable_bytes() says; adds to `result`. Takes as long as a person would, by `speed`.
Result<void> type_exercise(BenchService& bench, const std::string& path, const Exercise& exercise,
                           const TypingOptions& options, TypingResult& result);

}  // namespace efimd::bench
