#include "daemon/prompt/planner.h"

#include <algorithm>
#include <string_view>

#include "base/utf8.h"
#include "daemon/prompt/cover.h"
#include "daemon/prompt/follow.h"

// The prompt is [BOS] [PRE] before [SUF] after [MID] increment, and generation continues behind it
// (EFIM, arXiv 2505.21889). While the cursor stays in the hole, only the increment's tokens change,
// so that everything in front of them keeps its KV. What asks for a new anchor is listed in
// AnchorChange; a new anchor's leading tokens are the old one's as far as the text agrees, because
// its window begins at the same byte wherever that is still sensible.

namespace efimd::prompt {

namespace {

using engine::Fragment;
using engine::TokenId;
using engine::Tokenizer;

/// More bytes than this a token rarely covers: how much text to look at for a number of tokens.
constexpr std::size_t kBytesPerTokenGuess = 8;
/// A line longer than this is cut near the cursor instead of at its start.
constexpr std::size_t kCutDistanceMax = 512;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_closer(char c) { return std::string_view(")]}>;,:\"'`").find(c) != std::string_view::npos; }

bool only_closers_and_blanks(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return is_blank(c) || is_closer(c); });
}

bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || c == '_' || (c >= '0' && c <= '9') ||
         ((byte | 0x20U) >= 'a' && (byte | 0x20U) <= 'z');
}

std::size_t down_to_code_point(std::string_view text, std::size_t byte) {
  byte = std::min(byte, text.size());
  while (byte > 0 && byte < text.size() && utf8::is_continuation(text[byte])) --byte;
  return byte;
}

std::size_t bytes_of(const std::vector<TokenId>& tokens, const Tokenizer& tokenizer) {
  std::size_t sum = 0;
  for (const TokenId token : tokens) sum += tokenizer.bytes(token).size();
  return sum;
}

/// A place in front of the cursor's word, for lines too long to be cut at their start.
std::size_t word_cut(std::string_view text, std::size_t cursor) {
  const std::size_t nearest = cursor - std::min(cursor, kCutDistanceMax);
  std::size_t cut = cursor;
  while (cut > nearest && is_word(text[cut - 1])) --cut;
  return cut > nearest ? cut : down_to_code_point(text, cursor);
}

/// where before ends.
std::size_t choose_cut(std::string_view text, std::size_t cursor, const Tokenizer& tokenizer) {
  const std::size_t nearest = down_to_code_point(text, cursor - std::min(cursor, kCutDistanceMax));
  const std::size_t cut = tokenizer.line_cut(text.substr(nearest, cursor - nearest));
  if (cut == 0 && nearest > 0) return word_cut(text, cursor);
  return nearest + cut;
}

/// where after begins.
std::size_t choose_resume(const text::Snapshot& snapshot, std::size_t cursor) {
  const std::string_view text = snapshot.bytes();
  const std::size_t line = snapshot.lines().line_of(cursor);
  const std::size_t end = snapshot.lines().content_end(text, line);
  if (end > cursor && !only_closers_and_blanks(text.substr(cursor, end - cursor))) return cursor;
  return std::max(cursor, snapshot.lines().start(line + 1));
}

/// The first line start at or behind `byte`, if there is one at or before `limit`; else a code
/// point boundary.
std::size_t line_start_from(const text::Snapshot& snapshot, std::size_t byte, std::size_t limit) {
  const text::LineIndex& lines = snapshot.lines();
  const std::size_t line = lines.line_of(byte);
  if (lines.start(line) == byte) return byte;
  const std::size_t next = lines.start(line + 1);
  return next <= limit ? next : down_to_code_point(snapshot.bytes(), byte);
}

Fragment fragment_at(std::size_t byte) {
  return byte == 0 ? Fragment::kTextStart : Fragment::kInside;
}

struct Before {
  std::size_t begin = 0;
  std::vector<TokenId> tokens;
};

