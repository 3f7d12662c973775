#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/recall/anchors.h"
#include "daemon/recall/candidate.h"

namespace efimd::recall {

/// Bytes before the cursor that a match is compared over.
inline constexpr std::size_t kContextBytesMax = 512;
/// Matches with fewer equal bytes say nothing.
inline constexpr std::size_t kAgreedBytesMin = 3;
/// Bytes of a continuation, which ends with a whole word; the rest of a longer line is not proposed.
inline constexpr std::size_t kContinuationBytesMax = 256;

/// The surroundings of a place in a text: views into it.
struct Surroundings {
  static constexpr std::size_t kLines = 3;

  /// `like`: the lines above are read as far as they are the same as its lines, and so is `below`.
  Surroundings(std::string_view text, std::size_t at, const Surroundings* like = nullptr);

  std::string_view typed;                      ///< of its line before it, without indentation
  std::array<std::string_view, kLines> above;  ///< trimmed lines with content, nearest first
  std::string_view below;                      ///< the first such line under its line
  std::ptrdiff_t indent_step = 0;              ///< of its line, against the nearest above
};

/// A place in other text that what stands before the cursor agrees with.
struct Match {
  std::string_view text;    ///< that it is in
  std::size_t goes_on = 0;  ///< byte in it where the continuation begins
  std::size_t agreed = 0;   ///< equal bytes before
  Source source = Source::kProject;
  std::string_view scanned_path = {};
  /// Set instead for text of a batch: to read the name would be one more wait for memory.
  const std::string* batch_path = nullptr;
  bool edited = false;  ///< the text is another file's, and was edited in this session

  bool is_analogy = false;  ///< `text` is its continuation alone, and stands nowhere

  // The findings of judge().
  std::string_view continuation = {};  ///< of its line, without blanks at the end
  bool is_cut = false;                 ///< the line goes on after it
  std::size_t lines_above = 0;
  bool fits_below = false;
  bool same_indent_step = true;
  std::size_t distance_lines = 0;  ///< in the cursor's own file
  double weight = 0;               ///< of its vote

  std::string_view path() const { return batch_path != nullptr ? *batch_path : scanned_path; }
};

/// Whether two matches are in text of the same file.
bool are_of_one_file(const Match& a, const Match& b);

/// A query made ready for comparison with many places.
class Asked {
 public:
  Asked(std::string_view text, std::size_t cursor);

  std::string_view text() const { return text_; }
  std::size_t cursor() const { return cursor_; }
  Place place() const { return place_; }
  const Surroundings& around() const { return around_; }
  std::string_view tail() const { return tail_; }          ///< rest of the cursor's line, trimmed
  bool has_open_bracket() const { return open_bracket_; }  ///< in the line before the cursor
  bool after_closer() const;  ///< the cursor stands after a bracket's or a string's end
  std::size_t line_begin() const { return line_begin_; }
  std::size_t line_end() const { return line_end_; }

  /// The places to look: in the line, and from the line above; the second one only if it may help.
  const std::vector<Probe>& probes() const { return probes_; }
  std::string_view context(const Probe& probe) const;

  /// What the user typed between the probe's anchor and the cursor; empty over a line's end.
  std::string_view typed_since(const Probe& probe) const {
    return probe.over_line_end ? std::string_view()
                               : text_.substr(probe.anchor, cursor_ - probe.anchor);
  }

  /// What match() adds to an agreement before the probe, at most.
  std::size_t bytes_since(const Probe& probe) const {
    return probe.over_line_end ? around_.typed.size() + line_ends_ : cursor_ - probe.anchor;
  }

  /// The match at byte `at` of `text` whose context agrees over `agreed` bytes with the probe's;
  /// nullopt if the text does not go on as the user typed.
  std::optional<Match> match(const Probe& probe, std::string_view text, std::size_t at,
                             std::size_t agreed) const;
  /// Fills in the rest, for a match that deserves it.
  void judge(Match& match) const;

 private:
  std::string_view text_;
  std::size_t cursor_, line_begin_, line_end_;
  Surroundings around_;
  std::string_view tail_;
  Place place_ = Place::kInside;
  bool open_bracket_ = false;
  std::size_t line_ends_ = 0;  ///< between the line above and the cursor's
  std::vector<Probe> probes_;
};

/// Equal bytes at the ends of both, and at their beginnings.
std::size_t common_suffix(std::string_view a, std::string_view b);
std::size_t common_prefix(std::string_view a, std::string_view b);
std::string_view trimmed(std::string_view line);

}  // namespace efimd::recall
