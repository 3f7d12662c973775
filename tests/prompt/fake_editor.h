#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/prompt/planner.h"
#include "daemon/text/document.h"
#include "tests/support/marked.h"
#include "tests/support/scripted_engine.h"

namespace efimd::test {

/// One open file in an imaginary editor. It edits the file, plans a prompt at the cursor and counts
/// the tokens that an engine with the last prompt (and the text generated after it) would have to
/// evaluate.
class FakeEditor {
 public:
  explicit FakeEditor(std::string_view source, int prompt_tokens = 2048, int near_tokens = 4096)
      : windows_(prompt::Windows::of(prompt_tokens, near_tokens)),
        cursor_(marked(source).cursor),
        document_(marked(source).text),
        spine_(tokenizer_) {}

  void type(std::string_view text) {
    replace(cursor_, cursor_, text);
    cursor_ += text.size();
  }
  void backspace(std::size_t bytes = 1) {
    replace(cursor_ - bytes, cursor_, "");
    cursor_ -= bytes;
  }
  /// An edit elsewhere; the cursor stays at its place in the text.
  void replace(std::size_t begin, std::size_t end, std::string_view text) {
    if (!document_.replace(begin, end, text)) throw std::logic_error("edit refused");
    if (end < cursor_) cursor_ += text.size() - (end - begin);
  }
  void insert_at(std::size_t byte, std::string_view text) { replace(byte, byte, text); }
  void jump_to(std::string_view needle) { cursor_ = text().find(needle); }
  void move(std::ptrdiff_t bytes) { cursor_ += static_cast<std::size_t>(bytes); }

  /// Plans at the cursor: keeps the last anchor where it serves, else makes one of a full view.
  /// Returns how many prompt tokens are new.
  int ask() {
    plan_at_cursor();
    const auto [held_end, unused] =
        std::mismatch(held_.begin(), held_.end(), last_.tokens.begin(), last_.tokens.end());
    const auto reused = held_end - held_.begin();
    held_ = last_.tokens;
    return static_cast<int>(last_.tokens.size()) - static_cast<int>(reused);
  }
  /// What the model would have generated: held after the prompt and offered to the anchor.
  void generate(const std::vector<std::string>& pieces) {
    std::vector<prompt::CoveredToken> generated;
    for (const std::string& piece : pieces) {
      const engine::TokenId id = tokenizer_.encode(piece, engine::Fragment::kInside).at(0);
      generated.push_back({id, tokenizer_.bytes(id).size(), true});
      held_.push_back(id);
    }
    prompt::offer(last_.anchor, generated);
  }

  /// A new plan of this view at the cursor, for nothing but looking at it.
  prompt::Plan look(prompt::View view) {
    return prompt::anchored(view, *document_.snapshot(), cursor(), spine_, tokenizer_, windows_);
  }
  std::string_view text() const { return document_.snapshot()->bytes(); }
  std::size_t cursor() const { return cursor_; }
  const prompt::Plan& plan() const { return last_; }
  /// Whether the last ask() kept the anchor, and else why not: nothing where there was none.
  bool kept() const { return kept_; }
  std::optional<prompt::AnchorChange> change() const { return change_; }
  const ScriptedTokenizer& tokenizer() const { return tokenizer_; }
  std::string before() const { return tokenizer_.decode(last_.anchor.before); }
  std::string after() const { return tokenizer_.decode(last_.anchor.after); }
  std::string increment() const {
    std::string out;
    for (const prompt::CoveredToken& token : last_.anchor.increment)
      out += tokenizer_.bytes(token.id);
    return out;
  }
  std::string tail() const { return std::string(text().substr(cursor_, last_.tail_end - cursor_)); }

  const text::Snapshot& snapshot() const { return *document_.snapshot(); }
  const prompt::Spine& spine() const { return spine_; }
  const prompt::Windows& windows() const { return windows_; }

 private:
  void plan_at_cursor() {
    const text::Snapshot& snapshot = *document_.snapshot();
    kept_ = false;
    change_.reset();
    if (planned_) {
      prompt::follow(last_.anchor, snapshot, tokenizer_);
      auto plan = prompt::continued(last_.anchor, snapshot, cursor_, tokenizer_, windows_);
      kept_ = plan.has_value();
      if (!plan) change_ = plan.error();
      if (plan) last_ = std::move(*plan);
    }
    planned_ = true;
    if (!kept_) last_ = look(prompt::View::kFull);
  }

  ScriptedTokenizer tokenizer_;
  prompt::Windows windows_;
  std::size_t cursor_;
  text::Document document_;
  prompt::Spine spine_;
  bool planned_ = false;
  prompt::Plan last_;
  bool kept_ = false;
  std::optional<prompt::AnchorChange> change_;
  std::vector<engine::TokenId> held_;
};

}  // namespace efimd::test
