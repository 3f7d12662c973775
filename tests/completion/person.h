#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/completion/answer/worker.h"
#include "daemon/completion/pace.h"
#include "tests/completion/harness.h"
#include "tests/completion/wide.h"

namespace efimd::test {

using namespace completion;

inline constexpr engine::TokenId kMark = 1;

inline std::shared_ptr<EngineScript> script_with_files() {
  auto script = std::make_shared<EngineScript>();
  script->window_tokens = engine_window_for(kWide);
  script->tokenizer.files.place = engine::FimFiles::Place::kBeforePrefix;
  script->tokenizer.files.shows_others = true;
  script->tokenizer.files.mark = kMark;
  script->tokenizer.files.after_path = "\n";
  return script;
}

inline context::HeadPtr head_of(const std::string& declarations) {
  context::Head head;
  if (!declarations.empty()) head.slots.push_back({"other.h", declarations, {}, "imported"});
  return std::make_shared<const context::Head>(std::move(head));
}

/// One person with two files, and the worker that the daemon would run, on the test's own thread.
class Person {
 public:
  explicit Person(int line_count, bool shows_edits = false)
      : text_a(lines(line_count)),
        text_b(lines(line_count / 2) + "// b\n"),
        worker(std::make_unique<ScriptedEngine>(script),
               {.budgets = wide_budgets(),
                .documents_max = 4,
                .ask_head = [this](HeadQuestion asked) { questions.push_back(std::move(asked)); },
                .shows_edits = shows_edits}) {
    script->continuation = [this](const ScriptedPrompt& prompt) {
      seen = prompt;
      return std::string("f();");
    };
  }

  Receipt ask(const std::string& uri = "file:///p/a.c") {
    Request request;
    request.document = {1, uri};
    text::Document& document = uri.ends_with("a.c") ? text_a : text_b;
    std::size_t& at = cursors[uri];
    const std::string_view text = document.snapshot()->bytes();
    at = std::min(text.find('\n', std::min(at == 0 ? text.size() / 2 : at, text.size() - 1)),
                  text.size());
    request.snapshot = document.snapshot();
    request.cursor = at;
    request.file = {"p", uri.substr(10)};
    request.home = projects.contains(uri) && projects[uri].empty()
                       ? TextHome{}
                       : TextHome{projects.contains(uri) ? projects[uri] : "/p", uri.substr(7)};
    request.options.recall = false;
    request.options.tokens_max = 8;
    request.arrived = std::chrono::steady_clock::now();
    seen = {};
    const Job job(request, [](const Outcome&) {});
    const Answer answer = worker.serve(job);
    REQUIRE_FALSE(answer.outcome.superseded);
    return answer.outcome.receipt;
  }
  void type(const std::string& text, const std::string& uri = "file:///p/a.c") {
    text::Document& document = uri.ends_with("a.c") ? text_a : text_b;
    std::size_t& at = cursors[uri];
    REQUIRE(document.replace(at, at, text));
    at += text.size();
  }
  void show(const std::string& declarations, const std::string& uri = "file:///p/a.c") {
    worker.show_head({{1, uri}, head_of(declarations)});
  }
  void rest() { CHECK(worker.idle({}) == kNever); }
  std::shared_ptr<EngineScript> script = script_with_files();
  text::Document text_a, text_b;
  std::map<std::string, std::size_t> cursors;
  std::map<std::string, std::string> projects;  ///< by URI, "/p" unless named; "": not for recall
  std::vector<HeadQuestion> questions;
  Worker worker;
  ScriptedPrompt seen;
};

}  // namespace efimd::test
