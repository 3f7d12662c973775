#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "daemon/completion/request.h"
#include "engine/types.h"

namespace efimd::completion {

/// What a server elsewhere is asked: a prompt as tokens of its vocabulary, or as text.
struct RemoteWish {
  std::vector<engine::TokenId> tokens;
  std::string prompt;  ///< if there are no tokens
  Options options;
};

/// What it says of the prompt's work; unset: it does not say.
struct RemoteUsage {
  std::optional<int> prompt_tokens, cached_tokens;
};

/// Some of its text, as it comes.
struct RemotePiece {
  std::string text;
  std::vector<double> chances;  ///< of its tokens; empty: unknown
  RemoteUsage usage;
};

/// How its text ended.
struct RemoteEnd {
  RemoteUsage usage;
  bool cut = false;  ///< the number of tokens ended it
};

/// A model that a server elsewhere runs. It gives text, and no KV or logits.
///
/// Thread: engine. Blocks no longer than the configured limits.
class RemoteEngine {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~RemoteEngine() = default;

  /// The model's name, and `text` as its vocabulary has it if the server tells.
  struct Look {
    std::string model;
    std::optional<std::vector<engine::TokenId>> tokens;
  };
  virtual Result<Look> look(std::string_view text, std::stop_token stop) = 0;

  /// Gives the text as it comes; `take` ends it by false. kStopped if `stop` fires. Another error is
  /// a server that does not answer, before or after some text.
  using Take = std::function<bool(const RemotePiece& piece)>;
  virtual Result<RemoteEnd> ask(const RemoteWish& wish, const Take& take, std::stop_token stop) = 0;
};

/// Text that frames a prompt, as the user configured it; empty: by the model's name.
struct RemoteFrame {
  std::string prefix, suffix, middle;
};

struct RemoteSettings {
  std::shared_ptr<RemoteEngine> engine;  ///< null: there is none
  RemoteFrame frame;
  int window_tokens = 4096;
};

}  // namespace efimd::completion
