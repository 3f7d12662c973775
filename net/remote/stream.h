#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace efimd::remote {

/// A completion to ask a server for.
struct Wish {
  std::string prompt;  ///< unless there are tokens
  std::vector<std::int32_t> tokens;
  std::string model;  ///< empty: not said
  int tokens_max = 64;
  double temperature = 0;
  double top_p = 1;
  int top_k = 0;
  std::uint64_t seed = 0;
  bool with_chances = true;  ///< asks for the tokens' probabilities
  int slot = -1;             ///< of a llama-server; -1: it chooses
};

/// The body of a POST to /v1/completions, which streams.
std::string request_body(const Wish& wish);

/// What the server says of the work. Unset: it does not say.
struct Usage {
  std::optional<int> prompt_tokens;
  std::optional<int> cached_tokens;  ///< of these, those whose KV was there
};

/// One or more tokens of a completion as the server wrote them.
struct Piece {
  std::string text;
  /// Of its tokens, at most one for each byte; empty: not told.
  std::vector<double> chances;
  Usage usage;  ///< as far as it was told by then
};

/// Reads the answer to request_body(), as server-sent events or as one JSON object, in whatever
/// pieces it comes.
///
/// Never throws. Limits: kLineBytesMax of an event, kTextBytesMax in all.
class StreamReader {
 public:
  static constexpr std::size_t kLineBytesMax = std::size_t{1} << 20;
  static constexpr std::size_t kTextBytesMax = std::size_t{4} << 20;

  /// What the bytes complete. kBadInput, from then on always, if they are no answer.
  Result<std::vector<Piece>> feed(std::string_view bytes);
  /// Once no more will come; kBadInput if the answer has no end.
  Result<std::vector<Piece>> finish();

  bool has_ended() const { return ended_; }
  bool has_failed() const { return failure_.has_value(); }
  /// Whether it ended because of the number of tokens.
  bool was_cut() const { return cut_; }
  const Usage& usage() const { return usage_; }

 private:
  Result<void> take_line(std::string_view line, std::vector<Piece>& pieces);
  Result<void> take_object(std::string_view text, std::vector<Piece>& pieces);
  tl::unexpected<Error> nonsense(const char* what);

  std::string line_;
  std::string whole_;  ///< of an answer that is one object
  std::size_t text_bytes_ = 0;
  bool begun_ = false, is_events_ = true, ended_ = false, cut_ = false;
  std::optional<Error> failure_;
  Usage usage_;
};

/// The first model's name in an answer of /v1/models; empty if there is none.
std::string first_model(std::string_view body);
/// The ids in an answer of /tokenize; nullopt if it has none.
std::optional<std::vector<std::int32_t>> token_ids(std::string_view body);
/// The message in a server's answer of failure, for people; at most 200 bytes of it.
std::string failure_text(std::string_view body);

/// The address of an endpoint of the server that `url` names: its /v1/completions, /v1 or root.
std::string endpoint(std::string url, std::string_view path);

}  // namespace efimd::remote
