// Seeded mutations of real messages: whatever comes, readers answer or refuse; they never crash,
// hang or lose count.
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "lsp/framing.h"
#include "lsp/json_rpc.h"
#include "lsp/notebook.h"
#include "lsp/protocol.h"
#include "lsp/uri.h"

using namespace efimd;
using namespace efimd::lsp;

namespace {

const std::vector<std::string> kSeeds = {
    R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"capabilities":{"general":{"positionEncodings":["utf-8"]},"window":{"workDoneProgress":true}},"initializationOptions":{"efim":{"maxTokens":8,"stop":"line","temperature":0.2}}}})",
    R"({"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///a%20b","version":2},"contentChanges":[{"range":{"start":{"line":0,"character":1},"end":{"line":0,"character":1}},"text":"\ud83d\ude00\r\n"}]}})",
    R"({"jsonrpc":"2.0","id":"x","method":"textDocument/inlineCompletion","params":{"textDocument":{"uri":"untitled:1"},"position":{"line":3,"character":9},"context":{"triggerKind":2}}})",
    R"({"jsonrpc":"2.0","id":4,"error":{"code":-32800,"message":"cancelled"}})",
    R"({"jsonrpc":"2.0","method":"notebookDocument/didChange","params":{"notebookDocument":{"uri":"file:///a.ipynb"},"change":{"cells":{"structure":{"array":{"start":0,"deleteCount":1,"cells":[{"kind":2,"document":"c:1"}]},"didOpen":[{"uri":"c:1","text":""}],"didClose":[{"uri":"c:0"}]},"textContent":[{"document":{"uri":"c:1"},"changes":[{"text":"x"}]}]}}}})",
};

std::string mutated(std::string text, std::mt19937_64& random) {
  static const std::vector<std::string> kPieces = {"\"",
                                                   "\\",
                                                   "\\u",
                                                   "\\ud800",
                                                   "{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   ",",
                                                   ":",
                                                   "null",
                                                   "-1",
                                                   "1e99",
                                                   "\xFF",
                                                   "\xE2\x82",
                                                   "\r\n",
                                                   "Content-Length: 3\r\n\r\n",
                                                   "\0"};
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < changes; ++i) {
    const std::size_t at = random() % (text.size() + 1);
    switch (random() % 3) {
      case 0:
        text.erase(at, random() % 8);
        break;
      case 1:
        text.insert(at, kPieces[random() % kPieces.size()]);
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random());
    }
  }
  return text;
}

/// An error shows foreign bytes escaped or as valid text, and not at length.
void check_error(const Error& error) {
  CHECK_FALSE(error.what.empty());
  CHECK(error.what.size() < 1000);
  CHECK(utf8::valid_prefix(error.what) == error.what.size());
}

template <class Params>
void read_params(const Json& params) {
  if (const Result<Params> read = params_of<Params>(params); !read) check_error(read.error());
}

}  // namespace

TEST_CASE("mutated bodies are read or refused") {
  std::mt19937_64 random(1);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string body = mutated(kSeeds[random() % kSeeds.size()], random);
    const tl::expected<Message, BadMessage> message = parse_message(body);
    if (!message) {
      check_error(message.error().error);
      continue;
    }
    ++accepted;
    read_params<InitializeParams>(message->params);
    read_params<DidOpenTextDocumentParams>(message->params);
    read_params<DidChangeTextDocumentParams>(message->params);
    read_params<InlineCompletionParams>(message->params);
    read_params<ExecuteCommandParams>(message->params);
    read_params<DidChangeConfigurationParams>(message->params);
    read_params<EfimDidFocusParams>(message->params);
    read_params<EfimDidShowParams>(message->params);
    read_params<EfimDidDismissParams>(message->params);
    read_params<EfimDidPartiallyAcceptParams>(message->params);
    read_params<CancelParams>(message->params);
    read_params<FindDocumentParams>(message->params);
    read_params<DidOpenNotebookDocumentParams>(message->params);
    read_params<DidChangeNotebookDocumentParams>(message->params);
    const std::string again =
        json_text(message->params);  // what was read can be written and read again
    CHECK(parse_json(again).value() == message->params);
  }
  CHECK(accepted > 1000);
}

TEST_CASE("mutated streams end in bodies or one error, however they are cut") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 3000; ++round) {
    std::string stream;
    for (const std::string& seed : kSeeds) stream += framed(seed.substr(0, random() % 40));
    stream = mutated(stream, random);
    const auto outcome = [&](std::size_t piece_max) {
      FrameReader reader;
      std::vector<std::string> seen;
      for (std::size_t at = 0; at < stream.size();) {
        const std::size_t piece = 1 + random() % piece_max;
        reader.feed(std::string_view(stream).substr(at, piece));
        at += piece;
        for (auto body = reader.next(); !body || *body; body = reader.next()) {
          if (!body) {
            check_error(body.error());
            seen.push_back("error");
            return seen;
          }
          seen.push_back(**body);
        }
      }
      return seen;
    };
    CHECK(outcome(1) == outcome(stream.size() + 1));
  }
}

TEST_CASE("mutated URIs are read or refused and always displayable") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20000; ++round) {
    const std::string uri = mutated("file:///c%3A/caf%C3%A9/x.cpp?q#f", random);
    const Result<std::string> path = path_of(uri);
    if (path) {
      CHECK(path->find('\0') == std::string::npos);
    } else {
      check_error(path.error());
    }
    const std::string shown = display(uri);
    CHECK(utf8::valid_prefix(shown) == shown.size());
  }
}
