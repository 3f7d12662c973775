#include "lsp/protocol.h"

#include <catch2/catch.hpp>

using namespace efimd;
using namespace efimd::lsp;

namespace {

template <class Params>
Params read(const std::string& json) {
  INFO(json);
  Result<Params> params = params_of<Params>(Json::parse(json));
  if (!params) FAIL(params.error().message());
  return std::move(*params);
}

template <class Params>
void check_refused(const std::string& json, const std::string& message) {
  INFO(json);
  const Result<Params> params = params_of<Params>(Json::parse(json));
  REQUIRE_FALSE(params);
  CHECK(params.error().fault == Fault::kBadInput);
  CHECK(params.error().message() == message);
}

}  // namespace

TEST_CASE("initialize is read as VS Code, Neovim and Emacs send it") {
  const auto full = read<InitializeParams>(
      R"({"processId":12,"clientInfo":{"name":"Visual Studio Code","version":"1.139"},
    "rootUri":"file:///a","workDoneToken":"t","capabilities":{"general":{"positionEncodings":["utf-16"]},
    "textDocument":{"inlineCompletion":{"dynamicRegistration":true}},"window":{"workDoneProgress":true}},
    "initializationOptions":{"efim":{"receipts":true,"maxTokens":8,"stop":"line","temperature":0.5}}})");
  CHECK(full.processId == 12);
  CHECK(full.clientInfo.name == "Visual Studio Code");
  CHECK(full.clientInfo.version == "1.139");
  CHECK(full.rootUri == "file:///a");
  CHECK(full.workDoneToken == Id{std::string("t")});
  CHECK(full.positionEncodings == std::vector<std::string>{"utf-16"});
  CHECK(full.inlineCompletion);
  CHECK(full.workDoneProgress);
  CHECK(full.efim.receipts == true);
  CHECK(full.efim.maxTokens == 8);
  CHECK(full.efim.stop == EfimStop::kLine);
  CHECK(full.efim.temperature == 0.5);
  CHECK(full.efim.unknown.empty());
}

TEST_CASE("initialize with nulls, absent members and Lua's empty tables is read") {
  const auto bare = read<InitializeParams>(
      R"({"processId":null,"rootUri":null,"capabilities":[],"initializationOptions":[]})");
  CHECK_FALSE(bare.processId);
  CHECK_FALSE(bare.rootUri);
  CHECK_FALSE(bare.inlineCompletion);
  CHECK_FALSE(bare.workDoneProgress);
  CHECK_FALSE(bare.efim.receipts);
  CHECK(read<InitializeParams>(R"({"capabilities":{"textDocument":{"inlineCompletion":{}}}})")
            .inlineCompletion);
  CHECK(read<InitializeParams>(R"({"capabilities":{"textDocument":{"inlineCompletion":[]}}})")
            .inlineCompletion);
}

TEST_CASE("a client without a process of its own may write 0 or -1 for it") {
  for (const char* none : {"0", "-1", "-1.0"}) {
    CAPTURE(none);
    CHECK_FALSE(read<InitializeParams>(std::string(R"({"processId":)") + none + "}").processId);
  }
}

TEST_CASE("bad initialization options are refused by their path") {
  const auto refused = [](const std::string& efim, const std::string& message) {
    check_refused<InitializeParams>(R"({"initializationOptions":{"efim":)" + efim + "}}", message);
  };
  const std::string at = "params.initializationOptions.efim";
  refused(R"({"maxTokens":0})", at + ".maxTokens must be an integer from 1 to 4096, not 0");
  refused(R"({"maxTokens":1e9})",
          at + ".maxTokens must be an integer from 1 to 4096, not 1000000000.0");
  refused(R"({"stop":"word"})", at + R"(.stop must be "none", "line" or "block", not "word")");
  refused(R"({"temperature":-1})", at + ".temperature must be a number from 0.0 to 10.0, not -1");
  refused(R"({"receipts":"yes"})", at + R"(.receipts must be true or false, not "yes")");
  refused(R"([1])", at + " must be an object, not array");
}

