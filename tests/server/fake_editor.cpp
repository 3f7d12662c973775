#include "tests/server/fake_editor.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <catch2/catch.hpp>

#include "tests/support/json_of.h"

namespace efimd::test {

FakeHost::FakeHost()
    : logger(std::make_shared<spdlog::logger>(
          "test", std::make_shared<spdlog::sinks::ostream_sink_st>(logged))) {
  logger->set_level(spdlog::level::debug);
}

FakeEditor::FakeEditor()
    : session(std::make_shared<service::Session>(
          7, host, [this](const std::string& body) { messages.push_back(test::json_of(body)); })) {}

void FakeEditor::initialize(Json capabilities, Json options) {
  request(0, "initialize",
          {{"processId", nullptr},
           {"rootUri", nullptr},
           {"workspaceFolders", folders},
           {"clientInfo", {{"name", "fake"}, {"version", "1"}}},
           {"capabilities", std::move(capabilities)},
           {"initializationOptions", {{"efim", std::move(options)}}}});
  notify("initialized", Json::object());
}

void FakeEditor::request(const Json& id, const std::string& method, const Json& params) {
  Json message = {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}};
  if (!params.is_null()) message["params"] = params;
  send(message);
}

void FakeEditor::notify(const std::string& method, const Json& params) {
  Json message = {{"jsonrpc", "2.0"}, {"method", method}};
  if (!params.is_null()) message["params"] = params;
  send(message);
}

void FakeEditor::open(const std::string& text, const std::string& uri) {
  notify("textDocument/didOpen",
         {{"textDocument", {{"uri", uri}, {"languageId", "cpp"}, {"version", 1}, {"text", text}}}});
}

void FakeEditor::change(int version, Json where, const std::string& text) {
  Json event = {{"text", text}};
  if (!where.is_null()) event["range"] = std::move(where);
  notify("textDocument/didChange", {{"textDocument", {{"uri", kUri}, {"version", version}}},
                                    {"contentChanges", Json::array({event})}});
}

void FakeEditor::complete(const Json& id, int line, int character, const std::string& uri) {
  request(id, "textDocument/inlineCompletion",
          {{"textDocument", {{"uri", uri}}},
           {"position", {{"line", line}, {"character", character}}},
           {"context", {{"triggerKind", 2}}}});
}

std::vector<Json> FakeEditor::answers(const Json& id) const {
  std::vector<Json> found;
  for (const Json& message : messages)
    if (!message.contains("method") && message.at("id") == id) found.push_back(message);
  return found;
}

Json FakeEditor::answer(const Json& id) const {
  const std::vector<Json> found = answers(id);
  REQUIRE(found.size() == 1);
  return found.front();
}

std::vector<Json> FakeEditor::sent(const std::string& method) const {
  std::vector<Json> found;
  for (const Json& message : messages)
    if (message.value("method", "") == method) found.push_back(message.value("params", Json()));
  return found;
}

FakeHost::Submitted& FakeEditor::last_submitted() {
  REQUIRE_FALSE(host.submitted.empty());
  return host.submitted.back();
}

completion::Outcome suggestion(std::string text, std::size_t begin, std::size_t end) {
  completion::Outcome outcome;
  outcome.item = completion::Item{std::move(text), begin, end};
  outcome.receipt.event = completion::Event::kType;
  outcome.receipt.source = "engine";
  outcome.receipt.prompt_tokens = 12;
  outcome.receipt.reused_tokens = 10;
  outcome.receipt.evaluated_tokens = 2;
  outcome.receipt.generated_tokens = 3;
  return outcome;
}

completion::Outcome silence(std::string reason) {
  completion::Outcome outcome;
  outcome.receipt.reason = std::move(reason);
  return outcome;
}

}  // namespace efimd::test
