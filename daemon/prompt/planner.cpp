#include "daemon/prompt/planner.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "daemon/prompt/cover.h"
#include "daemon/prompt/places.h"

namespace efimd::prompt {

namespace {

using engine::Fragment;
using engine::TokenId;
using engine::Tokenizer;

constexpr int kFraming = 4;  // BOS, PRE, SUF, MID
/// What a part of after has: a stage on the way to a whole one.
constexpr int kPartAfter = 512;

/// How many lines a cut may go up to find a border of the spine's tokens: with most
/// vocabularies one newline in 200 is in the middle of a token.
constexpr int kCutLinesUpMax = 4;

int after_budget(View view, const Windows& windows) {
  switch (view) {
    case View::kFull:
      return windows.after_max;
    case View::kPartAfter:
      return std::min(windows.part_after_max, windows.after_max);
    case View::kShortAfter:
      return std::min(windows.short_after_max, windows.after_max);
    case View::kFirst:
      return windows.first_after_max;
    case View::kFirstShort:
      return std::min(windows.short_after_max, windows.first_after_max);
    case View::kNear:
      return std::min(windows.near_after_max, windows.after_max);
  }
  return 0;
}

/// Fills after and the window's end: whole lines, as far as the budget goes.
void choose_after(Anchor& anchor, const text::Snapshot& snapshot, int tokens_max,
                  const Tokenizer& tokenizer) {
  const std::string_view text = snapshot.bytes();
  const auto budget = static_cast<std::size_t>(std::max(tokens_max, 0));
  const std::size_t most = std::min(text.size() - anchor.resume, budget * kBytesPerTokenGuess);
  const auto encoded_to = [&](std::size_t end) {
    anchor.window_end = end;
    anchor.after =
        tokenizer.encode(text.substr(anchor.resume, end - anchor.resume), Fragment::kInside);
  };
  encoded_to(utf8::floor(text, anchor.resume + most));
  if (anchor.after.size() <= budget) return;
  std::size_t end = anchor.resume;
  for (const TokenId token : std::span(anchor.after).first(budget))
    end += tokenizer.bytes(token).size();
  end = utf8::floor(text, end);
  const std::size_t line_begin = snapshot.lines().start(snapshot.lines().line_of(end));
  encoded_to(line_begin > anchor.resume ? line_begin : end);
  if (anchor.after.size() > budget) anchor.after.resize(budget);
}

/// before is the spine's leading part up to the cut, which goes up to a border of its tokens.
void take_before(Anchor& anchor, const text::Snapshot& snapshot, Spine& spine,
                 Spine::Limits limits) {
  spine.follow(snapshot, anchor.cut, limits);
  const text::LineIndex& lines = snapshot.lines();
  std::size_t line = lines.line_of(anchor.cut);
  for (int up = 0; up < kCutLinesUpMax && !spine.is_border(anchor.cut) && line > 0; ++up)
    anchor.cut = std::max(lines.start(--line), spine.begin());
  anchor.cut = spine.border_at_or_before(snapshot.bytes(), anchor.cut);
  anchor.window_begin = spine.begin();
  const auto leading = spine.tokens().first(spine.tokens_before(anchor.cut));
  anchor.before.assign(leading.begin(), leading.end());
}

/// As many lines before the cut as the budget allows.
void take_near_before(Anchor& anchor, const text::Snapshot& snapshot, int tokens_max,
                      const Tokenizer& tokenizer) {
  const std::string_view text = snapshot.bytes();
  const auto budget = static_cast<std::size_t>(std::max(tokens_max, 0));
  const auto encoded_from = [&](std::size_t begin) {
    anchor.window_begin = begin;
    anchor.before = tokenizer.encode(text.substr(begin, anchor.cut - begin),
                                     begin == 0 ? Fragment::kTextStart : Fragment::kInside);
  };
  encoded_from(utf8::floor(text, anchor.cut - std::min(anchor.cut, budget * kBytesPerTokenGuess)));
  if (anchor.before.size() <= budget) return;
  std::size_t begin = anchor.cut;
  for (const TokenId token : std::span(anchor.before).last(budget))
    begin -= std::min(begin, tokenizer.bytes(token).size());
  encoded_from(line_start_from(snapshot, utf8::floor(text, begin), anchor.cut));
}

void append(std::vector<TokenId>& tokens, TokenId token) {
  if (token != engine::kNoToken) tokens.push_back(token);
}

void append(std::vector<TokenId>& tokens, std::span<const TokenId> more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

/// The prefix mark, and the text before the cut with what is said of its file.
void append_before(std::vector<TokenId>& tokens, const engine::FimTokens& fim, const PathHead& path,
                   std::span<const TokenId> before) {
  append(tokens, fim.prefix);
  append(tokens, path.inside);
  append(tokens, before);
}

void append_after(std::vector<TokenId>& tokens, const engine::FimTokens& fim,
                  std::span<const TokenId> after) {
  append(tokens, fim.suffix);
  append(tokens, after);
}

std::vector<TokenId> opening(const PathHead& path, const Tokenizer& tokenizer) {
  std::vector<TokenId> tokens;
  append(tokens, tokenizer.bos());
  append(tokens, path.front);
  return tokens;
}

Plan plan_for(Anchor anchor, const text::Snapshot& snapshot, std::size_t cursor,
              const Tokenizer& tokenizer) {
  Plan plan;
  plan.tokens = prompt_tokens(anchor, tokenizer);
  plan.cursor = cursor;
  plan.tail_end = anchor.resume;
  plan.shown = shown_part(anchor, snapshot, cursor);
  plan.anchor = std::move(anchor);
  return plan;
}

/// The part of a text that an anchor leaves to its increment and tail.
struct Hole {
  std::size_t cut = 0;
  std::size_t resume = 0;
};

/// Whether a poorer view shows what a full one would: all that follows, and all of before that the
/// view's window has.
bool shows_all(const Anchor& anchor, const text::Snapshot& snapshot) {
  return anchor.window_end == snapshot.bytes().size() &&
         (anchor.window_begin == 0 || !is_of_first_window(anchor.view));
}

Plan anchored_in(Hole hole, View view, const text::Snapshot& snapshot, std::size_t cursor,
                 Spine& spine, const Tokenizer& tokenizer, const Windows& windows) {
  Anchor anchor;
  anchor.view = view;
  anchor.path = spine.path();
  anchor.serial = snapshot.serial();
  anchor.cut = hole.cut;
  anchor.resume = hole.resume;
  if (view == View::kNear) {
    take_near_before(anchor, snapshot, windows.near_before_max, tokenizer);
  } else {
    take_before(anchor, snapshot, spine, limits_of(view, windows));
  }
  int after_max = after_budget(view, windows);
  // What the spine says of the whole text holds for what stands after the cursor, too.
  if (view == View::kFull && windows.whole_max > 0 && spine.is_whole_text())
    after_max = std::max(after_max, windows.whole_max - static_cast<int>(anchor.before.size()));
  choose_after(anchor, snapshot, after_max, tokenizer);
  if (windows.has_first() && shows_all(anchor, snapshot)) anchor.view = View::kFull;
  const std::string_view text = snapshot.bytes();
  anchor.increment = cover(text.substr(anchor.cut, cursor - anchor.cut), anchor, tokenizer);
  return plan_for(std::move(anchor), snapshot, cursor, tokenizer);
}

}  // namespace

std::vector<TokenId> prompt_tokens(const Anchor& anchor, const Tokenizer& tokenizer) {
  const engine::FimTokens& fim = tokenizer.fim();
  std::vector<TokenId> tokens = opening(anchor.path, tokenizer);
  tokens.reserve(anchor.path.size() + anchor.before.size() + anchor.after.size() +
                 anchor.edits.size() + anchor.increment.size() + kFraming);
  if (fim.order == engine::FimOrder::kSpm) append_after(tokens, fim, anchor.after);
  append_before(tokens, fim, anchor.path, anchor.before);
  if (fim.order != engine::FimOrder::kSpm) append_after(tokens, fim, anchor.after);
  append(tokens, anchor.edits);
  append(tokens, fim.middle);
  for (const CoveredToken& token : anchor.increment) tokens.push_back(token.id);
  return tokens;
}

double shown_part(const Anchor& anchor, const text::Snapshot& snapshot, std::size_t cursor) {
  const std::size_t shown = (cursor - std::min(cursor, anchor.window_begin)) +
                            (anchor.window_end - std::min(anchor.window_end, anchor.resume));
  const std::size_t tail = anchor.resume - std::min(cursor, anchor.resume);
  const std::size_t bytes = snapshot.bytes().size();
  if (bytes <= tail) return 1;
  return std::min(1.0, static_cast<double>(shown) / static_cast<double>(bytes - tail));
}

std::string_view view_name(View view) {
  switch (view) {
    case View::kFull:
      return "full";
    case View::kPartAfter:
      return "part of after";
    case View::kShortAfter:
      return "short after";
    case View::kFirst:
      return "first window";
    case View::kFirstShort:
      return "first window, short after";
    case View::kNear:
      return "near";
  }
  return "";
}

Spine::Limits limits_of(View view, const Windows& windows) {
  if (is_of_first_window(view)) return {windows.first_before_max, 0};
  return {windows.before_max, windows.whole_max};
}

Windows Windows::wide(int text_tokens, const Windows& first) {
  Windows windows = first;
  windows.first_before_max = first.before_max;
  windows.first_after_max = first.after_max;
  windows.first_increment_max = first.increment_max;
  windows.whole_max = std::max(text_tokens, 0);
  windows.before_max = windows.whole_max * 8 / 11;
  windows.after_max = windows.whole_max - windows.before_max;
  windows.increment_max = std::max(windows.whole_max / 8, first.increment_max);
  windows.part_after_max = kPartAfter;
  return windows;
}

Windows Windows::of(int prompt_tokens, int near_tokens) {
  constexpr int kShortAfter = 64;
  const int text = std::max(prompt_tokens - kFraming, 0);
  Windows windows;
  windows.before_max = text / 2;
  windows.increment_max = text * 5 / 16;
  windows.after_max = text - windows.before_max - windows.increment_max;
  windows.short_after_max = std::min(kShortAfter, windows.after_max);
  windows.near_before_max = std::min(near_tokens * 2 / 3, windows.before_max);
  windows.near_after_max = std::min(near_tokens - near_tokens * 2 / 3, windows.after_max);
  return windows;
}

Result<void> can_fill_in(const Tokenizer& tokenizer) {
  if (tokenizer.fim().order != engine::FimOrder::kNone) return {};
  return fail(Fault::kUnsupported,
              "the model cannot fill in text between two others (" + tokenizer.fim().reason + ")",
              "choose a model trained for it, such as Qwen2.5-Coder");
}

tl::expected<Plan, AnchorChange> continued(const Anchor& anchor, const text::Snapshot& snapshot,
                                           std::size_t cursor, const Tokenizer& tokenizer,
                                           const Windows& windows) {
  if (anchor.state != Anchor::State::kGood) return tl::unexpected(AnchorChange::kEditOutside);
  if (cursor < anchor.cut || cursor > anchor.resume) return tl::unexpected(AnchorChange::kJump);
  const std::string_view text = snapshot.bytes();
  if (!only_closers_and_blanks(text.substr(cursor, anchor.resume - cursor)))
    return tl::unexpected(AnchorChange::kTail);
  // What was pasted may be far too long, and tokenizing 1 MB only to know takes half a second.
  const auto most = static_cast<std::size_t>(windows.increment_max_of(anchor.view));
  if (cursor - anchor.cut > 2 * most * kBytesPerTokenGuess)
    return tl::unexpected(AnchorChange::kHoleTooLong);
  Anchor next = anchor;
  next.increment = cover(text.substr(anchor.cut, cursor - anchor.cut), anchor, tokenizer);
  if (next.increment.size() > most) return tl::unexpected(AnchorChange::kHoleTooLong);
  return plan_for(std::move(next), snapshot, cursor, tokenizer);
}

Plan anchored(View view, const text::Snapshot& snapshot, std::size_t cursor, Spine& spine,
              const Tokenizer& tokenizer, const Windows& windows) {
  const Hole hole{choose_cut(snapshot.bytes(), cursor, tokenizer), choose_resume(snapshot, cursor)};
  return anchored_in(hole, view, snapshot, cursor, spine, tokenizer, windows);
}

Plan widened(View view, const Anchor& narrower, const text::Snapshot& snapshot, std::size_t cursor,
             Spine& spine, const Tokenizer& tokenizer, const Windows& windows) {
  return anchored_in({narrower.cut, narrower.resume}, view, snapshot, cursor, spine, tokenizer,
                     windows);
}

Plan with_edits(Plan plan, std::vector<TokenId> edits, const Tokenizer& tokenizer) {
  plan.anchor.edits = std::move(edits);
  plan.tokens = prompt_tokens(plan.anchor, tokenizer);
  return plan;
}

Plan plain(const text::Snapshot& snapshot, std::size_t cursor, Spine& spine,
           const Tokenizer& tokenizer, const Windows& windows) {
  Anchor anchor;
  anchor.path = spine.path();
  anchor.serial = snapshot.serial();
  anchor.cut = anchor.resume = cursor;
  spine.follow(snapshot, cursor, {windows.before_max});
  const std::size_t begin = anchor.window_begin = spine.begin();
  anchor.before = tokenizer.encode(snapshot.bytes().substr(begin, cursor - begin),
                                   begin == 0 ? Fragment::kTextStart : Fragment::kInside);
  choose_after(anchor, snapshot, windows.after_max, tokenizer);
  return plan_for(std::move(anchor), snapshot, cursor, tokenizer);
}

std::vector<TokenId> spine_prompt(const Spine& spine, const Tokenizer& tokenizer) {
  const engine::FimTokens& fim = tokenizer.fim();
  if (fim.order != engine::FimOrder::kPsm || spine.tokens().empty()) return {};
  std::vector<TokenId> tokens = opening(spine.path(), tokenizer);
  append_before(tokens, fim, spine.path(), spine.tokens());
  return tokens;
}

}  // namespace efimd::prompt
