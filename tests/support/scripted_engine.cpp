#include "tests/support/scripted_engine.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "base/utf8.h"

namespace efimd::test {

using engine::SequenceId;
using engine::TokenId;

namespace {

constexpr auto kPieces = std::to_array<std::string_view>(
    {"  ",       "    ",     "        ", "\t\t",    "\t\t\t", " =",      " = ",      " ==",
     " !=",      " <",       " >",       " <=",     " >=",    " +",      " -",       " *",
     " /",       " &&",      " ||",      " &",      " |",     " {",      " }",       " (",
     ", ",       "; ",       ": ",       "()",      "();",    ");",      "))",       "[]",
     "{}",       "({",       "})",       "->",      "::",     "==",      "!=",       "<=",
     ">=",       "++",       "--",       "+=",      "-=",     "&&",      "||",       "<<",
     ">>",       "//",       "// ",      "/*",      "*/",     "# ",      "\"\"\"",   "');",
     "\");",     ";\n",      "{\n",      "}\n",     " {\n",   ":\n",     ");\n",     "):\n",
     ",\n",      "return",   "return ",  " return", "int",    "int ",    " int",     "for",
     "for ",     " for",     "the",      " the",    "if",     "if ",     " if",      "else",
     " else",    "while",    "do",       "switch",  "case",   "break",   "continue", "const",
     "const ",   "static",   "void",     "void ",   "char",   "bool",    "auto",     "auto ",
     "float",    "double",   "long",     "size",    "std",    "std::",   "string",   "vector",
     "map",      "class",    "class ",   "struct",  "public", "private", "this",     "true",
     "false",    "null",     "nullptr",  "def",     "def ",   "self",    "self.",    "import",
     "import ",  "from",     "from ",    "as ",     "in ",    " in ",    "not ",     "and",
     "or",       "None",     "True",     "False",   "print",  "len",     "range",    "func",
     "func ",    "package",  "var",      "let",     "let ",   "new",     "type",     "err",
     " err",     " := ",     "nil",      "fn",      "fn ",    "pub",     "use",      "impl",
     "match",    "function", "async",    "await",   "export", "default", "name",     "value",
     "index",    "count",    "data",     "list",    "item",   "result",  "error",    "get",
     "set",      "add",      "sum",      "max",     "min",    "tion",    "ing",      "er",
     "re",       "st",       "on",       "at",      "en",     "al",      "it",       "is",
     "#include", "#define",  "include",  "main",    "argc",   "argv",    "template", "typename",
     "namespace"});

}  // namespace

ScriptedTokenizer::ScriptedTokenizer(Shape shape) {
  for (int byte = 0; byte < 256; ++byte) pieces_.emplace_back(1, static_cast<char>(byte));
  for (const std::string_view piece : kPieces) {
    pieces_.emplace_back(piece);
    piece_bytes_max_ = std::max(piece_bytes_max_, piece.size());
    seams_.join(piece);
  }
  const auto control = [&] {
    pieces_.emplace_back();
    return static_cast<TokenId>(pieces_.size() - 1);
  };
  fim_ = {shape.order,      control(),        control(),  control(),
          shape.repository, engine::kNoToken, "scripted", shape.files};
  end_ = control();
  const TokenId bos = control();
  if (shape.wants_bos) bos_ = bos;
  for (std::size_t id = 0; id < pieces_.size(); ++id)
    if (!pieces_[id].empty()) ids_.emplace(pieces_[id], static_cast<TokenId>(id));
}

TokenId ScriptedTokenizer::longest_match(std::string_view text) const {
  for (std::size_t size = std::min(piece_bytes_max_, text.size()); size > 1; --size)
    if (const auto found = ids_.find(text.substr(0, size)); found != ids_.end())
      return found->second;
  return static_cast<unsigned char>(text.front());
}

std::vector<TokenId> ScriptedTokenizer::encode(std::string_view text, engine::Fragment) const {
  const std::string clean = utf8::sanitized(text);
  std::vector<TokenId> tokens;
  for (std::string_view rest = clean; !rest.empty();) {
    tokens.push_back(longest_match(rest));
    rest.remove_prefix(bytes(tokens.back()).size());
  }
  return tokens;
}

std::string_view ScriptedTokenizer::bytes(TokenId token) const {
  if (token < 0 || token >= size()) return {};
  return pieces_[static_cast<std::size_t>(token)];
}

std::size_t ScriptedTokenizer::line_cut(std::string_view text) const {
  const std::size_t newline = text.rfind('\n');
  return newline == std::string_view::npos ? 0 : newline + 1;
}

int ScriptedTokenizer::size() const { return static_cast<int>(pieces_.size()); }
bool ScriptedTokenizer::is_control(TokenId token) const { return bytes(token).empty(); }
bool ScriptedTokenizer::ends_generation(TokenId token) const {
  return token == end_ || token == fim_.prefix || token == fim_.suffix || token == fim_.middle;
}
TokenId ScriptedTokenizer::bos() const { return bos_; }

void Gate::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void Gate::open() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    passes_ = 0;
  }
  changed_.notify_all();
}

