#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/completion/answer/turn.h"
#include "daemon/recall/index.h"

namespace efimd::completion {

/// Text of the user's own that may come next.
struct Recalled {
  std::optional<Item> item;  ///< worth showing alone, fitted to the text; unset: nothing is
  double chance = 0;         ///< that the user types all of the item's first line
  double gain = 0;           ///< characters of it that the user may expect to be spared
  bool judged = false;       ///< by the model, too
  bool rejected = false;     ///< the user turned the best candidate down here
  std::vector<recall::Candidate> candidates = {};  ///< for the model to judge, the best first
};

/// Text that the model may go on to write: it is evaluated with the prompt in one step.
struct Draft {
  std::string text;
  double chance = 1;  ///< that its beginning is right; 1: judge as many tokens as one step can
  std::vector<std::string> candidates = {};  ///< texts to judge in that step (Turn::judged)
};

/// The draft of the best candidate's line and the lines under it, with all candidates to judge.
Draft draft_of(const Recalled& recalled);

/// Tells the index what the user took of the last suggestion.
///
/// Thread: engine. Call after the event is known and before the last suggestion is forgotten.
void note_accepted(recall::Index& index, const Turn& turn);

/// The index's candidates at the cursor, none of them taken yet: to fit one takes longer than to find
/// them, and the model's first token must not wait for it.
Recalled propose(const recall::Index& index, const Turn& turn);

/// The same with the best one taken; if the model has judged them (Turn::judged), by the chances of
/// both. It obeys the rules of fit and the user's rejections.
Recalled with_model(const Recalled& recalled, const Turn& turn);

/// Characters of what the model wrote that the user may expect to be spared.
double written_gain(const Turn& turn, const std::vector<Item>& written);

/// Whether recalled text has the better expected gain than what the model wrote.
bool is_better(const Recalled& recalled, double written_gain);

/// Whether the model is sure enough of its text for such a place. If the line is finished already,
/// a suggestion is rarely wanted.
bool is_welcome(const Turn& turn, std::optional<double> confidence);

}  // namespace efimd::completion
