#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/tokenizer/seams.h"

namespace efimd::test {

/// A tokenizer without a model: every byte is a token, and about 170 pieces of code are tokens too;
/// greedy, longest match first. No piece has a "\n" but at its end, so that a cut after "\n" never
/// splits one.
///
/// Ids: 0..255 the bytes, then the pieces, then <PRE> <SUF> <MID> <END> <BOS>.
class ScriptedTokenizer final : public engine::Tokenizer {
 public:
  struct Shape {
    engine::FimOrder order = engine::FimOrder::kPsm;
    bool wants_bos = false;
    engine::FimFiles files = {};
    engine::TokenId repository = engine::kNoToken;
  };
  ScriptedTokenizer() : ScriptedTokenizer(Shape{}) {}
  explicit ScriptedTokenizer(Shape shape);

  std::vector<engine::TokenId> encode(std::string_view text, engine::Fragment where) const override;
  std::string_view bytes(engine::TokenId token) const override;
  std::size_t line_cut(std::string_view text) const override;
  bool is_seam(char left, char right) const override { return seams_.contains(left, right); }
  int size() const override;
  bool is_control(engine::TokenId token) const override;
  bool ends_generation(engine::TokenId token) const override;
  engine::TokenId bos() const override;
  const engine::FimTokens& fim() const override { return fim_; }

  engine::TokenId end() const { return end_; }
  std::vector<engine::TokenId> encode(std::string_view text) const {
    return encode(text, engine::Fragment::kInside);
  }

 private:
  engine::TokenId longest_match(std::string_view text) const;

  std::vector<std::string> pieces_;  ///< by id; empty for control tokens
  std::unordered_map<std::string_view, engine::TokenId> ids_;
  std::size_t piece_bytes_max_ = 1;
  engine::SeamTable seams_ = engine::SeamTable::all();
  engine::TokenId end_ = engine::kNoToken;
  engine::TokenId bos_ = engine::kNoToken;
  engine::FimTokens fim_;
};

/// A prompt as the script sees it: the texts between the FIM tokens.
struct ScriptedPrompt {
  std::string head, before, after, increment;
  std::vector<engine::TokenId> tokens;
};

/// The gate at which a test stops the engine. Open at first.
///
/// Thread: any. A test that closes a gate must open it before the engine is destroyed.
class Gate {
 public:
  void close();
  void open();
  /// Lets the engine through once and stops it here again; it must be waiting.
  void step();
  /// Waits until the engine waits at this gate.
  void wait_until_reached();
  /// The engine's side.
  void pass();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  bool waiting_ = false;
  int passes_ = 0;  ///< single steps granted and not yet taken
};

/// A ScriptedEngine's script; shared by a test and the engine that it gave away.
///
/// The plain members are set before the engine runs, or between requests; gates and counters may be
/// used at any time.
struct EngineScript {
  /// The text to generate after a prompt, then the end token. Called once for each finished
  /// prefill(), and see continues_everywhere.
  std::function<std::string(const ScriptedPrompt&)> continuation = [](const ScriptedPrompt&) {
    return std::string();
  };
  /// When set, ids to generate instead of continuation's tokens (broken code points, control
  /// tokens); no end is added.
  std::function<std::vector<engine::TokenId>(const ScriptedPrompt&)> token_continuation;
  /// Less likely texts, best first. At the start of a generation their first tokens are the next
  /// best choices; a chosen one is spelled to its end.
  std::vector<std::string> alternatives;
  /// Probabilities of the tokens that cover these bytes of the continuation; others are certain.
  std::map<std::size_t, double> chances;
  ScriptedTokenizer::Shape tokenizer;
  /// Asks `continuation` for every row of logits, also inside the prompt, which is then cut after
  /// the row's token. So it gives what the model would have written there, whatever was typed.
  bool continues_everywhere = false;
  bool fragment_trained = true;
  int window_tokens = 4096;
  int ample_tokens = 0;  ///< 0: window_tokens
  std::string device_kind = "scripted";
  std::atomic<int> device = 0;               ///< its number, which is in its name
  bool stands_in = false;                    ///< Engine::stands_in()
  std::function<void()> on_release = [] {};  ///< Engine::release_device()
  /// Pages of kPageTokens; open sequences share none here. Read for the status at any time.
  std::atomic<int> page_count = 1 << 20;
  int step_tokens = 16;  ///< the stop token is looked at before each step of prefill()
  std::optional<Error> hold_error, append_error;  ///< the latter of step()

  Gate hold_gate;    ///< before each step of prefill()
  Gate append_gate;  ///< before each step()

  std::atomic<int> parts_to_overwrite = 0;  ///< until overwrite_some() has nothing left
  Gate overwrite_gate;                      ///< before each of them