void Gate::step() {
  {
    const std::lock_guard lock(mutex_);
    assert(waiting_);
    waiting_ = false;
    ++passes_;
  }
  changed_.notify_all();
}

void Gate::wait_until_reached() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_; });
}

void Gate::pass() {
  std::unique_lock lock(mutex_);
  if (!closed_) return;
  waiting_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !closed_ || passes_ > 0; });
  waiting_ = false;
  if (passes_ > 0) --passes_;
}

ScriptedEngine::ScriptedEngine(std::shared_ptr<EngineScript> script)
    : script_(std::move(script)), tokenizer_(script_->tokenizer) {}

SequenceId ScriptedEngine::open_sequence() {
  const SequenceId id{next_id_++};
  sequences_[id];
  ++script_->sequences_open;
  return id;
}

void ScriptedEngine::close_sequence(SequenceId sequence) {
  if (sequences_.erase(sequence) > 0) --script_->sequences_open;
}

Result<SequenceId> ScriptedEngine::fork(SequenceId sequence) {
  if (!fits(SequenceId{}, sequences_.at(sequence).held.size()))
    return fail(Fault::kWindowFull, "no KV page is free");
  const SequenceId copy = open_sequence();
  sequences_.at(copy) = sequences_.at(sequence);
  return copy;
}

ScriptedEngine::PageKey ScriptedEngine::page_key(int page_before, std::span<const TokenId> tokens) {
  PageKey key{page_before, {}};
  std::ranges::copy(tokens, key.second.begin());
  return key;
}

std::size_t ScriptedEngine::in_pages(std::span<const TokenId> tokens, std::size_t behind) const {
  std::size_t found = behind;
  int page = 0;
  for (std::size_t end = engine::kPageTokens; end <= tokens.size(); end += engine::kPageTokens) {
    const auto known =
        pages_.find(page_key(page, tokens.subspan(end - engine::kPageTokens, engine::kPageTokens)));
    if (known == pages_.end()) break;
    page = known->second;
    found = std::max(found, end);
  }
  return found;
}

std::size_t ScriptedEngine::reusable(const Sequence& sequence, std::span<const TokenId> tokens,
                                     std::size_t logits_begin) const {
  const auto own =
      static_cast<std::size_t>(std::ranges::mismatch(sequence.held, tokens).in2 - tokens.begin());
  const std::size_t logits_end =
      sequence.logits && sequence.logits_begin <= logits_begin ? own : logits_begin;
  return std::min(in_pages(tokens, own), std::max(logits_begin, logits_end));
}

int ScriptedEngine::resident(std::span<const TokenId> tokens) const {
  return static_cast<int>(in_pages(tokens, 0));
}

Result<int> ScriptedEngine::rewind(SequenceId id, std::span<const TokenId> tokens) {
  if (script_->hold_error) return tl::unexpected(*script_->hold_error);
  Sequence& sequence = sequences_.at(id);
  const std::size_t kept = reusable(sequence, tokens, tokens.size());
  if (kept < sequence.held.size() || kept > sequence.held.size()) sequence.logits = false;
  sequence.held.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(kept));
  return static_cast<int>(kept);
}

bool ScriptedEngine::fits(SequenceId sequence, std::size_t tokens) const {
  const auto pages = [](std::size_t count) {
    return (count + engine::kPageTokens - 1) / engine::kPageTokens;
  };
  std::size_t used = pages(tokens);
  for (const auto& [id, other] : sequences_)
    if (id != sequence) used += pages(other.held.size());
  return used <= static_cast<std::size_t>(script_->page_count);
}

