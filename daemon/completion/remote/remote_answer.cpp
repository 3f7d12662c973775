#include "daemon/completion/remote/remote_answer.h"

#include <algorithm>
#include <utility>

#include "daemon/completion/answer/partial.h"
#include "daemon/completion/fit/fit_lines.h"
#include "daemon/completion/fit/stop_rules.h"

namespace efimd::completion {

namespace {

using Clock = RemoteEngine::Clock;

/// Words, numbers, blanks and letters of other scripts: vocabularies that read it alike are one.
constexpr std::string_view kSample =
    "static int64_t count_naïve(const char* s) {\n\tfor (size_t i = 0; i < 4096; ++i)\n"
    "        if (s[i] == '\\0') return 0x1F + i; // Größe, größer\n}\n\ndef f(self, *, x=3.14):\n"
    "    return [y**2 for y in range(x)]\n";

double ms_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

/// Takes text until a rule ends it.
class Taking {
 public:
  explicit Taking(Turn& turn)
      : options_(turn.request().options),
        heard_(partial_teller(turn)),
        rules_(options_.stop, stop_place(turn.context())),
        deadline_(Clock::time_point::max()) {}

  bool take(const RemotePiece& piece) {
    const auto now = Clock::now();
    if (!result_.first_token) {
      result_.first_token = now;
      deadline_ = now + std::chrono::milliseconds(options_.time_max_ms);
    }
    usage_ = piece.usage;
    double chance = 1;
    for (const double each : piece.chances) chance *= each;
    result_.chances.push_back({chance, rules_.text().size()});
    result_.new_tokens += std::max(1, static_cast<int>(piece.chances.size()));
    result_.confidence *= chance;
    if (rules_.feed(piece.text))
      end_ = End::kRule;
    else if (result_.confidence < least_confidence(options_))
      end_ = End::kUnsure;
    else if (now >= deadline_)
      end_ = End::kTime;
    else if (heard_)
      heard_(rules_, result_);
    return !end_;
  }

  bool has_text() const { return result_.first_token.has_value(); }
  void set_usage(const RemoteUsage& usage) {
    if (usage.prompt_tokens) usage_ = usage;
  }
  const RemoteUsage& usage() const { return usage_; }

  /// As Generation::finish().
  Generated finish(End otherwise) {
    Generated generated = std::move(result_);
    generated.end = end_.value_or(otherwise);
    generated.all_text = rules_.text();
    generated.text = rules_.finish();
    if (generated.text.empty() && is_blank(rules_.text())) generated.text = rules_.text();
    generated.blank_line =
        is_blank(generated.text) && (generated.end == End::kRule || !is_blank(rules_.text()));
    return generated;
  }