TEST_CASE("unknown initialization options are collected to be reported") {
  const auto params =
      read<InitializeParams>(R"({"initializationOptions":{"efim":{"maxtokens":8,"stop":"none"}}})");
  CHECK(params.efim.unknown == std::vector<std::string>{"maxtokens"});
  CHECK(params.efim.stop == EfimStop::kNone);
}

TEST_CASE("didOpen is read") {
  const auto params = read<DidOpenTextDocumentParams>(
      R"({"textDocument":{"uri":"file:///a.c","languageId":"c","version":-4,"text":"int\r\n"}})");
  CHECK(params.uri == "file:///a.c");
  CHECK(params.languageId == "c");
  CHECK(params.version == -4);
  CHECK(params.text == "int\r\n");
}

TEST_CASE("didChange keeps whole and ranged changes in their order and ignores rangeLength") {
  const auto params = read<DidChangeTextDocumentParams>(
      R"({"textDocument":{"uri":"u:x","version":3},"contentChanges":[
    {"text":"all"},
    {"range":{"start":{"line":1,"character":2},"end":{"line":3,"character":4}},"rangeLength":99,"text":""}]})");
  CHECK(params.version == 3);
  REQUIRE(params.contentChanges.size() == 2);
  CHECK_FALSE(params.contentChanges[0].range);
  CHECK(params.contentChanges[0].text == "all");
  CHECK(params.contentChanges[1].range == Range{{1, 2}, {3, 4}});
  CHECK(params.contentChanges[1].text.empty());
}

TEST_CASE("a version that is none of LSP's is left out, and a document's URI is read in any case") {
  for (const char* version : {"1796031989000", "\"3\"", "1.5", "{}"}) {
    const auto params = read<DidChangeTextDocumentParams>(
        std::string(R"({"textDocument":{"uri":"u:x","version":)") + version +
        R"(},"contentChanges":[]})");
    CHECK_FALSE(params.version);
  }
  CHECK(document_uri(Json::parse(R"({"textDocument":{"uri":"u:x"},"contentChanges":1})")) == "u:x");
  for (const char* params :
       {"null", "[]", "[1]", "{}", R"({"textDocument":1})", R"({"textDocument":{"uri":2}})"})
    CHECK(document_uri(Json::parse(params)).empty());
}

TEST_CASE("a request says that it asks ahead, or it does not") {
  const auto ahead = [](const std::string& more) {
    return read<InlineCompletionParams>(
               R"({"textDocument":{"uri":"u:x"},"position":{"line":3,"character":0})" + more + "}")
        .ahead;
  };
  CHECK(ahead(R"(,"efim":{"ahead":true})"));
  CHECK_FALSE(ahead(R"(,"efim":{"ahead":false})"));
  CHECK_FALSE(ahead(R"(,"efim":{})"));
  CHECK_FALSE(ahead(""));
}

TEST_CASE("a client with one kind of number may write 3.0") {
  const auto params = read<InlineCompletionParams>(
      R"({"textDocument":{"uri":"u:x"},"position":{"line":3.0,"character":0.0}})");
  CHECK(params.position == Position{3, 0});
}

