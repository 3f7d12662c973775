#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lsp/json_rpc.h"
#include "net/http/documents.h"
#include "net/http/fim_split.h"

namespace efimd::http {

/// Whose request it is, which decides on its fields and on the form of the answer.
enum class Form {
  kInfill,   ///< llama-server's /infill
  kLlama,    ///< llama-server's /completion
  kOpenAi,   ///< /v1/completions
  kMistral,  ///< /v1/fim/completions
  kOllama,   ///< /api/generate
};

/// A request for a completion, as far as efimd honours it.
struct CompletionRequest {
  Form form = Form::kInfill;
  std::int64_t created_s = 0;  ///< when it was read, in seconds since 1970
  std::string id = {};         ///< of its answer and each piece of it, and of no other answer
  Surroundings text = {};
  std::optional<int> tokens_max;  ///< 0: a client warms up its server; nothing is to be written
  std::optional<double> temperature;
  std::vector<std::string> stops;  ///< the text ends before the first of these
  bool stream = false;
  std::string model;                               ///< as the client calls it; answers repeat it
  std::optional<std::vector<std::string>> fields;  ///< llama-server's response_fields
  /// Fields that would have changed the answer and are not honoured; for a header of the answer.
  std::vector<std::string> ignored;
};

/// A strings of a request may be so many and so long; more is refused.
inline constexpr std::size_t kStopsMax = 32;
inline constexpr std::size_t kStopBytesMax = 256;
inline constexpr std::size_t kFieldsMax = 64;
inline constexpr std::size_t kModelBytesMax = 256;

/// Reads a body. Unknown fields are passed over; kBadInput names the field that is missing, of
/// another type or too long. `model`: the marks of the model in use, if known.
Result<CompletionRequest> completion_request(Form form, std::string_view body,
                                             const std::optional<FimMarks>& model);

}  // namespace efimd::http
