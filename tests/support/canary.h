#pragma once

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lsp/framing.h"

namespace efimd::test {

/// Editors' messages, broken at random, with a canary for text in them: in every string, in member
/// names, in numbers. The pieces repeat, so that any 4 bytes of text that a log quotes are found.
class CanaryMessages {
 public:
  explicit CanaryMessages(std::uint64_t seed) : random_(seed) {}

  static constexpr char kText[] = "QZQZQZQZQZQZQZQZ";
  static constexpr std::int64_t kNumber = 7777777777777;

  /// Whether `log` holds a piece of text.
  static bool sings(const std::string& log) {
    return log.find("QZQZ") != std::string::npos || log.find("7777") != std::string::npos;
  }

  /// A body: well-formed JSON with wrong values, or that with bytes changed.
  std::string body() {
    Json message = seeds()[below(seeds().size())];
    for (std::size_t i = below(4); i > 0; --i) spoil(message, 0);
    std::string text = message.dump();
    return below(2) == 0 ? text : with_broken_bytes(std::move(text));
  }

  /// A frame whose header does not always fit its body.
  std::string frame() {
    const std::string text = body();
    switch (below(6)) {
      case 0:
        return "Content-Length: " + std::to_string(text.size() / 2 + 1) + "\r\n\r\n" + text + text;
      case 1:
        return "Content-Length: " + std::string(kText) + "\r\n\r\n" + text;
      case 2:
        return std::string(kText) + "\r\n\r\n" + text;
      case 3:
        return "Content-Length: " + std::to_string(kNumber) + "\r\n\r\n" + text;
      default:
        return lsp::framed(text);
    }
  }

  /// The first message of an editor that everything serves.
  static std::string initialize() {
    return Json{{"jsonrpc", "2.0"}, {"id", 0}, {"method", "initialize"}, {"params", greeting()}}
        .dump();
  }

 private:
  using Json = nlohmann::json;

  static Json greeting() {
    return {{"processId", nullptr},
            {"clientInfo", {{"name", kText}, {"version", kText}}},
            {"capabilities", Json::object()},
            {"initializationOptions", {{"efim", {{"receipts", true}, {kText, kText}}}}}};
  }

  static const std::vector<Json>& seeds() {
    const auto call = [](const char* method, Json params) {
      return Json{{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
    };
    const Json uri = {{"uri", std::string("file:///") + kText}, {"version", 1}};
    const Json at = {{"line", 0}, {"character", 1}};
    const Json change = {{"range", {{"start", at}, {"end", at}}}, {"text", kText}};
    static const std::vector<Json> kSeeds = [&] {
      std::vector<Json> seeds = {
          call("initialize", greeting()),
          call("textDocument/didOpen",
               {{"textDocument",
                 {{"uri", uri["uri"]}, {"languageId", kText}, {"version", 1}, {"text", kText}}}}),
          call("textDocument/didChange", {{"textDocument", uri}, {"contentChanges", {change}}}),
          call("textDocument/didClose", {{"textDocument", uri}}),
          call("workspace/didChangeConfiguration", {{"settings", {{"efim", {{kText, kText}}}}}}),
          call("$/cancelRequest", {{"id", kText}}),
          call("efim/didFocus", {{"textDocument", uri}}),
          call(kText, {{kText, kText}}),
          call("textDocument/inlineCompletion",
               {{"textDocument", uri}, {"position", at}, {"context", {{"triggerKind", 1}}}}),
          call("workspace/executeCommand", {{"command", kText}, {"arguments", {kText}}})};
      seeds[8]["id"] = 3;
      seeds[9]["id"] = kText;
      return seeds;
    }();
    return kSeeds;
  }

  std::size_t below(std::size_t end) { return random_() % end; }

  /// Replaces one value of the tree, or the name of one member.
  void spoil(Json& value, int depth) {
    if (value.is_structured() && !value.empty() && (depth == 0 || below(4) != 0)) {
      const auto at = std::next(value.begin(), static_cast<std::ptrdiff_t>(below(value.size())));
      if (value.is_object() && below(12) == 0) {
        Json moved = std::move(*at);
        value.erase(at);
        value[kText] = std::move(moved);
        return;
      }
      return spoil(*at, depth + 1);
    }
    const Json wrong[] = {kText, kNumber,          -kNumber,      77777.7777,
                          true,  Json{{kText, 1}}, Json{{kText}}, nullptr};
    value = wrong[below(std::size(wrong))];
  }

  std::string with_broken_bytes(std::string text) {
    static const std::vector<std::string> kPieces = {"\"", "\\", "\\u", "{",    "}",
                                                     "]",  ",",  ":",   "\xFF", kText};
    for (std::size_t i = 1 + below(3); i > 0; --i) {
      const std::size_t at = below(text.size() + 1);
      if (below(2) == 0)
        text.erase(at, below(8));
      else
        text.insert(at, kPieces[below(kPieces.size())]);
    }
    return text;
  }

  std::mt19937_64 random_;
};

}  // namespace efimd::test