 private:
  const Options& options_;
  const TokenHeard heard_;
  StopRules rules_;
  Clock::time_point deadline_;
  Generated result_;
  std::optional<End> end_;
  RemoteUsage usage_;
};

}  // namespace

RemoteAnswer::RemoteAnswer(const engine::Tokenizer& tokenizer, RemoteSettings settings)
    : tokenizer_(tokenizer),
      settings_(std::move(settings)),
      windows_(prompt::Windows::of(settings_.window_tokens, settings_.window_tokens)) {
  state_.is_set = true;
}

void RemoteAnswer::close(const DocumentKey& document) {
  std::erase_if(known_, [&](const Known& known) { return known.key == document; });
}

RemoteAnswer::Known& RemoteAnswer::use(const DocumentKey& document) {
  auto found = std::ranges::find(known_, document, &Known::key);
  if (found == known_.end()) {
    if (known_.size() >= kDocumentsMax) known_.pop_back();
    known_.push_front({document, prompt::Spine(tokenizer_), {}});
  } else {
    known_.splice(known_.begin(), known_, found);
  }
  return known_.front();
}

prompt::Plan RemoteAnswer::plan(const Turn& turn) {
  Known& known = use(turn.request().document);
  const text::Snapshot& snapshot = turn.snapshot();
  auto& anchors = known.anchors;
  for (prompt::Anchor& anchor : anchors) prompt::follow(anchor, snapshot, tokenizer_);
  for (auto anchor = anchors.begin(); anchor != anchors.end(); ++anchor) {
    if (anchor->state != prompt::Anchor::State::kGood) continue;
    auto plan = prompt::continued(*anchor, snapshot, turn.cursor, tokenizer_, windows_);
    if (!plan) continue;
    *anchor = plan->anchor;
    std::rotate(anchors.begin(), anchor, anchor + 1);
    return std::move(*plan);
  }
  prompt::Plan plan = prompt::anchored(prompt::View::kFull, snapshot, turn.cursor, known.spine,
                                       tokenizer_, windows_);
  if (anchors.size() >= kAnchorsMax) anchors.pop_back();
  anchors.insert(anchors.begin(), plan.anchor);
  return plan;
}

bool RemoteAnswer::look(const Turn& turn) {
  if (looked_) return true;
  const auto seen = settings_.engine->look(kSample, turn.job.stop.get_token());
  if (!seen) {
    if (seen.error().fault != Fault::kStopped) failed(seen.error());
    return false;
  }
  const bool fills_in = prompt::can_fill_in(tokenizer_).has_value();
  ids_ = fills_in && seen->tokens == tokenizer_.encode(kSample, engine::Fragment::kInside);
  form_ = prompt_form(seen->model, settings_.frame);
  state_.model = seen->model;
  state_.token_ids = ids_;
  if (!ids_ && !form_) {
    failed({Fault::kUnsupported, "the model " + seen->model + " is not known to fill in text",
            "set engine.prefix, engine.suffix and engine.middle"});
    return false;
  }
  return looked_ = true;
}

std::optional<RemoteWish> RemoteAnswer::wish_for(const Turn& turn, const prompt::Plan& plan) const {
  RemoteWish wish;
  wish.options = turn.request().options;
  if (ids_) {
    wish.tokens = plan.tokens;
    return wish;
  }
  const std::string_view text = turn.snapshot().bytes();
  const prompt::Anchor& anchor = plan.anchor;
  const auto part = [text](std::size_t begin, std::size_t end) {
    return text.substr(begin, end - begin);
  };
  wish.prompt = framed(*form_, part(anchor.window_begin, anchor.cut),
                       part(anchor.resume, anchor.window_end), part(anchor.cut, plan.cursor));
  return wish.prompt.empty() ? std::nullopt : std::optional(std::move(wish));
}

std::optional<Or<Generated>> RemoteAnswer::ask(Turn& turn) {
  const Request& request = turn.request();
  if (!request.may_leave || request.selected) return std::nullopt;
  if (!look(turn)) {
    if (turn.job.stop.stop_requested()) return superseded();
    return std::nullopt;
  }
  const prompt::Plan plan = this->plan(turn);
  const auto wish = wish_for(turn, plan);
  if (!wish) return std::nullopt;
  Taking taking(turn);
  const auto ended = settings_.engine->ask(
      *wish, [&taking](const RemotePiece& piece) { return taking.take(piece); },
      turn.job.stop.get_token());
  if (!ended && ended.error().fault == Fault::kStopped) return superseded();
  if (!ended && !taking.has_text()) {
    failed(ended.error());
    return std::nullopt;
  }
  state_.up = true;
  state_.trouble.clear();
  ++state_.answers;
  if (ended) taking.set_usage(ended->usage);
  const RemoteUsage& usage = taking.usage();
  Receipt& receipt = turn.receipt;
  receipt.source = source::kElsewhere.name;
  receipt.prompt_tokens = usage.prompt_tokens.value_or(static_cast<int>(plan.tokens.size()));
  receipt.reused_tokens = std::clamp(usage.cached_tokens.value_or(0), 0, receipt.prompt_tokens);
  receipt.evaluated_tokens = receipt.prompt_tokens - receipt.reused_tokens;
  receipt.view = prompt::view_name(plan.anchor.view);
  receipt.shown = plan.shown;
  const End otherwise = !ended ? End::kTime : ended->cut ? End::kTokens : End::kModel;
  Generated generated = taking.finish(otherwise);
  receipt.generated_tokens = generated.new_tokens;
  if (generated.first_token)
    receipt.first_token_ms = ms_between(request.arrived, *generated.first_token);
  // A server that ended at once has answered, too.
  if (!generated.first_token) generated.first_token = Clock::now();
  if (!request.by_hand)
    remember(turn.document, {.snapshot = request.snapshot,
                             .begin = plan.cursor,
                             .replace_end = plan.cursor,
                             .lead = {},
                             .options = request.options,
                             .generated = generated,
                             .prompt = {},
                             .sequence = std::nullopt});
  return generated;
}

void RemoteAnswer::failed(const Error& error) {
  state_.up = false;
  looked_ = false;  // another server may stand there when it comes back
  state_.trouble = error.message();
  ++state_.failures;
}

}  // namespace efimd::completion
