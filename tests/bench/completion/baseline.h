#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/completion/completion.h"
#include "daemon/config/paths.h"
#include "daemon/prompt/planner.h"
#include "engine/engine.h"

namespace efimd::bench {

/// How prompts are made, and what is used again of earlier work.
struct Treatment {
  enum class Format : std::uint8_t {
    kEfim,
    kPlainFim,  ///< prompt::plain()
  };
  enum class Reuse : std::uint8_t {
    kAll,     ///< all that the daemon does (BenchService); of EFIM only
    kPrefix,  ///< the KV of leading tokens: one sequence for each document, and pages; full views
    kNone,    ///< every prompt is evaluated whole
  };
  Format format = Format::kEfim;
  Reuse reuse = Reuse::kAll;

  /// Whether it is the daemon's own; the others are baselines (Baseline).
  bool is_usual() const { return reuse == Reuse::kAll; }
};

/// "efim/all", "fim/prefix", ...
std::string treatment_name(Treatment treatment);

/// The baselines of the daemon's completions: a client that sends plain FIM prompts, or EFIM's
/// layout alone, over an engine that reuses leading tokens, or nothing. Prompts are full views, and
/// tokens are chosen greedily. No healing, nothing from memory, no work in idle time.
///
/// Thread: its owner's, which is also the engine's. Owns the engine.
/// Limits: one sequence for each document; where KV has no room, the least recently used goes.
class Baseline {
 public:
  struct Setup {
    Treatment treatment;
    int prompt_tokens_max = 0;  ///< 0: what the measured speed allows in `cold_prompt_ms`
    int cold_prompt_ms = 2000;
    /// The model's own end of text ends nothing, so that every answer has as many tokens as were asked.
    bool past_end = false;
  };
  /// kUnsupported where the model cannot fill in text.
  static Result<std::unique_ptr<Baseline>> make(std::unique_ptr<engine::Engine> engine,
                                                const Setup& setup);

  /// Takes the request's document, snapshot, cursor, arrival and options.tokens_max. Fails as the
  /// engine does, and with kWindowFull where the prompt does not fit alone.
  Result<completion::Receipt> ask(const completion::Request& request);

  int window_tokens() const { return prompt_tokens_max_; }  ///< most tokens of a prompt
  const engine::Engine& engine() const { return *engine_; }

 private:
  struct Document {
    Document(const engine::Tokenizer& tokenizer, engine::SequenceId opened)
        : spine(tokenizer), sequence(opened) {}
    prompt::Spine spine;
    prompt::Anchor anchor;  ///< of the last prompt
    bool asked = false;     ///< whether there was one
    engine::SequenceId sequence;
    std::uint64_t used = 0;  ///< order of use
  };
  Baseline(std::unique_ptr<engine::Engine> engine, const Setup& setup, int prompt_tokens_max);

  Document& document_of(const completion::DocumentKey& key);
  prompt::Windows windows_for(int tokens_max) const;
  prompt::Plan plan_for(Document& document, const completion::Request& request) const;
  Result<engine::PromptCost> hold(Document& document, const std::vector<engine::TokenId>& tokens);
  Result<completion::Receipt> generate(Document& document, const completion::Request& request,
                                       const prompt::Plan& plan);
  Result<void> append(Document& document, engine::TokenId token);
  /// Closes the least recently used other document; false where there is none.
  bool make_room(const Document& but);
  void forget(Document& document);

  std::unique_ptr<engine::Engine> engine_;
  const Setup setup_;
  const int prompt_tokens_max_;
  std::map<completion::DocumentKey, Document> documents_;
  std::uint64_t uses_ = 0;
};

/// A baseline over the configured model, and what it is called.
struct OpenedBaseline {
  std::unique_ptr<Baseline> baseline;
  std::string description;
};
/// Fails where there is no model, or it cannot be loaded.
Result<OpenedBaseline> open_baseline(const service::Paths& paths, Baseline::Setup setup);

}  // namespace efimd::bench