TEST_CASE("a bad field is named by its path, the first one where there are several") {
  check_refused<DidChangeTextDocumentParams>(
      R"({"textDocument":{"uri":"u:x","version":3},"contentChanges":[{"text":"a"},{"range":{"start":{"line":-1,"character":0}},"text":""}]})",
      "params.contentChanges[1].range.start.line must be an integer from 0 to 2147483647, not -1");
  check_refused<DidChangeTextDocumentParams>(R"({"textDocument":{"uri":"u:x"}})",
                                             "params.contentChanges must be an array, not absent");
  check_refused<DidChangeTextDocumentParams>(
      R"({"textDocument":{"uri":"u:x"},"contentChanges":[3]})",
      "params.contentChanges[0] must be an object, not 3");
  check_refused<DidOpenTextDocumentParams>(R"({"textDocument":{"uri":7,"text":"a"}})",
                                           "params.textDocument.uri must be a string, not 7");
  check_refused<DidOpenTextDocumentParams>(R"({"textDocument":{"uri":"u:x"}})",
                                           "params.textDocument.text must be a string, not absent");
  check_refused<DidCloseTextDocumentParams>("{}",
                                            "params.textDocument.uri must be a string, not absent");
  check_refused<DidCloseTextDocumentParams>("null", "params must be an object, not absent");
  check_refused<DidCloseTextDocumentParams>(R"(["file:///a"])",
                                            "params must be an object, not array");
  check_refused<InlineCompletionParams>(
      R"({"textDocument":{"uri":"u:x"},"position":{"line":0,"character":1.5}})",
      "params.position.character must be an integer from 0 to 2147483647, not 1.5");
  check_refused<InlineCompletionParams>(
      R"({"textDocument":{"uri":"u:x"},"position":{"line":18446744073709551615,"character":1}})",
      "params.position.line must be an integer from 0 to 2147483647, not 18446744073709551615");
  check_refused<FindDocumentParams>(R"({"above":1})", "params.above must be a string, not 1");
  check_refused<CancelParams>("{}", "params.id must be an integer or a string, not absent");
  check_refused<CancelParams>(R"({"id":[]})",
                              "params.id must be an integer or a string, not array");
  check_refused<ExecuteCommandParams>(R"({"command":"a","arguments":{}})",
                                      "params.arguments must be an array, not object");
}

TEST_CASE("an over-long URI is refused without being shown whole") {
  const std::string uri(kUriBytesMax + 1, 'a');
  const auto params = params_of<DidCloseTextDocumentParams>(Json{{"textDocument", {{"uri", uri}}}});
  REQUIRE_FALSE(params);
  CHECK(params.error().message().size() < 200);
}

TEST_CASE("inlineCompletion is read with its context") {
  const auto params = read<InlineCompletionParams>(
      R"({"textDocument":{"uri":"u:x"},"position":{"line":3,"character":9},
    "context":{"triggerKind":1,"selectedCompletionInfo":{"range":{"start":{"line":3,"character":7},"end":{"line":3,"character":9}},"text":"push_back"}}})");
  CHECK(params.uri == "u:x");
  CHECK(params.position == Position{3, 9});
  CHECK(params.triggerKind == InlineCompletionTriggerKind::kInvoked);
  REQUIRE(params.selectedCompletionInfo);
  CHECK(params.selectedCompletionInfo->range == Range{{3, 7}, {3, 9}});
  CHECK(params.selectedCompletionInfo->text == "push_back");
}

TEST_CASE("inlineCompletion without a context is automatic") {
  const auto params = read<InlineCompletionParams>(
      R"({"textDocument":{"uri":"u:x"},"position":{"line":0,"character":0}})");
  CHECK(params.triggerKind == InlineCompletionTriggerKind::kAutomatic);
  CHECK_FALSE(params.selectedCompletionInfo);
}

TEST_CASE("cancel, command and configuration are read") {
  CHECK(read<CancelParams>(R"({"id":5})").id == Id{std::int64_t{5}});
  CHECK(read<CancelParams>(R"({"id":"5"})").id == Id{std::string("5")});
  const auto command = read<ExecuteCommandParams>(R"({"command":"a","arguments":[1,{"b":null}]})");
  CHECK(command.command == "a");
  CHECK(command.arguments == std::vector<Json>{1, Json{{"b", nullptr}}});
  CHECK(read<DidChangeConfigurationParams>(R"({"settings":{"efim":{"maxTokens":3}}})")
            .efim.maxTokens == 3);
  for (const char* foreign : {R"({"settings":null})", R"({"settings":[]})", R"({"settings":3})",
                              R"({})", R"({"settings":{"python":{}}})"})
    CHECK_FALSE(read<DidChangeConfigurationParams>(foreign).efim.maxTokens);
}