Result<engine::PromptCost> ScriptedEngine::prefill(SequenceId id, std::span<const TokenId> tokens,
                                                   engine::PrefillOptions options) {
  ++script_->holds;
  if (script_->hold_error) return tl::unexpected(*script_->hold_error);
  if (tokens.empty()) return fail(Fault::kBadInput, "hold: no tokens");
  if (tokens.size() > static_cast<std::size_t>(window_tokens()))
    return fail(Fault::kWindowFull, "the prompt is longer than the window");
  Sequence& sequence = sequences_.at(id);
  if (!fits(id, tokens.size())) return fail(Fault::kWindowFull, "no KV page is free");
  const std::size_t logits_begin =
      tokens.size() - std::min(tokens.size(), static_cast<std::size_t>(options.logits_rows));
  const std::size_t reused = reusable(sequence, tokens, logits_begin);
  const bool rows_stay = sequence.logits && sequence.logits_begin <= logits_begin;
  sequence.held.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(reused));
  if (!rows_stay) sequence.logits = false;
  if (auto done = evaluate(sequence, tokens, options.stop); !done)
    return tl::unexpected(done.error());
  spell_from(sequence);
  if (!rows_stay) sequence.logits_begin = logits_begin;
  sequence.logits = true;
  return engine::PromptCost{static_cast<int>(reused), static_cast<int>(tokens.size() - reused)};
}

Result<void> ScriptedEngine::evaluate(Sequence& sequence, std::span<const TokenId> tokens,
                                      const std::stop_token& stop) {
  while (sequence.held.size() < tokens.size()) {
    script_->hold_gate.pass();
    if (stop.stop_requested()) return fail(Fault::kStopped, "stopped");
    const std::size_t at = sequence.held.size();
    const auto step = tokens.subspan(
        at, std::min(tokens.size() - at, static_cast<std::size_t>(script_->step_tokens)));
    sequence.held.insert(sequence.held.end(), step.begin(), step.end());
    script_->evaluated += static_cast<int>(step.size());
    ++script_->steps;
    remember_pages(sequence);
  }
  return {};
}

void ScriptedEngine::remember_pages(const Sequence& sequence) {
  const std::span<const TokenId> held = sequence.held;
  int page = 0;
  for (std::size_t end = engine::kPageTokens; end <= held.size(); end += engine::kPageTokens) {
    const auto tokens = held.subspan(end - engine::kPageTokens, engine::kPageTokens);
    const int next = static_cast<int>(pages_.size()) + 1;
    page = pages_.try_emplace(page_key(page, tokens), next).first->second;
  }
}

void ScriptedEngine::spell_from(Sequence& sequence) {
  const ScriptedPrompt prompt = split(sequence.held);
  sequence.spelled = 0;
  if (script_->token_continuation) {
    sequence.script = script_->token_continuation(prompt);
  } else {
    sequence.script = tokenizer_.encode(script_->continuation(prompt));
    sequence.script.push_back(tokenizer_.end());
  }
}

ScriptedPrompt ScriptedEngine::split(std::span<const TokenId> tokens) const {
  ScriptedPrompt prompt;
  prompt.tokens.assign(tokens.begin(), tokens.end());
  std::string* part = &prompt.head;
  for (const TokenId token : tokens) {
    const engine::FimTokens& fim = tokenizer_.fim();
    if (token == fim.prefix) part = &prompt.before;
    if (token == fim.suffix) part = &prompt.after;
    if (token == fim.middle) part = &prompt.increment;
    *part += tokenizer_.bytes(token);
  }
  return prompt;
}

Result<void> ScriptedEngine::step(std::span<const engine::BatchItem> items, std::stop_token stop) {
  ++script_->appends;
  script_->append_gate.pass();
  if (stop.stop_requested()) return fail(Fault::kStopped, "stopped");
  if (script_->append_error) return tl::unexpected(*script_->append_error);
  for (const engine::BatchItem& item : items) {
    const std::size_t after = sequences_.at(item.sequence).held.size() + item.tokens.size();
    if (after > static_cast<std::size_t>(window_tokens()) || !fits(item.sequence, after))
      return fail(Fault::kWindowFull, "no KV page is free");
  }
  for (const engine::BatchItem& item : items) {
    Sequence& sequence = sequences_.at(item.sequence);
    for (const TokenId token : item.tokens) extend(sequence, token);
    remember_pages(sequence);
    if (!sequence.logits)
      sequence.logits_begin = sequence.held.size() - static_cast<std::size_t>(item.logits_rows);
    sequence.logits = item.logits_rows > 0;
  }
  return {};
}

