#include "daemon/completion/answer/partial.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/completion/answer/recalled.h"
#include "daemon/completion/fit/fit.h"
#include "daemon/completion/fit/fit_lines.h"
#include "daemon/completion/fit/parses.h"
#include "daemon/completion/fit/repeats.h"
#include "daemon/completion/fit/unit_ends.h"
#include "daemon/text/indentation.h"

namespace efimd::completion {

namespace {

bool agree(std::string_view a, std::string_view b) { return a.starts_with(b) || b.starts_with(a); }

std::string_view without_blanks(std::string_view text) {
  text = trim_end(text);
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

/// The lines of `settled` that are whole in `text` and that F-3 and F-4 will leave as they are.
std::string_view lasting_lines(std::string_view settled, std::string_view text,
                               const CursorContext& place) {
  const bool on_blank_line = is_blank(place.line_before);
  const bool open = settled.size() == text.size();
  if (open || text::indentation_of(place.snapshot.bytes(), place.cursor).tabs) {
    // With tabs, a later line may show what the model takes for one level.
    if (on_blank_line) return {};
    const std::size_t end = open ? settled.rfind('\n') : settled.find('\n');
    settled = settled.substr(0, end);
  }
  std::size_t begin = 0;
  for (std::size_t line = 0; begin <= settled.size(); ++line) {
    const std::size_t end = std::min(settled.find('\n', begin), settled.size());
    const std::string_view own = settled.substr(begin, end - begin);
    const bool repeats = without_blanks(own) == without_blanks(place.next_line) ||
                         nearly_equal(own, place.next_line, place.language);
    if ((line > 0 || on_blank_line) && !is_blank(own) && repeats)
      return settled.substr(0, begin > 0 ? begin - 1 : 0);
    begin = end + 1;
  }
  return settled;
}

/// Up to the last end of a unit that no further text moves.
std::string_view sure_of(std::string_view settled, std::string_view text,
                         const CursorContext& place, double least) {
  if (!(least > 0)) return settled;
  std::size_t sure = 0;
  for (const std::size_t end : unit_ends(text, place)) {
    const bool goes_on = text.find_first_not_of(" \t\r", end) != std::string_view::npos;
    if (end <= settled.size() && goes_on) sure = std::max(sure, end);
  }
  return settled.substr(0, sure);
}

class Teller {
 public:
  Teller(Turn& turn, std::size_t typed) : turn_(turn), typed_(typed) {
    const Request& request = turn.request();
    const CursorContext& place = turn.context();
    holds_all_ = !is_blank(place.rest) || !is_welcome(turn, 0.0) ||
                 turn.document.rejections.turned_down(turn.snapshot(), turn.cursor) ||
                 request.selected || request.by_hand;
  }

  void hear(const StopRules& rules, const Generated& so_far) {
    const std::string_view text = rules.text();
    if (holds_all_ || text.size() <= typed_ || rules.settled().size() <= typed_) return;
    const CursorContext& place = turn_.context();
    if (may_be_finished(so_far.chances, place, turn_.request().options)) return;
    const std::string_view rest = text.substr(typed_);
    const std::string_view sure =
        sure_of(lasting_lines(rules.settled().substr(typed_), rest, place), rest, place,
                least_confidence(turn_.request().options));
    if (sure.size() <= sure_) return;
    sure_ = sure.size();
    // What follows a unit may be what does not parse (F-8).
    Fitted fitted = fit(sure.substr(0, parsing_part(rest, place, 0)), place);
    if (fitted.text.size() <= told_.size() || fitted.replace_end != place.cursor ||
        !fitted.text.starts_with(told_) || differs_from_rival(fitted.text, so_far))
      return;
    told_ = fitted.text;
    turn_.request().partial({std::move(fitted.text), place.cursor, place.cursor});
  }

 private:
  bool differs_from_rival(std::string_view text, const Generated& so_far) {
    if (!rival_) {
      turn_.judged = so_far.judged;
      rival_ = with_model(*turn_.rival, turn_);
    }
    return rival_->rejected || (rival_->item && !agree(rival_->item->text, text));
  }

  Turn& turn_;
  const std::size_t typed_;
  bool holds_all_ = false;
  std::size_t sure_ = 0;  ///< bytes
  std::string told_;
  std::optional<Recalled> rival_;
};

}  // namespace

TokenHeard partial_teller(Turn& turn, std::size_t typed) {
  if (!turn.request().partial || turn.rival == nullptr) return nullptr;
  return [teller = std::make_shared<Teller>(turn, typed)](
             const StopRules& rules, const Generated& so_far) { teller->hear(rules, so_far); };
}

}  // namespace efimd::completion
