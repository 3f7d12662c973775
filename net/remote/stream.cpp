#include "net/remote/stream.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/utf8.h"

namespace efimd::remote {

using Json = nlohmann::json;

namespace {

constexpr std::size_t kFailureBytesMax = 200;
constexpr std::size_t kTokensMax = 4096;

/// A member of an object; null if there is none.
const Json& member(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

std::optional<int> count_in(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const auto count = value.get<std::int64_t>();
  return count >= 0 && count < (std::int64_t{1} << 30) ? std::optional(static_cast<int>(count))
                                                       : std::nullopt;
}

void add_chance(const Json& logarithm, std::vector<double>& chances, std::size_t most) {
  if (logarithm.is_number() && chances.size() < most)
    chances.push_back(std::clamp(std::exp(logarithm.get<double>()), 0.0, 1.0));
}

/// OpenAI's old form has a list of numbers, the newer one a list of objects.
std::vector<double> chances_in(const Json& logprobs, std::size_t most) {
  std::vector<double> chances;
  if (const Json& numbers = member(logprobs, "token_logprobs"); numbers.is_array())
    for (const Json& number : numbers) add_chance(number, chances, most);
  if (const Json& tokens = member(logprobs, "content"); tokens.is_array())
    for (const Json& token : tokens) add_chance(member(token, "logprob"), chances, most);
  return chances;
}

/// vLLM and SGLang tell what was cached; llama-server tells what it evaluated.
void note_usage(const Json& answer, Usage& usage) {
  const Json& said = member(answer, "usage");
  if (const auto tokens = count_in(member(said, "prompt_tokens"))) usage.prompt_tokens = tokens;
  if (const auto cached = count_in(member(member(said, "prompt_tokens_details"), "cached_tokens")))
    usage.cached_tokens = cached;
  const Json& timings = member(answer, "timings");
  const auto evaluated = count_in(member(timings, "prompt_n"));
  if (const auto cached = count_in(member(timings, "cache_n")); evaluated && cached) {
    usage.prompt_tokens = *evaluated + *cached;
    usage.cached_tokens = cached;
  } else if (evaluated && usage.prompt_tokens)
    usage.cached_tokens = std::max(0, *usage.prompt_tokens - *evaluated);
}

Json parsed(std::string_view text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

std::string request_body(const Wish& wish) {
  Json body = {{"max_tokens", wish.tokens_max},
               {"temperature", wish.temperature},
               {"stream", true},
               // With each piece, because a text that is long enough is not waited for: vLLM's word
               // for that, and llama-server's.
               {"stream_options", {{"include_usage", true}, {"continuous_usage_stats", true}}},
               {"timings_per_token", true}};
  if (wish.tokens.empty())
    body["prompt"] = wish.prompt;
  else
    body["prompt"] = wish.tokens;
  if (!wish.model.empty()) body["model"] = wish.model;
  if (wish.with_chances) body["logprobs"] = 1;
  if (wish.slot >= 0) body["id_slot"] = wish.slot;
  if (wish.temperature > 0) {
    body["top_p"] = wish.top_p;
    if (wish.top_k > 0) body["top_k"] = wish.top_k;
    body["seed"] = wish.seed;
  }
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

tl::unexpected<Error> StreamReader::nonsense(const char* what) {
  failure_ = Error{Fault::kBadInput, what, "see whether engine.url is a /v1/completions"};
  return tl::unexpected(*failure_);
}

Result<std::vector<Piece>> StreamReader::feed(std::string_view bytes) {
  std::vector<Piece> pieces;
  if (failure_) return tl::unexpected(*failure_);
  if (!begun_) {
    line_ += bytes;
    if (is_blank(line_)) return pieces;
    begun_ = true;
    is_events_ = line_[line_.find_first_not_of(" \t\r\n")] != '{';
    const std::string first = std::exchange(line_, {});
    return feed(first);
  }
  if (!is_events_) {
    whole_ += bytes;
    if (whole_.size() > kTextBytesMax) return nonsense("its answer is too long");
    return pieces;
  }
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() > kLineBytesMax) return nonsense("it sent a line that is too long");
    if (end == std::string_view::npos) break;
    if (auto done = take_line(line_, pieces); !done) return tl::unexpected(done.error());
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
  return pieces;
}

Result<std::vector<Piece>> StreamReader::finish() {
  std::vector<Piece> pieces;
  if (failure_) return tl::unexpected(*failure_);
  if (!begun_) return nonsense("it sent nothing");
  if (!is_events_) {
    if (auto done = take_object(whole_, pieces); !done) return tl::unexpected(done.error());
    ended_ = true;
  } else if (!line_.empty()) {
    if (auto done = take_line(std::exchange(line_, {}), pieces); !done)
      return tl::unexpected(done.error());
  }
  if (!ended_) return nonsense("its answer was cut off");
  return pieces;
}

Result<void> StreamReader::take_line(std::string_view line, std::vector<Piece>& pieces) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  // Blank lines part events; a colon begins a comment; other fields say nothing here.
  if (line.empty() || line.starts_with(':') || line.starts_with("event:") ||
      line.starts_with("id:") || line.starts_with("retry:"))
    return {};
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData)) return nonsense("its answer is no stream of events");
  line.remove_prefix(kData.size());
  while (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") {
    ended_ = true;
    return {};
  }
  return take_object(line, pieces);
}

Result<void> StreamReader::take_object(std::string_view text, std::vector<Piece>& pieces) {
  const Json answer = parsed(text);
  if (!answer.is_object()) return nonsense("it sent what is no JSON object");
  if (const Json& error = member(answer, "error"); !error.is_null()) {
    failure_ = Error{Fault::kIo, "it says: " + failure_text(text), "see the server's log"};
    return tl::unexpected(*failure_);
  }
  note_usage(answer, usage_);
  const Json& choices = member(answer, "choices");
  if (!choices.is_array()) return nonsense("its answer has no choices");
  if (choices.empty()) return {};  // the usage alone
  const Json& choice = choices.front();
  const Json& said = member(choice, "text");
  if (!said.is_string() && !said.is_null()) return nonsense("its answer's text is no text");
  if (const Json& reason = member(choice, "finish_reason"); reason.is_string()) {
    ended_ = true;
    cut_ = reason.get_ref<const std::string&>() == "length";
  }
  if (said.is_null()) return {};
  const auto& words = said.get_ref<const std::string&>();
  text_bytes_ += words.size();
  if (text_bytes_ > kTextBytesMax) return nonsense("its answer is too long");
  // A token has a byte at least.
  if (!words.empty())
    pieces.push_back({words, chances_in(member(choice, "logprobs"), words.size()), usage_});
  return {};
}

std::string first_model(std::string_view body) {
  const Json answer = parsed(body);
  const Json& models = member(answer, "data");
  if (!models.is_array() || models.empty()) return "";
  const Json& name = member(models.front(), "id");
  return name.is_string() ? name.get<std::string>() : "";
}

std::optional<std::vector<std::int32_t>> token_ids(std::string_view body) {
  const Json answer = parsed(body);
  const Json& tokens = member(answer, "tokens");
  if (!tokens.is_array() || tokens.size() > kTokensMax) return std::nullopt;
  std::vector<std::int32_t> ids;
  for (const Json& token : tokens) {
    const auto id = count_in(token);
    if (!id) return std::nullopt;
    ids.push_back(*id);
  }
  return ids;
}

std::string failure_text(std::string_view body) {
  const Json answer = parsed(body);
  const Json& error = member(answer, "error");
  const Json& message = member(error.is_object() ? error : answer, "message");
  std::string text = message.is_string() ? message.get<std::string>()
                     : error.is_string() ? error.get<std::string>()
                                         : std::string(body);
  text.resize(utf8::floor(text, std::min(text.size(), kFailureBytesMax)));
  return utf8::sanitized(text);
}

std::string endpoint(std::string url, std::string_view path) {
  while (url.ends_with('/')) url.pop_back();
  for (const std::string_view end : {"/completions", "/v1"})
    if (url.ends_with(end)) url.resize(url.size() - end.size());
  return url + std::string(path);
}

}  // namespace efimd::remote
