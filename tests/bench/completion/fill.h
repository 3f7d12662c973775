#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "daemon/completion/completion.h"
#include "daemon/prompt/path_head.h"
#include "engine/decode/spelling.h"
#include "engine/engine.h"

// What a model writes at given cursors, prompt by prompt and without the daemon's own judgement of when to be
// silent: what `training/` measures models with.

namespace efimd::bench {

/// A file has no more cursors; the rest of a longer one is refused, not left out.
inline constexpr std::size_t kFillCursorsMax = 100'000;

/// A cursor after `increment`, which was typed after `before`; `after` comes next.
struct FillCursor {
  std::string before, increment, after;
  prompt::FileName file = {};  ///< said as the daemon says it, in the model's form
};

/// Reads JSON lines {"before":T,"increment":T,"after":T,"path":T,"repository":T}; all but "before" and
/// "after" may be left out. Blank lines and other members are passed over. kBadInput names the line and
/// the member.
Result<std::vector<FillCursor>> parse_fill_cursors(std::string_view jsonl);

/// Where the increment stands in the prompt.
enum class FillForm {
  kPsm,     ///< before the suffix, tokenized with what stands before it
  kEfim,    ///< after the middle token
  kHealed,  ///< there, its last tokens healed (A-8)
};

struct FillOptions {
  FillForm form = FillForm::kEfim;
  int tokens_max = 32;
  completion::StopRule stop = completion::StopRule::kLine;
};

struct Filled {
  std::string text;
  int prompt_tokens = 0;
  int dropped_tokens = 0;  ///< of before's beginning, which found no room in the model's window
  int generated_tokens = 0;
  double prompt_ms = 0, generation_ms = 0;
};

/// Fills one cursor after another, greedily, with one sequence of the engine: what prompts have in
/// common is evaluated once.
///
/// Thread: the engine's. Owns the engine.
class Filler {
 public:
  /// kUnsupported where the model does not fill in the middle in the order prefix, suffix.
  static Result<Filler> open(std::unique_ptr<engine::Engine> engine);

  /// kWindowFull where after and increment leave no room for tokens.
  Result<Filled> fill(const FillCursor& cursor, const FillOptions& options);

 private:
  struct Prompt;
  explicit Filler(std::unique_ptr<engine::Engine> engine);
  Result<Prompt> prompt(const FillCursor& cursor, const FillOptions& options) const;

  std::unique_ptr<engine::Engine> engine_;
  engine::SequenceId sequence_;
  engine::ByteOrder order_;  ///< of the engine's tokens
};

}  // namespace efimd::bench
