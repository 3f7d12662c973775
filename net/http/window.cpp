#include "net/http/window.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"

namespace efimd::http {

namespace {

/// A line that stands in the text more often than this begins no run ("}", blank lines).
constexpr std::size_t kSeedsMax = 8;
/// More runs than this are not looked for; one edit rarely leaves more than two.
constexpr std::size_t kRunsMax = 64;
/// Nor in a long window once its lines were gone through so often: what is left is one edit.
constexpr std::size_t kPassesMax = 8;
constexpr std::size_t kLongLines = 32768;
/// Windows over one text with fewer bytes than this may delete as much.
constexpr std::size_t kDeletedBytesMin = 4096;

/// The lines of a text, each with its "\n".
struct Lines {
  explicit Lines(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      starts.push_back(at);
      const std::size_t end = text.find('\n', at);
      lines.push_back(text.substr(at, end == text.npos ? text.npos : end + 1 - at));
      at += lines.back().size();
    }
    starts.push_back(text.size());
  }
  std::size_t count() const { return lines.size(); }
  std::string_view operator[](std::size_t line) const { return lines[line]; }

  std::vector<std::string_view> lines;
  std::vector<std::size_t> starts;  ///< one more than lines: the text's end
};

/// Lines [begin, end) of both.
struct Span {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};
struct Gap {
  Span known, window;
};
struct Run {
  std::size_t known = 0, window = 0, lines = 0;
};

class Aligner {
 public:
  Aligner(const Lines& known, const Lines& window) : known_(known), window_(window) {
    for (std::size_t line = 0; line < known.count(); ++line) places_[known[line]].push_back(line);
  }

  /// W-1: the shared runs, in their order.
  std::vector<Run> runs() {
    std::vector<Gap> open = {{{0, known_.count()}, {0, window_.count()}}};
    std::vector<Run> found;
    const std::size_t work_max = kPassesMax * std::max(window_.count(), kLongLines);
    while (!open.empty() && found.size() < kRunsMax && compared_ <= work_max) {
      const Gap gap = open.back();
      open.pop_back();
      const Run run = longest_in(gap);
      if (run.lines == 0) continue;
      found.push_back(run);
      open.push_back({{gap.known.begin, run.known}, {gap.window.begin, run.window}});
      open.push_back(
          {{run.known + run.lines, gap.known.end}, {run.window + run.lines, gap.window.end}});
    }
    std::ranges::sort(found, {}, &Run::window);
    return found;
  }
  std::size_t compared() const { return compared_; }

 private:
  /// By bytes: twenty closing brackets say less than one line of code.
  Run longest_in(const Gap& gap) {
    Run best;
    std::size_t best_bytes = 0;
    // By diagonal, where the last run ended. Its other seeds would find it again, each as slowly.
    std::unordered_map<std::ptrdiff_t, std::size_t> ends;
    for (std::size_t line = gap.window.begin; line < gap.window.end; ++line) {
      ++compared_;
      const auto places = places_.find(window_[line]);
      if (places == places_.end() || places->second.size() > kSeedsMax) continue;
      for (const std::size_t place : places->second) {
        if (place < gap.known.begin || place >= gap.known.end) continue;
        std::size_t& end =
            ends[static_cast<std::ptrdiff_t>(place) - static_cast<std::ptrdiff_t>(line)];
        if (line < end) continue;
        const Run run = extended(gap, place, line);
        end = run.window + run.lines;
        const std::size_t bytes = window_.starts[end] - window_.starts[run.window];
        if (bytes <= best_bytes) continue;
        best = run;
        best_bytes = bytes;
      }
    }
    return best;
  }

  Run extended(const Gap& gap, std::size_t known, std::size_t window) {
    Run run{known, window, 1};
    while (run.known > gap.known.begin && run.window > gap.window.begin &&
           is_same(run.known - 1, run.window - 1)) {
      --run.known;
      --run.window;
      ++run.lines;
    }
    while (run.known + run.lines < gap.known.end && run.window + run.lines < gap.window.end &&
           is_same(run.known + run.lines, run.window + run.lines))
      ++run.lines;
    return run;
  }

  bool is_same(std::size_t known, std::size_t window) {
    ++compared_;
    return known_[known] == window_[window];
  }

  const Lines& known_;
  const Lines& window_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> places_;
  std::size_t compared_ = 0;
};

/// Whether an edit may begin or end at `at`.
bool is_border(std::string_view text, std::size_t at) {
  if (at == 0 || at >= text.size()) return true;
  if (utf8::is_continuation(text[at])) return false;
  return !(text[at - 1] == '\r' && text[at] == '\n');
}

class Layer {
 public:
  Layer(std::string_view known, const Window& window)
      : text_(known), window_(window), known_lines_(known), window_lines_(window.text) {}

  Laid lay() {
    Aligner aligner(known_lines_, window_lines_);
    const std::vector<Run> runs = aligner.runs();
    laid_.compared = aligner.compared();
    std::size_t known = 0, window = 0;
    for (const Run& run : runs) {
      take({{known, run.known}, {window, run.window}}, window == 0 && known == 0, false);
      if (covers(run.window, run.window + run.lines))
        laid_.cursor = grown(known_lines_.starts[run.known]) + window_.cursor -
                       window_lines_.starts[run.window];
      known = run.known + run.lines;
      window = run.window + run.lines;
    }
    take({{known, known_lines_.count()}, {window, window_lines_.count()}}, runs.empty(), true);
    judge();
    return std::move(laid_);
  }

