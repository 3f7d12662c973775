#include "net/http/recent_answers.h"

#include <algorithm>

namespace efimd::http {

void RecentAnswers::note(const Surroundings& text, std::string_view answer) {
  if (answer.empty()) return;
  const std::size_t kept = std::min(text.before.size(), kBeforeBytesMax);
  answers_.push_back(
      {text.path, text.before.substr(text.before.size() - kept), std::string(answer)});
  if (answers_.size() > kAnswersMax) answers_.pop_front();
}

bool RecentAnswers::asks_ahead(const Surroundings& text) const {
  return std::ranges::any_of(answers_, [&](const Each& each) {
    std::string_view before = text.before;
    if (each.path != text.path || !before.ends_with(each.answer)) return false;
    before.remove_suffix(each.answer.size());
    // A client that shows so many lines may have dropped some at the top.
    const std::size_t both = std::min(before.size(), each.before.size());
    return before.substr(before.size() - both) ==
           std::string_view(each.before).substr(each.before.size() - both);
  });
}

}  // namespace efimd::http