  bool gives_back = false;                  ///< Engine::gives_back()
  std::atomic<int> parts_to_give_back = 0;  ///< until give_back_some() has nothing left
  Gate give_back_gate;                      ///< before each of them

  std::atomic<int> holds = 0;
  std::atomic<int> appends = 0;    ///< calls of step(), append() among them
  std::atomic<int> steps = 0;      ///< of prefill()
  std::atomic<int> evaluated = 0;  ///< tokens, by prefill() and step()
  std::atomic<int> sequences_open = 0;
  std::atomic<int> visits = 0;
};

/// An engine whose KV is a token list for each sequence and whose logits spell a script.
///
/// Counts reused and evaluated tokens as Engine::prefill() documents them. Reused are the
/// sequence's own leading tokens, then full pages that any sequence, open or closed, has held (none
/// is ever evicted). A whole prompt costs its last token, or nothing while its logits are at hand.
/// After a token of the prompt it would choose the prompt's next one; it gives as many such rows as
/// were asked for.
class ScriptedEngine final : public engine::Engine {
 public:
  explicit ScriptedEngine(std::shared_ptr<EngineScript> script);

  const engine::Tokenizer& tokenizer() const override { return tokenizer_; }
  bool fragment_trained() const override { return script_->fragment_trained; }
  int window_tokens() const override { return script_->window_tokens; }
  int step_tokens() const override { return script_->step_tokens; }
  int ample_tokens() const override {
    return script_->ample_tokens > 0 ? script_->ample_tokens : script_->window_tokens;
  }
  engine::SequenceId open_sequence() override;
  void close_sequence(engine::SequenceId sequence) override;
  Result<engine::SequenceId> fork(engine::SequenceId sequence) override;
  Result<engine::PromptCost> prefill(engine::SequenceId sequence,
                                     std::span<const engine::TokenId> tokens,
                                     engine::PrefillOptions options) override;
  Result<int> rewind(engine::SequenceId sequence, std::span<const engine::TokenId> tokens) override;
  int resident(std::span<const engine::TokenId> tokens) const override;
  Result<void> step(std::span<const engine::BatchItem> items, std::stop_token stop = {}) override;
  std::span<const float> logits(engine::SequenceId sequence, int back = 0) const override;
  std::span<const engine::TokenId> held(engine::SequenceId sequence) const override;
  void visited(engine::SourceId, int) override { ++script_->visits; }
  bool overwrite_some() override;
  bool gives_back() const override { return script_->gives_back; }
  bool give_back_some(std::span<const engine::SourceId> but) override;
  void release_device() override { script_->on_release(); }
  bool stands_in() const override { return script_->stands_in; }
  engine::KvUsage kv_usage() const override;
  std::string device_kind() const override { return script_->device_kind; }
  std::string device_name() const override { return "script " + std::to_string(script_->device); }
  Digest model() const override { return {}; }

 private:
  struct Sequence {
    std::vector<engine::TokenId> held;
    std::vector<engine::TokenId> script;  ///< what generation spells from here
    std::size_t spelled = 0;              ///< tokens of it that step() was given
    std::size_t logits_begin = 0;         ///< first position whose logits are kept
    bool logits = false;                  ///< those from logits_begin to the last
  };
  /// Leading tokens that need no evaluation when logits are wanted from `logits_begin` on.
  std::size_t reusable(const Sequence& sequence, std::span<const engine::TokenId> tokens,
                       std::size_t logits_begin) const;
  void extend(Sequence& sequence, engine::TokenId token);
  bool fits(engine::SequenceId sequence, std::size_t tokens) const;
  Result<void> evaluate(Sequence& sequence, std::span<const engine::TokenId> tokens,
                        const std::stop_token& stop);
  void remember_pages(const Sequence& sequence);
  void spell_from(Sequence& sequence);
  ScriptedPrompt split(std::span<const engine::TokenId> tokens) const;
  std::size_t in_pages(std::span<const engine::TokenId> tokens, std::size_t behind) const;
  engine::TokenId choice_behind(const Sequence& sequence, std::size_t position) const;
  void take_alternative(Sequence& sequence, engine::TokenId first) const;
  float logit_of_choice(const Sequence& sequence) const;

  std::shared_ptr<EngineScript> script_;
  ScriptedTokenizer tokenizer_;
  std::map<engine::SequenceId, Sequence> sequences_;
  /// A page by the page before it and its own tokens, as a tree: equal prefixes are one path.
  using PageKey = std::pair<int, std::array<engine::TokenId, engine::kPageTokens>>;
  static PageKey page_key(int page_before, std::span<const engine::TokenId> tokens);
  std::map<PageKey, int> pages_;  ///< their numbers, from 1; 0 stands before the first
  std::uint64_t next_id_ = 1;
  mutable std::vector<float> logits_;
};

}  // namespace efimd::test
