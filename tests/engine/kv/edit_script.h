#pragma once

#include <random>
#include <vector>

#include "engine/types.h"

namespace efimd::test {

/// Random editing over several documents, as the prompts that it makes: <PRE> before <SUF> after
/// <MID> increment, in token ids (KV-5).
class EditScript {
 public:
  struct Limits {
    int documents = 4;
    int text_tokens = 120;  ///< of each document at the start
    int window_tokens = 256;
    int vocabulary = 61;
  };
  EditScript(const Limits& limits, unsigned seed);

  /// Does one random edit, cursor move, accept or change of document.
  void step();
  /// What was generated after prompt(); a later step may accept some of it.
  void offer(std::vector<engine::TokenId> generated) { offered_ = std::move(generated); }

  std::vector<engine::TokenId> prompt() const;
  std::size_t document() const { return current_; }
  /// True with a chance of one in `limit`.
  bool chance(int limit) { return below(limit) == 0; }
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

 private:
  struct Document {
    std::vector<engine::TokenId> before, after, increment;
  };
  engine::TokenId random_token() { return 3 + below(limits_.vocabulary - 3); }
  void jump(Document& document);
  void edit(std::vector<engine::TokenId>& text);
  void accept(Document& document);

  Limits limits_;
  std::mt19937 random_;
  std::vector<Document> documents_;
  std::size_t current_ = 0;
  std::vector<engine::TokenId> offered_;
};

}  // namespace efimd::test
