#include "daemon/server/receipt.h"

#include <fmt/format.h>

#include <utility>

#include "daemon/completion/source.h"

namespace efimd::service {

namespace {

using lsp::Json;
using Value = std::optional<Json>;

constexpr ReceiptMember kMembers[] = {
    {"request", "integer or string", "the id of the request",
     [](const Answered& a) -> Value { return lsp::to_json(a.request); }},
    {"uri", "string", "the document of the request",
     [](const Answered& a) -> Value { return a.uri; }},
    {"version", "integer or null", "the document's version",
     [](const Answered& a) -> Value { return a.version ? Json(*a.version) : Json(nullptr); }},
    {"event", "string",
     "the user's action since the last request: `type`, `newline`, `accept`, `delete`, `jump`, "
     "`switch`, `edit`, `open`, `repeat`",
     [](const Answered& a) -> Value { return completion::event_name(a.receipt.event); }},
    {"source", "string", "the origin of the answer, see below",
     [](const Answered& a) -> Value { return a.receipt.source; }},
    {"promptTokens", "integer", "tokens of the prompt: reused and evaluated ones",
     [](const Answered& a) -> Value { return a.receipt.prompt_tokens; }},
    {"reusedTokens", "integer", "prompt tokens whose KV was there",
     [](const Answered& a) -> Value { return a.receipt.reused_tokens; }},
    {"evaluatedTokens", "integer", "prompt tokens that were evaluated for this request",
     [](const Answered& a) -> Value { return a.receipt.evaluated_tokens; }},
    {"window", "`{view, shown, tokens, before, typed, after}`; absent if the model was not asked",
     "what the prompt shows: `full`, `part of after`, `short after`, `first window`, `first "
     "window, short after` or `near`, its part of the file's bytes, 0 to 1, its tokens of the "
     "file, and of these the ones of the text before, of what is typed, and of the text after",
     [](const Answered& a) -> Value {
       if (a.receipt.view.empty()) return std::nullopt;
       const completion::Receipt& r = a.receipt;
       return Json{{"view", r.view},
                   {"shown", r.shown},
                   {"tokens", r.before_tokens + r.typed_tokens + r.after_tokens},
                   {"before", r.before_tokens},
                   {"typed", r.typed_tokens},
                   {"after", r.after_tokens}};
     }},
    {"head", "`{files, tokens}`; absent if the prompt shows no other files",
     "how many other files' declarations stand in front of the text, and their tokens",
     [](const Answered& a) -> Value {
       if (a.receipt.head_files == 0) return std::nullopt;
       return Json{{"files", a.receipt.head_files}, {"tokens", a.receipt.head_tokens}};
     }},
    {"editTokens", "integer; absent if there are none",
     "tokens of what was edited elsewhere, behind the text after the cursor",
     [](const Answered& a) -> Value {
       if (a.receipt.edit_tokens == 0) return std::nullopt;
       return a.receipt.edit_tokens;
     }},
    {"generatedTokens", "integer", "generated tokens that go on after the cursor",
     [](const Answered& a) -> Value { return a.receipt.generated_tokens; }},
    {"healedTokens", "integer",
     "typed tokens at the prompt's end that the model spelled otherwise; `promptTokens` counts "
     "them",
     [](const Answered& a) -> Value { return a.receipt.healed_tokens; }},
    {"restoredTokens", "integer",
     "reused tokens whose KV came from the disk or the host's memory and is used for the first "
     "time since",
     [](const Answered& a) -> Value { return a.receipt.restored_tokens; }},
    {"steps", "integer", "steps of the engine after the prompt's own that the generation took",
     [](const Answered& a) -> Value { return a.receipt.steps; }},
    {"draftedTokens", "integer",
     "tokens that recall or an earlier suggestion proposed to the model; they are no prompt tokens",
     [](const Answered& a) -> Value { return a.receipt.drafted_tokens; }},
    {"acceptedTokens", "integer", "drafted tokens that the model would have chosen itself",
     [](const Answered& a) -> Value { return a.receipt.accepted_tokens; }},
    {"queueMs", "number", "from the request's arrival to the start of work",
     [](const Answered& a) -> Value { return a.receipt.queue_ms; }},
    {"firstTokenMs", "number", "from the request's arrival to the first token; 0 if there was none",
     [](const Answered& a) -> Value { return a.receipt.first_token_ms; }},
    {"totalMs", "number", "from the request's arrival to the answer",
     [](const Answered& a) -> Value { return a.receipt.total_ms; }},
    {"confidence", "number, 0 to 1; absent if no token was looked at",
     "the product of the probabilities of the suggestion's tokens, or the chance of recalled text; "
     "if the model was not sure enough of its first statement or argument, of that part's tokens",
     [](const Answered& a) -> Value {
       if (!a.receipt.confidence) return std::nullopt;
       return *a.receipt.confidence;
     }},
    {"notStored", "string; absent if its KV may be stored",
     "why KV of the document does not go to the disk",
     [](const Answered& a) -> Value {
       if (a.not_stored.empty()) return std::nullopt;
       return a.not_stored;
     }},
    {"reason", "string; absent with a suggestion", "why there is none",
     [](const Answered& a) -> Value {
       if (a.receipt.reason.empty()) return std::nullopt;
       return a.receipt.reason;
     }},
};

}  // namespace

std::span<const ReceiptMember> receipt_members() { return kMembers; }

Json receipt_json(const Answered& answered) {
  Json params = Json::object();
  for (const ReceiptMember& member : kMembers)
    if (auto value = member.value(answered)) params[member.name] = std::move(*value);
  return params;
}

std::string receipt_table() {
  std::string table = "| member | type | meaning |\n| --- | --- | --- |\n";
  for (const ReceiptMember& member : kMembers)
    table += fmt::format("| `{}` | {} | {} |\n", member.name, member.type, member.meaning);
  return table;
}

std::string source_table() {
  std::string table = "| `source` | the answer is |\n| --- | --- |\n";
  for (const completion::Source& source : completion::source::kAll)
    table += fmt::format("| `{}` | {} |\n", source.name, source.meaning);
  return table;
}

}  // namespace efimd::service
