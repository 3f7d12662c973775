#include "tests/engine/kv/edit_script.h"

#include <algorithm>

namespace efimd::test {

using engine::TokenId;

EditScript::EditScript(const Limits& limits, unsigned seed)
    : limits_(limits), random_(seed), documents_(static_cast<std::size_t>(limits.documents)) {
  // Documents share their beginning, as files with the same licence and imports do.
  std::vector<TokenId> head(static_cast<std::size_t>(limits.text_tokens / 2));
  for (TokenId& token : head) token = random_token();
  for (Document& document : documents_) {
    document.before = head;
    while (static_cast<int>(document.before.size()) < limits.text_tokens)
      document.before.push_back(random_token());
    jump(document);
  }
}

std::vector<TokenId> EditScript::prompt() const {
  const Document& document = documents_[current_];
  std::vector<TokenId> tokens = {0};
  tokens.insert(tokens.end(), document.before.begin(), document.before.end());
  tokens.push_back(1);
  tokens.insert(tokens.end(), document.after.begin(), document.after.end());
  tokens.push_back(2);
  tokens.insert(tokens.end(), document.increment.begin(), document.increment.end());
  return tokens;
}

void EditScript::step() {
  Document& document = documents_[current_];
  switch (below(10)) {
    case 0:
    case 1:
    case 2:
    case 3:
      for (int count = 1 + below(3); count > 0; --count)
        document.increment.push_back(random_token());
      break;
    case 4:
      for (int count = 1 + below(4); count > 0 && !document.increment.empty(); --count)
        document.increment.pop_back();
      break;
    case 5:
    case 6:
      accept(document);
      break;
    case 7:
      jump(document);
      break;
    case 8:
      edit(chance(2) ? document.before : document.after);
      break;
    default:
      current_ = static_cast<std::size_t>(below(limits_.documents));
  }
  offered_.clear();
  if (static_cast<int>(prompt().size()) > limits_.window_tokens) jump(documents_[current_]);
}

void EditScript::accept(Document& document) {
  if (offered_.empty()) return;
  const auto count = 1 + below(static_cast<int>(offered_.size()));
  document.increment.insert(document.increment.end(), offered_.begin(), offered_.begin() + count);
}

/// The whole text with the cursor somewhere else: a new anchor with an empty increment. Old text is
/// let go at the end.
void EditScript::jump(Document& document) {
  std::vector<TokenId> text = std::move(document.before);
  text.insert(text.end(), document.increment.begin(), document.increment.end());
  text.insert(text.end(), document.after.begin(), document.after.end());
  text.resize(std::min(text.size(), static_cast<std::size_t>(limits_.window_tokens) * 3 / 4));
  const auto cut = text.begin() + below(static_cast<int>(text.size()) + 1);
  document.before.assign(text.begin(), cut);
  document.after.assign(cut, text.end());
  document.increment.clear();
}

void EditScript::edit(std::vector<TokenId>& text) {
  if (text.empty()) return;
  const int at = below(static_cast<int>(text.size()));
  switch (below(3)) {
    case 0:
      text[static_cast<std::size_t>(at)] = random_token();
      break;
    case 1:
      text.insert(text.begin() + at, random_token());
      break;
    default:
      text.erase(text.begin() + at);
  }
}

}  // namespace efimd::test