/// keeps the old window's begin while it shows enough and not too much; else takes three
/// quarters of the window, so that the next moves of the cursor find room.
Before choose_before(const text::Snapshot& snapshot, std::size_t cut,
                     std::optional<std::size_t> old_begin, int tokens_max,
                     const Tokenizer& tokenizer) {
  const std::string_view text = snapshot.bytes();
  const auto budget = static_cast<std::size_t>(std::max(tokens_max, 0));
  const auto encoded_from = [&](std::size_t begin) {
    return Before{begin, tokenizer.encode(text.substr(begin, cut - begin), fragment_at(begin))};
  };
  const auto near_enough = [&](std::size_t begin) {
    return begin <= cut && cut - begin <= budget * kBytesPerTokenGuess;
  };
  if (old_begin && *old_begin > 0 && near_enough(*old_begin)) {
    Before kept = encoded_from(*old_begin);
    if (kept.tokens.size() <= budget && kept.tokens.size() >= budget / 4) return kept;
  }
  const std::size_t farthest = cut - std::min(cut, budget * kBytesPerTokenGuess);
  Before widest = encoded_from(farthest == 0 ? 0 : line_start_from(snapshot, farthest, cut));
  if (widest.begin == 0 && widest.tokens.size() <= budget) return widest;
  const std::size_t wanted = std::min(widest.tokens.size(), budget * 3 / 4);
  std::size_t begin = cut;
  for (std::size_t i = 0; i < wanted; ++i)
    begin -= std::min(begin, tokenizer.bytes(widest.tokens[widest.tokens.size() - 1 - i]).size());
  return encoded_from(line_start_from(snapshot, down_to_code_point(text, begin), cut));
}

/// Fills after and the window's end: whole lines, as far as the budget goes.
void choose_after(Anchor& anchor, const text::Snapshot& snapshot, int tokens_max,
                  const Tokenizer& tokenizer) {
  const std::string_view text = snapshot.bytes();
  const auto budget = static_cast<std::size_t>(std::max(tokens_max, 0));
  const std::size_t farthest = down_to_code_point(
      text, anchor.resume + std::min(text.size() - anchor.resume, budget * kBytesPerTokenGuess));
  const auto encoded_to = [&](std::size_t end) {
    anchor.window_end = end;
    anchor.after =
        tokenizer.encode(text.substr(anchor.resume, end - anchor.resume), Fragment::kInside);
  };
  encoded_to(farthest);
  if (anchor.after.size() <= budget) return;
  anchor.after.resize(budget);
  const std::size_t end =
      down_to_code_point(text, anchor.resume + bytes_of(anchor.after, tokenizer));
  const std::size_t line_begin = snapshot.lines().start(snapshot.lines().line_of(end));
  encoded_to(line_begin > anchor.resume ? line_begin : end);
  if (anchor.after.size() > budget) anchor.after.resize(budget);
}

Anchor new_anchor(const text::Snapshot& snapshot, std::size_t cursor,
                  std::optional<std::size_t> old_begin, const Tokenizer& tokenizer,
                  const Windows& windows) {
  Anchor anchor;
  anchor.serial = snapshot.serial();
  anchor.cut = choose_cut(snapshot.bytes(), cursor, tokenizer);
  anchor.resume = choose_resume(snapshot, cursor);
  Before before = choose_before(snapshot, anchor.cut, old_begin, windows.before_max, tokenizer);
  anchor.window_begin = before.begin;
  anchor.before = std::move(before.tokens);
  choose_after(anchor, snapshot, windows.after_max, tokenizer);
  return anchor;
}

/// Whether the followed anchor serves a cursor at this place, else why not.
AnchorChange judge(const Followed& followed, const text::Snapshot& snapshot, std::size_t cursor) {
  if (followed.change != AnchorChange::kKept) return followed.change;
  if (cursor < followed.cut || cursor > followed.resume) return AnchorChange::kJump;
  const std::string_view tail = snapshot.bytes().substr(cursor, followed.resume - cursor);
  return only_closers_and_blanks(tail) ? AnchorChange::kKept : AnchorChange::kTail;
}

