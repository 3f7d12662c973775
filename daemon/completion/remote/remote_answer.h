#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "daemon/completion/answer/turn.h"
#include "daemon/completion/generate/generate.h"
#include "daemon/completion/remote/frame.h"
#include "daemon/completion/remote/remote_engine.h"
#include "daemon/prompt/planner.h"

namespace efimd::completion {

/// Answers from a server elsewhere. The prompts are the planner's (EFIM), so that the server's own
/// prefix cache holds all but what was typed.
///
///   R-1  The text of a document leaves only if its request says that it may (Request::may_leave).
///   R-2  If the server does not answer, the local engine does, and the trouble is told once.
///   R-3  Prompts are token ids if the server's vocabulary is the local one, else text.
///
/// Thread: engine. Limits: kDocumentsMax, kAnchorsMax of each.
class RemoteAnswer {
 public:
  static constexpr std::size_t kDocumentsMax = 64;
  static constexpr std::size_t kAnchorsMax = 4;

  /// `tokenizer` outlives it.
  RemoteAnswer(const engine::Tokenizer& tokenizer, RemoteSettings settings);

  /// nullopt: the local engine is to answer.
  std::optional<Or<Generated>> ask(Turn& turn);
  void close(const DocumentKey& document);

  /// Whether the last request was answered there.
  bool is_up() const { return state_.up; }
  const ServiceStatus::Remote& state() const { return state_; }

 private:
  struct Known {
    DocumentKey key;
    prompt::Spine spine;
    std::vector<prompt::Anchor> anchors;  ///< last used first
  };
  /// Makes the server's model known; false if it does not answer, or its form is unknown.
  bool look(const Turn& turn);
  prompt::Plan plan(const Turn& turn);
  Known& use(const DocumentKey& document);
  std::optional<RemoteWish> wish_for(const Turn& turn, const prompt::Plan& plan) const;
  void failed(const Error& error);

  const engine::Tokenizer& tokenizer_;
  const RemoteSettings settings_;
  const prompt::Windows windows_;
  std::list<Known> known_;  ///< last used first
  bool looked_ = false;
  bool ids_ = false;
  std::optional<PromptForm> form_;
  ServiceStatus::Remote state_;
};

}  // namespace efimd::completion
