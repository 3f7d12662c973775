// A body is read or refused for each form; what was read is laid over a text, and the answer made of
// it is JSON again. The first byte chooses the form.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/utf8.h"
#include "net/http/answer.h"
#include "net/http/guard.h"
#include "net/http/request.h"
#include "net/http/routes.h"

using namespace efimd;
using namespace efimd::http;

namespace {

const FimMarks kMarks{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"};

/// One line of JSON, or several, with what frames them.
void check_answer(const Answer& answer) {
  if (utf8::valid_prefix(answer.body) != answer.body.size()) std::abort();
  if (answer.type.starts_with("application/json") && !lsp::parse_json(answer.body)) std::abort();
}

void check_window(const Surroundings& text) {
  // Half of it was known before, and the cursor stood elsewhere.
  const std::string known = text.after + text.before.substr(text.before.size() / 2);
  const std::string sound = known.substr(0, utf8::valid_prefix(known));
  for (const bool cut : {false, true}) {
    const Window window{text.before + text.after, text.before.size(), cut, cut};
    const Laid laid = lay_over(sound, window);
    const std::string now = edited(sound, laid.edits);
    if (laid.cursor > now.size()) std::abort();
    if (!cut && (now != window.text || laid.cursor != window.cursor)) std::abort();
  }
  Documents documents;
  documents.place({sound, ""}, {});
  for (const std::string& body : documents.place(text, {}).messages)
    if (!lsp::parse_message(body)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto form = static_cast<Form>(data[0] % 5);
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto request = completion_request(form, body, kMarks);
  if (!request) {
    check_answer(refusal(400, request.error().message(), form));
    return 0;
  }
  check_window(request->text);
  const Completed completed{insertable(request->text.after, request->text.before), nullptr, 1};
  check_answer(answer_of(*request, completed, "model"));
  static_cast<void>(route_of("POST", request->model));
  Head head{"POST", body, request->model, {}, {}, body, {}, body};
  take_target(head);
  if (head.target.empty() && !body.empty()) std::abort();
  static_cast<void>(refused(head, {1, "0123456789abcdef"}));
  return 0;
}
