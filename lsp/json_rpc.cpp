#include "lsp/json_rpc.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "lsp/excerpt.h"

namespace efimd::lsp {

namespace {

/// The byte after the string that opens before `byte`.
std::size_t string_end(std::string_view text, std::size_t byte) {
  while (byte < text.size() && text[byte] != '"') byte += text[byte] == '\\' ? 2 : 1;
  return byte + 1;
}

/// Looks at brackets and commas outside strings only: enough to bound what the parser will build.
Result<void> check_limits(std::string_view text) {
  int depth = 0;
  std::size_t values = 1;
  for (std::size_t byte = 0; byte < text.size();) {
    const char c = text[byte++];
    if (c == '"') {
      byte = string_end(text, byte);
    } else if (c == '{' || c == '[') {
      ++values;
      if (++depth > kJsonDepthMax)
        return fail(Fault::kBadInput, "JSON nested deeper than " + std::to_string(kJsonDepthMax) +
                                          " at byte " + std::to_string(byte - 1));
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && ++values > kJsonValuesMax) {
      return fail(Fault::kBadInput, "JSON with more than " + std::to_string(kJsonValuesMax) +
                                        " values at byte " + std::to_string(byte - 1));
    }
  }
  return {};
}

/// Keeps the first error of a parse; everything else builds a Json as usual.
class ErrorPlace : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(std::int64_t /*value*/) override { return true; }
  bool number_unsigned(std::uint64_t /*value*/) override { return true; }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return true; }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(Json::binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override { return true; }
  bool key(std::string& /*value*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t byte, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    byte_ = byte;
    return false;
  }
  std::size_t byte() const { return byte_; }

 private:
  std::size_t byte_ = 0;
};

Error syntax_error(std::string_view text) {
  ErrorPlace place;
  Json::sax_parse(text.begin(), text.end(), &place);
  const std::size_t byte = place.byte() > 0 ? place.byte() - 1 : 0;
  const std::string_view around = text.substr(std::min(byte, text.size()), 16);
  return {Fault::kBadInput,
          "not JSON at byte " + std::to_string(byte) +
              (around.empty() ? " (the text ends there)" : ": " + excerpt(around)),
          ""};
}

/// The value of the four digits of "\uXXXX" at `byte`; nullopt when no such escape stands there.
std::optional<unsigned> escape_at(std::string_view text, std::size_t byte) {
  if (text.size() < byte + 6 || text[byte] != '\\' || text[byte + 1] != 'u') return std::nullopt;
  unsigned value = 0;
  for (std::size_t i = byte + 2; i < byte + 6; ++i) {
    const char c = text[i];
    const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a' + 10)
                           : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A' + 10)
                                                  : 16U;
    if (digit == 16U) return std::nullopt;
    value = value << 4U | digit;
  }
  return value;
}

bool is_high(std::optional<unsigned> unit) { return unit && (*unit & 0xFC00U) == 0xD800U; }
bool is_low(std::optional<unsigned> unit) { return unit && (*unit & 0xFC00U) == 0xDC00U; }

/// Bytes of the escape at the backslash at `byte` that are to be kept: a pair of surrogates is one
/// escape.
std::size_t escape_length(std::string_view text, std::size_t byte) {
  const std::optional<unsigned> unit = escape_at(text, byte);
  if (!unit) return 2;
  return is_high(unit) && is_low(escape_at(text, byte + 6)) ? 12 : 6;
}

/// `text` in valid UTF-8 and with each lone surrogate escape as "\ufffd". Backslashes occur in
/// strings only.
std::string repaired(std::string_view text) {
  std::string out = utf8::sanitized(text);
  for (std::size_t byte = out.find('\\'); byte != std::string::npos; byte = out.find('\\', byte)) {
    const std::size_t length = escape_length(out, byte);
    const std::optional<unsigned> unit = escape_at(out, byte);
    if (length == 6 && (is_high(unit) || is_low(unit))) out.replace(byte, 6, "\\ufffd");
    byte += length;
  }
  return out;
}

tl::unexpected<BadMessage> invalid(Id id, std::string what) {
  return tl::unexpected(BadMessage{ErrorCode::kInvalidRequest, std::move(id),
                                   Error{Fault::kBadInput, "message: " + std::move(what), ""}});
}

Json take(Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? Json() : std::move(*found);
}

tl::expected<Message, BadMessage> response_of(Json& body, Id id) {
  Message message;
  message.kind = Message::Kind::kResponse;
  message.id = std::move(id);
  message.result = take(body, "result");
  if (!body.contains("error")) return message;
  const Json error = take(body, "error");
  if (error.is_null()) return message;
  if (!error.is_object()) return invalid({}, "error must be an object");
  ResponseError parsed;
  if (const auto code = error.find("code"); code != error.end() && code->is_number_integer())
    parsed.code = code->get<int>();
  if (const auto text = error.find("message"); text != error.end() && text->is_string())
    parsed.message = text->get<std::string>();
  if (const auto data = error.find("data"); data != error.end()) parsed.data = *data;
  message.error = std::move(parsed);
  return message;
}

tl::expected<Message, BadMessage> call_of(Json& body, std::optional<Id> id) {
  Message message;
  message.kind = id ? Message::Kind::kRequest : Message::Kind::kNotification;
  message.id = id.value_or(Id{});
  Json method = take(body, "method");
  if (!method.is_string()) return invalid(message.id, "method must be a string");
  message.method = std::move(method.get_ref<std::string&>());
  message.params = take(body, "params");
  if (!message.params.is_null() && !message.params.is_structured())
    return invalid(message.id, "params must be an object or an array");
  return message;
}

}  // namespace

Json to_json(const Id& id) {
  if (const auto* number = std::get_if<std::int64_t>(&id)) return *number;
  if (const auto* text = std::get_if<std::string>(&id)) return *text;
  return nullptr;
}

std::optional<Id> id_of(const Json& value) {
  if (value.is_null()) return Id{};
  if (value.is_string()) return Id{value.get<std::string>()};
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  if (value.is_number_integer()) return Id{value.get<std::int64_t>()};
  return std::nullopt;
}

Result<Json> parse_json(std::string_view text) {
  if (Result<void> limits = check_limits(text); !limits)
    return tl::unexpected(std::move(limits).error());
  Json value = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!value.is_discarded()) return value;
  // Only a text that failed pays for the repair. Bytes replaced inside strings move no bracket, so
  // the limits hold.
  const std::string again = repaired(text);
  if (again != text) value = Json::parse(again, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return tl::unexpected(syntax_error(again));
  return value;
}

tl::expected<Message, BadMessage> parse_message(std::string_view body) {
  Result<Json> parsed = parse_json(body);
  if (!parsed)
    return tl::unexpected(BadMessage{ErrorCode::kParseError, {}, std::move(parsed).error()});
  if (parsed->is_array()) return invalid({}, "batches are not supported");
  if (!parsed->is_object()) return invalid({}, "must be an object");
  const auto member = parsed->find("id");
  const bool has_id = member != parsed->end();
  std::optional<Id> id = has_id ? id_of(*member) : std::nullopt;
  if (has_id && !id) return invalid({}, "id must be an integer, a string or null");
  const auto version = parsed->find("jsonrpc");
  if (version == parsed->end() || *version != "2.0")
    return invalid(id.value_or(Id{}), "jsonrpc must be \"2.0\"");
  if (parsed->contains("method")) return call_of(*parsed, std::move(id));
  if (id && (parsed->contains("result") || parsed->contains("error")))
    return response_of(*parsed, std::move(*id));
  return invalid(id.value_or(Id{}), "has neither method nor result nor error");
}

std::string json_text(const Json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string request_body(const Id& id, std::string_view method, Json params) {
  Json body = {{"jsonrpc", "2.0"}, {"id", to_json(id)}, {"method", method}};
  if (!params.is_null()) body["params"] = std::move(params);
  return json_text(body);
}

std::string notification_body(std::string_view method, Json params) {
  Json body = {{"jsonrpc", "2.0"}, {"method", method}};
  if (!params.is_null()) body["params"] = std::move(params);
  return json_text(body);
}

std::string response_body(const Id& id, Json result) {
  Json body = {{"jsonrpc", "2.0"}, {"id", to_json(id)}};
  body["result"] = std::move(result);
  return json_text(body);
}

std::string error_body(const Id& id, ErrorCode code, std::string_view message) {
  Json body = {{"jsonrpc", "2.0"}, {"id", to_json(id)}};
  body["error"] = {{"code", static_cast<int>(code)}, {"message", message}};
  return json_text(body);
}

}  // namespace efimd::lsp