 private:
  /// Whether the cursor stands in the window's lines [begin, end), or at their end, nothing else.
  bool covers(std::size_t begin, std::size_t end) const {
    return window_.cursor >= window_lines_.starts[begin] &&
           (window_.cursor < window_lines_.starts[end] ||
            (window_.cursor == window_.text.size() && end == window_lines_.count()));
  }
  std::size_t grown(std::size_t known_byte) const { return known_byte + inserted_ - deleted_; }

  void take(const Gap& gap, bool first, bool last) {
    if (covers(gap.window.begin, gap.window.end) || (first && last)) return replace(gap);
    if (first && window_.cut_above && stays_above(gap)) return;
    if (last && window_.cut_below && stays_below(gap)) return;
    replace(gap);
  }

  /// W-2 and W-3. A window may begin inside a line.
  bool stays_above(const Gap& gap) const {
    if (gap.window.size() == 0) return true;
    if (gap.known.size() > 0 && gap.window.size() == 1)
      return known_lines_[gap.known.end - 1].ends_with(window_lines_[gap.window.begin]);
    return gap.known.size() == 0 && gap.window.size() < kGrowthLines;
  }
  bool stays_below(const Gap& gap) const {
    if (gap.window.size() == 0) return true;
    if (gap.known.size() > 0 && gap.window.size() == 1) {
      std::string_view line = window_lines_[gap.window.begin];
      if (line.ends_with('\n')) line.remove_suffix(1);
      return known_lines_[gap.known.begin].starts_with(line);
    }
    return gap.known.size() == 0 && gap.window.size() < kGrowthLines;
  }

  /// What differs between both sides of the gap, at borders of characters.
  void replace(const Gap& gap) {
    const std::size_t known_begin = known_lines_.starts[gap.known.begin];
    const std::size_t window_begin = window_lines_.starts[gap.window.begin];
    const std::string_view old =
        text_.substr(known_begin, known_lines_.starts[gap.known.end] - known_begin);
    const std::string_view now =
        std::string_view(window_.text)
            .substr(window_begin, window_lines_.starts[gap.window.end] - window_begin);
    if (covers(gap.window.begin, gap.window.end))
      laid_.cursor = grown(known_begin) + window_.cursor - window_begin;
    const auto [head, tail] = shared_ends(old, now, window_begin);
    if (old.size() == now.size() && head == old.size()) return;
    laid_.edits.push_back({known_begin + head, known_begin + old.size() - tail,
                           std::string(now.substr(head, now.size() - tail - head))});
    inserted_ += now.size() - tail - head;
    deleted_ += old.size() - tail - head;
  }

  struct Ends {
    std::size_t head = 0, tail = 0;
  };
  /// What follows the cursor first: of two equal characters, the one before the cursor was typed.
  Ends shared_ends(std::string_view old, std::string_view now, std::size_t window_begin) const {
    const std::size_t most = std::min(old.size(), now.size());
    const bool here = window_.cursor >= window_begin && window_.cursor <= window_begin + now.size();
    Ends ends;
    if (here)
      ends.tail = tail_of(old, now, std::min(most, window_begin + now.size() - window_.cursor));
    ends.head = head_of(old, now, most - ends.tail);
    if (!here) ends.tail = tail_of(old, now, most - ends.head);
    return ends;
  }
  static std::size_t head_of(std::string_view old, std::string_view now, std::size_t most) {
    std::size_t head = 0;
    while (head < most && old[head] == now[head]) ++head;
    while (!is_border(old, head) || !is_border(now, head)) --head;
    return head;
  }
  static std::size_t tail_of(std::string_view old, std::string_view now, std::size_t most) {
    std::size_t tail = 0;
    while (tail < most && old[old.size() - 1 - tail] == now[now.size() - 1 - tail]) ++tail;
    while (!is_border(old, old.size() - tail) || !is_border(now, now.size() - tail)) --tail;
    return tail;
  }

  void judge() {
    const std::size_t bytes = window_.text.size();
    if (bytes == 0) {
      laid_.likeness = text_.empty() ? 1 : 0;
    } else if (deleted_ <= std::max(bytes, kDeletedBytesMin)) {
      laid_.likeness = 1 - static_cast<double>(inserted_) / static_cast<double>(bytes);
    }
  }

  const std::string_view text_;
  const Window& window_;
  const Lines known_lines_;
  const Lines window_lines_;
  Laid laid_;
  std::size_t inserted_ = 0;
  std::size_t deleted_ = 0;
};

}  // namespace

Laid lay_over(std::string_view known, const Window& window) { return Layer(known, window).lay(); }

std::string edited(std::string_view known, const std::vector<Edit>& edits) {
  std::string text;
  std::size_t at = 0;
  for (const Edit& edit : edits) {
    text += known.substr(at, edit.begin - at);
    text += edit.text;
    at = edit.end;
  }
  return text += known.substr(at);
}

}  // namespace efimd::http
