#include "daemon/completion/documents/suggestion.h"

#include <algorithm>
#include <utility>

#include "daemon/completion/documents/documents.h"
#include "daemon/completion/fit/fit_lines.h"
#include "daemon/prompt/places.h"

namespace efimd::completion {

namespace {

/// Whether nothing of the old text but [begin, replace_end) was edited.
bool edited_only_there(const Suggestion& suggestion, const text::Snapshot& snapshot) {
  const text::Snapshot::Since since = snapshot.edits_since(suggestion.snapshot->serial());
  if (!since.complete) return false;
  const text::Change change = text::sum_of(since.edits);
  return !change.any || (change.begin >= suggestion.begin &&
                         change.begin + change.removed <= suggestion.replace_end);
}

}  // namespace

std::optional<std::size_t> typed_of(const Suggestion& suggestion, const text::Snapshot& snapshot,
                                    std::size_t cursor) {
  const std::string_view text = snapshot.bytes();
  if (cursor < suggestion.begin || !edited_only_there(suggestion, snapshot)) return std::nullopt;
  const std::size_t behind = suggestion.snapshot->bytes().size() - suggestion.replace_end;
  if (behind > text.size() || cursor + behind > text.size()) return std::nullopt;
  if (!prompt::only_closers_and_blanks(text.substr(cursor, text.size() - behind - cursor)))
    return std::nullopt;
  std::string_view typed = text.substr(suggestion.begin, cursor - suggestion.begin);
  if (!typed.starts_with(suggestion.lead)) return std::nullopt;
  typed.remove_prefix(suggestion.lead.size());
  const std::string_view known = suggestion.generated.end == End::kStopped
                                     ? suggestion.generated.all_text
                                     : suggestion.generated.text;
  if (!known.starts_with(typed)) return std::nullopt;
  return typed.size();
}

bool can_answer(const Suggestion& suggestion, std::size_t typed) {
  const Generated& generated = suggestion.generated;
  if (generated.end == End::kStopped) return false;
  const std::string_view rest = std::string_view(generated.text).substr(typed);
  if (is_blank(rest)) return false;
  const bool more_to_come = generated.end == End::kTokens || generated.end == End::kTime;
  return typed == 0 || !more_to_come || rest.size() >= generated.text.size() / 2;
}

Generated rest_of(const Generated& generated, std::size_t typed) {
  Generated rest = generated;
  rest.text.erase(0, std::min(typed, rest.text.size()));
  rest.all_text.erase(0, std::min(typed, rest.all_text.size()));
  std::erase_if(rest.chances, [&](const TokenChance& chance) { return chance.begin < typed; });
  for (TokenChance& chance : rest.chances) chance.begin -= typed;
  // The first bytes may be the end of a token that began in what was typed: it is certain now.
  if (rest.chances.empty() || rest.chances.front().begin > 0)
    rest.chances.insert(rest.chances.begin(), TokenChance{1.0, 0});
  rest.new_tokens = static_cast<int>(rest.chances.size());
  rest.confidence = 1;
  for (const TokenChance& chance : rest.chances) rest.confidence *= chance.probability;
  return rest;
}

KnownSuggestion known_suggestion(const DocumentState& document, const Options& options,
                                 const text::Snapshot& snapshot, std::size_t cursor) {
  KnownSuggestion known;
  // One that the text disagrees with may still be right for another place, or after an undo; they
  // are few, and the oldest goes.
  for (const Suggestion& suggestion : document.suggestions) {
    if (suggestion.options != options) continue;
    const auto typed = typed_of(suggestion, snapshot, cursor);
    if (!typed || (known.suggestion != nullptr && *typed >= known.typed)) continue;
    known = {&suggestion, *typed};
  }
  return known;
}

void remember(DocumentState& document, Suggestion suggestion) {
  std::vector<Suggestion>& suggestions = document.suggestions;
  const auto same_place = [&](const Suggestion& other) {
    return other.begin == suggestion.begin && other.lead == suggestion.lead &&
           other.snapshot->serial() == suggestion.snapshot->serial();
  };
  std::erase_if(suggestions, same_place);
  suggestions.insert(suggestions.begin(), std::move(suggestion));
  if (suggestions.size() > kSuggestionsMax) suggestions.pop_back();
}

}  // namespace efimd::completion
