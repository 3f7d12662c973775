#include "tests/bench/completion/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/utf8.h"
#include "daemon/prompt/planner.h"

namespace efimd::bench {

namespace {

using engine::Fragment;

/// For the line that makes a user's text its own.
constexpr int kHeadingTokens = 16;

std::size_t bytes_of(std::span<const engine::TokenId> tokens, const engine::Tokenizer& tokenizer) {
  std::size_t bytes = 0;
  for (const engine::TokenId token : tokens) bytes += tokenizer.bytes(token).size();
  return bytes;
}

/// The start of the first line at or after `byte`; the text's end when there is none.
std::size_t next_line(std::string_view text, std::size_t byte) {
  const std::size_t end = text.find('\n', byte);
  return end == std::string_view::npos ? text.size() : end + 1;
}

/// `count` pieces from the front of `text`, whole lines each.
std::vector<std::string> pieces(std::string_view& text, int count) {
  std::vector<std::string> found;
  for (int i = 0; i < count && !text.empty(); ++i) {
    const std::size_t size = next_line(text, std::min(kRoundTypedBytes, text.size()));
    found.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return found;
}

/// A user's text from `source`: before, hole, after.
Result<RoundsUser> user_from(std::string_view source, int number, int rounds,
                             const RoundsWindow& window, const engine::Tokenizer& tokenizer) {
  RoundsUser user;
  user.uri = fmt::format("file:///bench/user-{}.cpp", number);
  const auto first = [&](std::string_view text, int count) {
    const auto most = static_cast<std::size_t>(std::max(count, 0));
    const auto tokens =
        tokenizer.encode(text.substr(0, utf8::floor(text, most * 16)), Fragment::kInside);
    const std::size_t bytes =
        bytes_of(std::span(tokens).first(std::min(most, tokens.size())), tokenizer);
    // Whole lines, that no token is cut.
    return text.substr(0, text.rfind('\n', bytes) + 1);
  };
  const std::string heading = fmt::format("// {}\n", number);
  const std::string_view before = first(source, window.before);
  source.remove_prefix(before.size());
  user.typed = pieces(source, rounds - 1);
  const std::string_view after = first(source, window.after);
  if (before.empty() || after.empty() || std::ssize(user.typed) < rounds - 1)
    return fail(Fault::kBadInput, "the files hold too little text for such prompts",
                "name more files, or ask for fewer --prompt-tokens");
  user.text = heading + std::string(before) + "\n" + std::string(after);
  user.cursor = heading.size() + before.size();
  return user;
}

}  // namespace

RoundsWindow RoundsWindow::of(int prompt_tokens, int rounds, int window_tokens) {
  // The windows' share for after is the smaller one: prompts that have half of their text there
  // want budgets of 16/6 of theirs (prompt::Windows).
  RoundsWindow window;
  window.prompt_tokens_max = std::min(prompt_tokens * 3, window_tokens - kRoundTokens);
  const auto windows = prompt::Windows::of(window.prompt_tokens_max, 0);
  window.after = std::min(prompt_tokens / 2, windows.after_max);
  const int typed = (rounds - 1) * kRoundTypedTokens + kHeadingTokens;
  window.before =
      std::max(0, std::min(prompt_tokens - prompt_tokens / 2, windows.before_max - typed));
  return window;
}

Result<std::vector<RoundsUser>> rounds_users(const std::vector<std::string>& sources, int users,
                                             int rounds, const RoundsWindow& window,
                                             const engine::Tokenizer& tokenizer) {
  std::vector<RoundsUser> made;
  for (int number = 0; number < users; ++number) {
    std::string text;
    for (std::size_t i = 0; i < sources.size(); ++i)
      text += sources[(static_cast<std::size_t>(number) + i) % sources.size()] + "\n";
    auto user = user_from(text, number, rounds, window, tokenizer);
    if (!user) return tl::unexpected(user.error());
    made.push_back(std::move(*user));
  }
  return made;
}

Rounds::Rounds(Baseline& baseline, const std::vector<RoundsUser>& users)
    : baseline_(baseline), users_(users) {
  for (const RoundsUser& user : users) desks_.push_back({text::Document(user.text), user.cursor});
}

Result<void> Rounds::run() {
  if (round_ > 0) type();
  ++round_;
  const auto begin = Clock::now();
  for (std::size_t user = 0; user < users_.size(); ++user)
    if (auto answered = ask(user, begin); !answered) return answered;
  result_.wall_s += std::chrono::duration<double>(Clock::now() - begin).count();
  return {};
}

void Rounds::type() {
  for (std::size_t user = 0; user < users_.size(); ++user) {
    Desk& desk = desks_[user];
    const std::string& typed = users_[user].typed.at(round_ - 1);
    if (desk.document.replace(desk.cursor, desk.cursor, typed)) desk.cursor += typed.size();
  }
}

Result<void> Rounds::ask(std::size_t user, Clock::time_point arrived) {
  completion::Request request;
  request.document = {user + 1, users_[user].uri};
  request.snapshot = desks_[user].document.snapshot();
  request.cursor = desks_[user].cursor;
  request.options.tokens_max = kRoundTokens;
  request.arrived = arrived;
  const auto receipt = baseline_.ask(request);
  if (!receipt) return tl::unexpected(receipt.error());
  count(*receipt);
  return {};
}

void Rounds::count(const completion::Receipt& receipt) {
  result_.prompt.add(receipt.prompt_tokens);
  result_.evaluated.add(receipt.evaluated_tokens);
  result_.reused.add(receipt.reused_tokens);
  result_.generated.add(receipt.generated_tokens);
  result_.first.add(first_ms(receipt));
  result_.latency.add(receipt.total_ms);
}

}  // namespace efimd::bench
