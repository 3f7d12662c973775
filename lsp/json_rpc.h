#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"

namespace efimd::lsp {

using Json = nlohmann::json;

/// Deeper bodies are refused: copying, comparing and printing a Json recurse.
inline constexpr int kJsonDepthMax = 128;
/// Bodies with more values are refused: each costs 16 bytes and up once parsed. An initialize has
/// about 2,000.
inline constexpr std::size_t kJsonValuesMax = std::size_t{4} << 20;

/// Names a request. monostate is null: only answers to unreadable requests carry it.
using Id = std::variant<std::monostate, std::int64_t, std::string>;

Json to_json(const Id& id);
/// nullopt unless `value` is an integer, a string or null.
std::optional<Id> id_of(const Json& value);

/// Codes of JSON-RPC and LSP. VS Code shows every error as a toast except kRequestCancelled,
/// kContentModified and kServerCancelled.
enum class ErrorCode {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kInternalError = -32603,
  kServerNotInitialized = -32002,
  kRequestFailed = -32803,
  kServerCancelled = -32802,
  kContentModified = -32801,
  kRequestCancelled = -32800,
};

struct ResponseError {
  int code = 0;
  std::string message;
  Json data;  ///< null if absent
};

/// One parsed body.
struct Message {
  enum class Kind { kRequest, kNotification, kResponse };
  Kind kind = Kind::kNotification;
  Id id;               ///< of a request or response
  std::string method;  ///< of a request or notification
  Json params;         ///< null when absent; an object or array otherwise
  Json result;         ///< of a response without error
  std::optional<ResponseError> error;
};

/// A body that is no message. `id` is the request's if it could be read, so that its sender gets an
/// answer: error_body(bad.id, bad.code, bad.error.message()).
struct BadMessage {
  ErrorCode code = ErrorCode::kParseError;
  Id id;
  Error error;
};

/// Parses one body. Invalid UTF-8 and lone surrogate escapes ("\ud800") become U+FFFD: an editor
/// must not lose sync over half an emoji. Refuses text that is not JSON (kParseError, naming the
/// byte), and nesting and counts past the limits above. Refuses batches, and anything else that is
/// no request, notification or response (kInvalidRequest).
tl::expected<Message, BadMessage> parse_message(std::string_view body);

/// JSON under the same limits and repairs; for files and command output in the protocol's format.
Result<Json> parse_json(std::string_view text);

// Bodies to send, unframed. Invalid UTF-8 in any string is written as U+FFFD.
std::string request_body(const Id& id, std::string_view method, Json params);
std::string notification_body(std::string_view method, Json params);
std::string response_body(const Id& id, Json result);
std::string error_body(const Id& id, ErrorCode code, std::string_view message);
/// Any value as JSON text on one line; invalid UTF-8 as U+FFFD.
std::string json_text(const Json& value);

}  // namespace efimd::lsp
