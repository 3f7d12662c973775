#include "lsp/document_fields.h"

#include <limits>

#include "lsp/framing.h"

namespace efimd::lsp {

namespace {

TextDocumentContentChangeEvent change_in(const Field& field) {
  TextDocumentContentChangeEvent change;
  if (const Field range = field.member("range"); range.there()) change.range = range_in(range);
  change.text = field.member("text").string(kMessageBytesMax);
  return change;
}

}  // namespace

Field root_of(Reading& reading, const Json& params) {
  Field root(reading, params, "params");
  if (!root.there()) root.refuse("an object");
  return root;
}

Position position_in(const Field& field) {
  const auto number = [&](std::string_view name) {
    return static_cast<std::uint32_t>(field.member(name).integer(0, kUintegerMax));
  };
  return {number("line"), number("character")};
}

Range range_in(const Field& field) {
  return {position_in(field.member("start")), position_in(field.member("end"))};
}

std::vector<TextDocumentContentChangeEvent> changes_in(const Field& list) {
  if (!list.there()) list.refuse("an array");
  return all_of(list, change_in);
}

std::optional<std::int32_t> version_in(const Field& document) {
  Reading ignored;
  const Field field(ignored, document.member("version").json(), "version");
  const auto version =
      field.optional_integer(std::numeric_limits<std::int32_t>::min(), kUintegerMax);
  if (!version) return std::nullopt;
  return static_cast<std::int32_t>(*version);
}

DidOpenTextDocumentParams document_in(const Field& item) {
  DidOpenTextDocumentParams out;
  out.uri = item.member("uri").string(kUriBytesMax);
  out.languageId = item.member("languageId").optional_string(kNameBytesMax).value_or("");
  out.version = version_in(item).value_or(0);
  out.text = item.member("text").string(kMessageBytesMax);
  return out;
}

}  // namespace efimd::lsp
