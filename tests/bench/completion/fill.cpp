#include "tests/bench/completion/fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/completion/generate/generate.h"
#include "daemon/completion/generate/healing.h"
#include "daemon/prompt/planner.h"
#include "lsp/json_rpc.h"
#include "tests/bench/completion/samples.h"

namespace efimd::bench {

using engine::TokenId;
using lsp::Json;
using Clock = std::chrono::steady_clock;

namespace {

/// A machine that takes longer for one cursor than this is not measured, it is waited for.
constexpr int kGenerationMsMax = 600'000;

tl::unexpected<Error> bad(std::size_t line, std::string_view what) {
  return fail(Fault::kBadInput, fmt::format("line {} of the cursors: {}", line, what));
}

Result<FillCursor> parse_cursor(std::string_view text, std::size_t line) {
  const Result<Json> json = lsp::parse_json(text);
  if (!json) return bad(line, json.error().message());
  if (!json->is_object()) return bad(line, "not a JSON object");
  FillCursor cursor;
  const auto take = [&](const char* name, bool needed, std::string& out) {
    const auto found = json->find(name);
    if (found == json->end()) return !needed;
    if (!found->is_string()) return false;
    out = found->get<std::string>();
    return true;
  };
  if (!take("before", true, cursor.before)) return bad(line, "\"before\" must be a string");
  if (!take("increment", false, cursor.increment))
    return bad(line, "\"increment\" must be a string");
  if (!take("after", true, cursor.after)) return bad(line, "\"after\" must be a string");
  if (!take("path", false, cursor.file.path)) return bad(line, "\"path\" must be a string");
  if (!take("repository", false, cursor.file.repository))
    return bad(line, "\"repository\" must be a string");
  return cursor;
}

}  // namespace

Result<std::vector<FillCursor>> parse_fill_cursors(std::string_view jsonl) {
  std::vector<FillCursor> cursors;
  for (std::size_t line = 1; !jsonl.empty(); ++line) {
    const std::string_view text = jsonl.substr(0, jsonl.find('\n'));
    jsonl.remove_prefix(std::min(text.size() + 1, jsonl.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (cursors.size() == kFillCursorsMax)
      return bad(line, fmt::format("more than {} cursors", kFillCursorsMax));
    auto cursor = parse_cursor(text, line);
    if (!cursor) return tl::unexpected(cursor.error());
    cursors.push_back(std::move(*cursor));
  }
  return cursors;
}

/// A prompt, and how much of its end was typed.
struct Filler::Prompt {
  std::vector<TokenId> tokens;
  int typed = 0;
  int dropped = 0;
};

Filler::Filler(std::unique_ptr<engine::Engine> engine)
    : engine_(std::move(engine)),
      sequence_(engine_->open_sequence()),
      order_(engine_->tokenizer()) {}

Result<Filler> Filler::open(std::unique_ptr<engine::Engine> engine) {
  const engine::FimTokens& fim = engine->tokenizer().fim();
  if (fim.order != engine::FimOrder::kPsm)
    return fail(Fault::kUnsupported,
                "the model does not fill in the middle with the prefix first: " + fim.reason,
                "[model.fim] in config.toml overrides this");
  return Filler(std::move(engine));
}

Result<Filler::Prompt> Filler::prompt(const FillCursor& cursor, const FillOptions& options) const {
  const engine::Tokenizer& tokenizer = engine_->tokenizer();
  const bool efim = options.form != FillForm::kPsm;
  const auto encode = [&](const std::string& text) {
    return tokenizer.encode(text, engine::Fragment::kInside);
  };
  prompt::Anchor anchor;
  anchor.path = prompt::path_head(cursor.file, tokenizer);
  anchor.before = encode(efim ? cursor.before : cursor.before + cursor.increment);
  anchor.after = encode(cursor.after);
  if (efim)
    for (const TokenId token : encode(cursor.increment)) anchor.increment.push_back({token});
  const std::size_t frame = tokenizer.bos() == engine::kNoToken ? 3 : 4;
  const auto window = static_cast<std::size_t>(engine_->window_tokens());
  const std::size_t fixed = frame + anchor.path.size() + anchor.after.size() +
                            anchor.increment.size() + static_cast<std::size_t>(options.tokens_max);
  if (fixed >= window)
    return fail(Fault::kWindowFull,
                fmt::format("the text after the cursor, what was typed and what is wanted are "
                            "{} tokens; the model's "
                            "window has {}",
                            fixed, window),
                "shorten \"after\"");
  Prompt made;
  if (anchor.before.size() > window - fixed) {
    made.dropped = static_cast<int>(anchor.before.size() - (window - fixed));
    anchor.before.erase(anchor.before.begin(), anchor.before.begin() + made.dropped);
  }
  made.tokens = prompt::prompt_tokens(anchor, tokenizer);
  if (options.form == FillForm::kHealed)
    made.typed = std::min(static_cast<int>(anchor.increment.size()), completion::kHealedTokensMax);
  return made;
}

Result<Filled> Filler::fill(const FillCursor& cursor, const FillOptions& options) {
  const auto prompt = this->prompt(cursor, options);
  if (!prompt) return tl::unexpected(prompt.error());
  const auto begin = Clock::now();
  if (auto held = engine_->prefill(sequence_, prompt->tokens, {.logits_rows = prompt->typed + 1});
      !held)
    return tl::unexpected(held.error());
  Filled filled;
  filled.prompt_ms = ms_since(begin);
  filled.prompt_tokens = static_cast<int>(prompt->tokens.size());
  filled.dropped_tokens = prompt->dropped;
  completion::Options generation;
  generation.tokens_max = options.tokens_max;
  generation.time_max_ms = kGenerationMsMax;
  generation.confidence = 0;
  completion::GenerationSetting setting{*engine_, sequence_, {}};
  if (prompt->typed > 0) setting.typed.emplace(completion::TypedEnd{order_, prompt->typed});
  completion::StopRules rules(options.stop, {});
  const auto began = Clock::now();
  auto generated = completion::generate(setting, generation, rules);
  if (!generated) return tl::unexpected(generated.error());
  filled.generation_ms = ms_since(began);
  filled.text = std::move(generated->text);
  filled.generated_tokens = generated->new_tokens;
  return filled;
}

}  // namespace efimd::bench