void ScriptedEngine::extend(Sequence& sequence, TokenId token) {
  sequence.held.push_back(token);
  ++script_->evaluated;
  const bool on_script =
      sequence.spelled < sequence.script.size() && sequence.script[sequence.spelled] == token;
  if (!on_script && sequence.spelled == 0) return take_alternative(sequence, token);
  sequence.spelled = on_script ? sequence.spelled + 1 : sequence.script.size();
}

void ScriptedEngine::take_alternative(Sequence& sequence, TokenId first) const {
  sequence.spelled = sequence.script.size();
  for (const std::string& alternative : script_->alternatives) {
    std::vector<TokenId> tokens = tokenizer_.encode(alternative);
    if (tokens.empty() || tokens[0] != first) continue;
    tokens.push_back(tokenizer_.end());
    sequence.script = std::move(tokens);
    sequence.spelled = 1;
    return;
  }
}

/// Against a vocabulary whose other logits are 0.
float ScriptedEngine::logit_of_choice(const Sequence& sequence) const {
  constexpr float kCertain = 30.0F;
  if (sequence.spelled >= sequence.script.size()) return kCertain;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < sequence.spelled; ++i)
    begin += tokenizer_.bytes(sequence.script[i]).size();
  const std::size_t end = begin + tokenizer_.bytes(sequence.script[sequence.spelled]).size();
  const auto chance = script_->chances.lower_bound(begin);
  if (chance == script_->chances.end() || chance->first >= end) return kCertain;
  return static_cast<float>(
      std::log(chance->second / (1 - chance->second) * (tokenizer_.size() - 1)));
}

TokenId ScriptedEngine::choice_behind(const Sequence& sequence, std::size_t position) const {
  if (script_->continues_everywhere) {
    const auto next = tokenizer_.encode(
        script_->continuation(split(std::span(sequence.held).first(position + 1))));
    return next.empty() ? tokenizer_.end() : next.front();
  }
  if (position + 1 < sequence.held.size()) return sequence.held[position + 1];
  return sequence.spelled < sequence.script.size() ? sequence.script[sequence.spelled]
                                                   : tokenizer_.end();
}

std::span<const float> ScriptedEngine::logits(SequenceId id, int back) const {
  const Sequence& sequence = sequences_.at(id);
  const auto behind = static_cast<std::size_t>(back) + 1;
  if (!sequence.logits || behind > sequence.held.size() ||
      sequence.held.size() - behind < sequence.logits_begin)
    return {};
  logits_.assign(static_cast<std::size_t>(tokenizer_.size()), 0.0F);
  if (back == 0 && sequence.spelled == 0) {
    float logit = 8.0F;
    for (const std::string& alternative : script_->alternatives)
      logits_[static_cast<std::size_t>(tokenizer_.encode(alternative).at(0))] = logit--;
  }
  logits_[static_cast<std::size_t>(choice_behind(sequence, sequence.held.size() - behind))] =
      back == 0 ? logit_of_choice(sequence) : 10.0F;
  return logits_;
}

std::span<const TokenId> ScriptedEngine::held(SequenceId sequence) const {
  return sequences_.at(sequence).held;
}

bool ScriptedEngine::overwrite_some() {
  if (script_->parts_to_overwrite == 0) return false;
  script_->overwrite_gate.pass();
  return --script_->parts_to_overwrite > 0;
}

bool ScriptedEngine::give_back_some(std::span<const engine::SourceId> /*but*/) {
  script_->give_back_gate.pass();
  return script_->parts_to_give_back > 0 && --script_->parts_to_give_back > 0;
}

engine::KvUsage ScriptedEngine::kv_usage() const {
  std::size_t tokens = 0;
  for (const auto& [id, sequence] : sequences_) tokens += sequence.held.size();
  return {static_cast<std::size_t>(script_->page_count) * engine::kPageTokens, tokens};
}

}  // namespace efimd::test