TEST_CASE("efimd's own notifications are read, and refused by the name of the field") {
  CHECK(read<EfimDidFocusParams>(R"({"textDocument":{"uri":"u:x"}})").uri == "u:x");
  CHECK(read<EfimDidShowParams>(R"({"textDocument":{"uri":"u:x","version":3}})").uri == "u:x");
  CHECK(read<EfimDidDismissParams>(R"({"textDocument":{"uri":"u:x"}})").uri == "u:x");
  const auto partly =
      read<EfimDidPartiallyAcceptParams>(R"({"textDocument":{"uri":"u:x"},"acceptedLength":5})");
  CHECK(partly.uri == "u:x");
  CHECK(partly.acceptedLength == 5);
  check_refused<EfimDidPartiallyAcceptParams>(
      R"({"textDocument":{"uri":"u:x"},"acceptedLength":0})",
      "params.acceptedLength must be an integer from 1 to 2147483647, not 0");
  check_refused<EfimDidFocusParams>(R"({"textDocument":{}})",
                                    "params.textDocument.uri must be a string, not absent");
}

TEST_CASE("an inline completion is written with its range, and an empty list as one") {
  InlineCompletionItem item;
  item.insertText = "foo;";
  item.range = {{1, 2}, {1, 4}};
  CHECK(inline_completion_list({}) == Json::parse(R"({"items":[]})"));
  const std::vector<InlineCompletionItem> bare = {item};
  const Json expected = Json::parse(
      R"({"items":[{"insertText":"foo;","range":{
    "start" : {"line" : 1, "character" : 2}, "end" : { "line" : 1, "character" : 4 }}
}]
})");
  CHECK(inline_completion_list(bare) == expected);
  item.filterText = "fo";
  item.command = Command{"Accept", "efim.accept", {7, "u"}};
  const Json whole = to_json(item);
  CHECK(whole["filterText"] == "fo");
  CHECK(whole["command"] ==
        Json::parse(R"({"title":"Accept","command":"efim.accept","arguments":[7,"u"]})"));
}

TEST_CASE(
    "initialize is answered with one encoding, incremental sync and static inline completion") {
  const std::vector<std::string> commands = {"efim.accept"};
  const Json expected = Json::parse(R"({
    "capabilities":{"positionEncoding":"utf-16","textDocumentSync":{"openClose":true,"change":2},
      "inlineCompletionProvider":true,"executeCommandProvider":{"commands":["efim.accept"]},
      "workspace":{"workspaceFolders":{"supported":true,"changeNotifications":true}}},
    "serverInfo":{"name":"efimd","version":"0.1"}})");
  CHECK(initialize_result(PositionEncoding::kUtf16, {"efimd", "0.1"}, commands) == expected);
}

TEST_CASE("progress and messages have the protocol's shapes") {
  const Id token{std::string("load")};
  CHECK(work_done_create_params(token) == Json::parse(R"({"token":"load"})"));
  CHECK(
      progress_begin_params(token, "Loading") ==
      Json::parse(
          R"({"token":"load","value":{"kind":"begin","title":"Loading","cancellable":false,"percentage":0}})"));
  CHECK(progress_report_params(token, "half", 250) ==
        Json::parse(
            R"({"token":"load","value":{"kind":"report","message":"half","percentage":100}})"));
  CHECK(progress_end_params(Id{std::int64_t{3}}, "done") ==
        Json::parse(R"({"token":3,"value":{"kind":"end","message":"done"}})"));
  CHECK(message_params(MessageType::kWarning, "w") == Json::parse(R"({"type":2,"message":"w"})"));
}