Anchor moved(const Anchor& anchor, const Followed& followed, std::uint64_t serial) {
  Anchor next = anchor;
  next.serial = serial;
  next.window_begin = followed.window_begin.value_or(0);
  next.cut = followed.cut;
  next.resume = followed.resume;
  next.window_end = followed.window_end;
  return next;
}

std::vector<TokenId> prompt_tokens(const Anchor& anchor, const Tokenizer& tokenizer) {
  const engine::FimTokens& fim = tokenizer.fim();
  std::vector<TokenId> tokens;
  tokens.reserve(anchor.before.size() + anchor.after.size() + anchor.increment.size() + 4);
  if (tokenizer.bos() != engine::kNoToken) tokens.push_back(tokenizer.bos());
  tokens.push_back(fim.prefix);
  tokens.insert(tokens.end(), anchor.before.begin(), anchor.before.end());
  tokens.push_back(fim.suffix);
  tokens.insert(tokens.end(), anchor.after.begin(), anchor.after.end());
  tokens.push_back(fim.middle);
  for (const CoveredToken& token : anchor.increment) tokens.push_back(token.id);
  return tokens;
}

}  // namespace

Windows Windows::of(int prompt_tokens) {
  constexpr int kFraming = 4;  // BOS, PRE, SUF, MID
  const int text = std::max(prompt_tokens - kFraming, 0);
  Windows windows;
  windows.before_max = text / 2;
  windows.increment_max = text * 5 / 16;
  windows.after_max = text - windows.before_max - windows.increment_max;
  return windows;
}

void offer(Anchor& anchor, std::vector<CoveredToken> generated, int replaced) {
  anchor.offered_begin = 0;
  const std::size_t kept = anchor.increment.size() - static_cast<std::size_t>(replaced);
  for (std::size_t i = 0; i < kept; ++i) anchor.offered_begin += anchor.increment[i].bytes;
  anchor.offered = std::move(generated);
}

Result<Plan> plan(const Anchor* current, const text::Snapshot& snapshot, std::size_t cursor,
                  const Tokenizer& tokenizer, const Windows& windows) {
  if (tokenizer.fim().order != engine::FimOrder::kPsm)
    return fail(Fault::kUnsupported,
                "the model cannot fill in text in prefix-suffix-middle order (" +
                    tokenizer.fim().reason + ")",
                "choose a model trained for it, such as Qwen2.5-Coder");
  const std::string_view text = snapshot.bytes();
  cursor = down_to_code_point(text, cursor);
  Plan plan;
  plan.cursor = cursor;
  plan.change = AnchorChange::kFirst;
  std::optional<std::size_t> old_begin;
  if (current != nullptr) {
    const Followed followed = follow(*current, snapshot);
    plan.change = judge(followed, snapshot, cursor);
    old_begin = followed.window_begin;
    if (plan.change == AnchorChange::kKept) {
      plan.anchor = moved(*current, followed, snapshot.serial());
      plan.anchor.increment =
          cover(text.substr(followed.cut, cursor - followed.cut), plan.anchor, tokenizer);
      if (plan.anchor.increment.size() > static_cast<std::size_t>(windows.increment_max))
        plan.change = AnchorChange::kHoleTooLong;
    }
  }
  if (plan.change != AnchorChange::kKept) {
    plan.anchor = new_anchor(snapshot, cursor, old_begin, tokenizer, windows);
    plan.anchor.increment =
        cover(text.substr(plan.anchor.cut, cursor - plan.anchor.cut), plan.anchor, tokenizer);
  }
  plan.tokens = prompt_tokens(plan.anchor, tokenizer);
  plan.tail_end = plan.anchor.resume;
  return plan;
}

}  // namespace efimd::prompt
