#include "daemon/prompt/spine.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "daemon/prompt/places.h"

namespace efimd::prompt {

using engine::Fragment;

namespace {

Fragment fragment_at(std::size_t byte) {
  return byte == 0 ? Fragment::kTextStart : Fragment::kInside;
}

}  // namespace

Spine::Spine(const engine::Tokenizer& tokenizer, PathHead path)
    : tokenizer_(&tokenizer), path_(std::move(path)), tokens_(tokenizer, Fragment::kTextStart) {}

void Spine::follow(const text::Snapshot& snapshot, std::size_t cut, Limits limits) {
  const auto most = static_cast<std::size_t>(std::max(limits.before_max, 1));
  const bool carried = carry(snapshot, limits);
  serial_ = snapshot.serial();
  whole_ = whole_ && carried && end_ == snapshot.bytes().size();
  if (carried && fits(limits)) return;
  const bool shown = carried && shows_enough(cut, most);
  if ((begin_ == 0 || !shown) &&
      take_whole(snapshot.bytes(), static_cast<std::size_t>(std::max(limits.whole_max, 0)))) {
    whole_ = true;
    return;
  }
  if (!shown) {
    move_window(snapshot, cut, most);
  } else if (const std::size_t size = tokens_.tokens().size();
             size > most + most / 4 || (!whole_ && size < most - most / 4)) {
    set_end(snapshot, cut, most);
  }
  whole_ = end_ == snapshot.bytes().size();
}

bool Spine::follow_edits(const text::Snapshot& snapshot, std::size_t cut, Limits limits) {
  if (!serial_ || tokens_.tokens().empty()) return false;
  if (!carry(snapshot, limits)) {
    serial_.reset();
    return false;
  }
  serial_ = snapshot.serial();
  whole_ = whole_ && end_ == snapshot.bytes().size();
  return fits(limits) ||
         shows_enough(cut, static_cast<std::size_t>(std::max(limits.before_max, 1)));
}

bool Spine::fits(Limits limits) const {
  return begin_ == 0 && whole_ &&
         tokens_.tokens().size() <= static_cast<std::size_t>(std::max(limits.whole_max, 0));
}

bool Spine::take_whole(std::string_view text, std::size_t tokens_max) {
  if (text.size() > tokens_max * kBytesPerTokenGuess) return false;
  // What is tokenized already tells whether trying is worth it: a text of 60 KB takes 10 ms.
  const auto known = static_cast<double>(tokens_.tokens().size());
  const double share = static_cast<double>(end_ - begin_) / static_cast<double>(text.size() + 1);
  if (known > 1.25 * share * static_cast<double>(tokens_max)) return false;
  const std::size_t begin = std::exchange(begin_, 0);
  const std::size_t end = end_;
  engine::TokenizedText before = std::move(tokens_);
  tokenize(text, text.size());
  if (tokens_.tokens().size() <= tokens_max) return true;
  begin_ = begin;
  end_ = end;
  tokens_ = std::move(before);
  return false;
}

void Spine::start(const text::Snapshot& snapshot, std::size_t begin, std::size_t end) {
  const std::string_view text = snapshot.bytes();
  if (begin >= text.size() || (begin > 0 && text[begin - 1] != '\n')) return;
  begin_ = begin;
  tokenize(text, std::max(begin, utf8::floor(text, std::min(end, text.size()))));
  serial_ = snapshot.serial();
  whole_ = end_ == text.size();
}

std::size_t Spine::border_at_or_before(std::string_view text, std::size_t byte) const {
  std::size_t token = tokens_before(std::min(byte, end_));
  while (token > 0 &&
         utf8::floor(text, begin_ + tokens_.begin_of(token)) != begin_ + tokens_.begin_of(token))
    --token;
  return begin_ + tokens_.begin_of(token);
}

bool Spine::carry(const text::Snapshot& snapshot, Limits limits) {
  if (!serial_) return false;
  const text::Snapshot::Since since = snapshot.edits_since(*serial_);
  if (!since.complete) return false;
  const text::Change change = text::sum_of(since.edits);
  if (!change.any) return true;
  const std::size_t inserted = change.end - change.begin;
  const std::size_t growth = inserted - change.removed;  // modulo 2^64, as the sums below
  const std::size_t removed_end = change.begin + change.removed;
  if (change.begin > end_ || (change.begin == end_ && !whole_)) return true;
  if (removed_end <= begin_ && change.begin < begin_) {
    begin_ += growth;
    end_ += growth;
    return true;
  }
  if (change.begin < begin_ || removed_end > end_) return false;
  const auto most = static_cast<std::size_t>(std::max({limits.before_max, limits.whole_max, 1}));
  if (inserted > most * kBytesPerTokenGuess) return false;
  end_ += growth;
  tokens_.replace(snapshot.bytes().substr(begin_, end_ - begin_), change.begin - begin_,
                  change.removed, inserted);
  return true;
}

bool Spine::shows_enough(std::size_t cut, std::size_t tokens_max) const {
  if (cut < begin_ || cut > end_) return false;
  const std::size_t shown = tokens_before(cut);
  return shown <= tokens_max && (begin_ == 0 || shown >= tokens_max / 4);
}

void Spine::move_window(const text::Snapshot& snapshot, std::size_t cut, std::size_t tokens_max) {
  const std::string_view text = snapshot.bytes();
  const std::size_t farthest = cut - std::min(cut, tokens_max * kBytesPerTokenGuess);
  begin_ = farthest == 0 ? 0 : line_start_from(snapshot, farthest, cut);
  tokenize(text, cut);
  const std::size_t size = tokens_.tokens().size();
  if (begin_ > 0 || size > tokens_max) {
    // Three quarters of what may be shown, so that the cursor's next moves find room.
    const std::size_t hidden = size - std::min(size, tokens_max - tokens_max / 4);
    const std::size_t byte = utf8::floor(text, begin_ + tokens_.begin_of(hidden));
    begin_ = line_start_from(snapshot, byte, cut);
  }
  set_end(snapshot, cut, tokens_max);
}

void Spine::set_end(const text::Snapshot& snapshot, std::size_t cut, std::size_t tokens_max) {
  const std::string_view text = snapshot.bytes();
  const std::size_t most = std::min(text.size() - begin_, tokens_max * kBytesPerTokenGuess);
  tokenize(text, std::max(cut, utf8::floor(text, begin_ + most)));
  if (tokens_.tokens().size() <= tokens_max) return;
  const std::size_t byte = utf8::floor(text, begin_ + tokens_.begin_of(tokens_max));
  const text::LineIndex& lines = snapshot.lines();
  tokenize(text, std::max(cut, lines.start(lines.line_of(byte))));
}

void Spine::tokenize(std::string_view text, std::size_t end) {
  end_ = end;
  tokens_ = engine::TokenizedText(*tokenizer_, fragment_at(begin_));
  tokens_.set(text.substr(begin_, end_ - begin_));
}

}  // namespace efimd::prompt
