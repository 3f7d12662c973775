#include "tests/bench/completion/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "lsp/json_rpc.h"

namespace efimd::bench {

using lsp::Json;

namespace {

tl::unexpected<Error> bad_event(std::size_t line, std::string_view what) {
  return fail(Fault::kBadInput, fmt::format("line {} of the trace: {}", line, what));
}

/// The members of one line. The first that is wrong is remembered; what is asked after it means
/// nothing.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {}

  std::string string(const char* name) {
    const auto found = object_.find(name);
    if (found != object_.end() && found->is_string()) return found->get<std::string>();
    return wrong<std::string>(name, "a string");
  }
  std::size_t number(const char* name) {
    const auto found = object_.find(name);
    if (found != object_.end() && found->is_number_unsigned()) return found->get<std::size_t>();
    return wrong<std::size_t>(name, "a number from 0");
  }
  bool boolean(const char* name) {
    const auto found = object_.find(name);
    if (found != object_.end() && found->is_boolean()) return found->get<bool>();
    return wrong<bool>(name, "true or false");
  }
  std::string kind() {
    std::string kind = string("kind");
    const bool printable = std::ranges::all_of(kind, [](char c) { return c > ' ' && c <= '~'; });
    if (printable && !kind.empty() && kind.size() <= kTraceKindBytesMax) return kind;
    return wrong<std::string>(
        "kind", fmt::format("1 to {} visible characters of ASCII", kTraceKindBytesMax));
  }
  template <class T>
  T wrong(const char* name, std::string_view wanted) {
    if (failure.empty()) failure = fmt::format("\"{}\" must be {}", name, wanted);
    return {};
  }

  std::string failure;

 private:
  const Json& object_;
};

Result<TraceEvent> parse_event(std::string_view text, std::size_t line) {
  const Result<Json> json = lsp::parse_json(text);
  if (!json) return bad_event(line, json.error().message());
  if (!json->is_object()) return bad_event(line, "not a JSON object");
  Members members(*json);
  TraceEvent event;
  event.line = line;
  const std::string op = members.string("op");
  event.path = members.string("path");
  if (op == "open") {
    event.text = members.string("text");
  } else if (op == "edit" || op == "move") {
    event.op = op == "edit" ? TraceEvent::Op::kEdit : TraceEvent::Op::kMove;
    event.cursor = members.number("cursor");
    event.kind = members.kind();
    event.ask = members.boolean("ask");
    if (op == "edit") {
      event.position = members.number("pos");
      event.removed = members.number("del");
      event.text = members.string("ins");
    }
  } else {
    members.wrong<int>("op", "open, edit or move");
  }
  if (!members.failure.empty()) return bad_event(line, members.failure);
  return event;
}

/// The byte at which the code point `position` starts, searched from byte `from`; nullopt past the
/// text's end.
std::optional<std::size_t> byte_at(std::string_view text, std::size_t from, std::size_t position) {
  for (; position > 0 && from < text.size(); --position)
    from += static_cast<std::size_t>(utf8::decode(text, from).length);
  return position == 0 ? std::optional(from) : std::nullopt;
}

}  // namespace

Result<std::vector<TraceEvent>> parse_trace(std::string_view jsonl) {
  std::vector<TraceEvent> events;
  std::set<std::string> kinds;
  TraceDocuments documents;
  for (std::size_t line = 1; !jsonl.empty(); ++line) {
    const std::string_view text = jsonl.substr(0, jsonl.find('\n'));
    jsonl.remove_prefix(std::min(text.size() + 1, jsonl.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (events.size() == kTraceEventsMax)
      return bad_event(line, fmt::format("more than {} events", kTraceEventsMax));
    auto event = parse_event(text, line);
    if (!event) return tl::unexpected(event.error());
    if (auto applied = documents.apply(*event); !applied) return tl::unexpected(applied.error());
    if (event->ask && kinds.insert(event->kind).second && kinds.size() > kTraceKindsMax)
      return bad_event(line, fmt::format("more than {} different kinds", kTraceKindsMax));
    events.push_back(std::move(*event));
  }
  if (kinds.empty())
    return fail(Fault::kBadInput, "the trace asks for no completion",
                "give it edits or moves with \"ask\":true");
  return events;
}

Result<std::optional<TraceDocuments::Place>> TraceDocuments::apply(const TraceEvent& event) {
  const auto found = documents_.find(event.path);
  if (event.op == TraceEvent::Op::kOpen) {
    if (found != documents_.end()) return bad_event(event.line, "the path was opened before");
    auto document = text::Document::open(event.text);
    if (!document) return bad_event(event.line, document.error().message());
    documents_.emplace(event.path, std::move(*document));
    return std::nullopt;
  }
  if (found == documents_.end()) return bad_event(event.line, "the path was not opened");
  text::Document& document = found->second;
  if (event.op == TraceEvent::Op::kEdit) {
    const std::string_view text = document.snapshot()->bytes();
    const auto begin = byte_at(text, 0, event.position);
    const auto end = begin ? byte_at(text, *begin, event.removed) : std::nullopt;
    if (!end) return bad_event(event.line, "\"pos\" and \"del\" reach past the text's end");
    if (auto edited = document.replace(*begin, *end, event.text); !edited)
      return bad_event(event.line, edited.error().message());
  }
  const auto cursor = byte_at(document.snapshot()->bytes(), 0, event.cursor);
  if (!cursor) return bad_event(event.line, "\"cursor\" is past the text's end");
  if (!event.ask) return std::nullopt;
  return Place{document.snapshot(), *cursor};
}

}  // namespace efimd::bench
