#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "daemon/completion/completion.h"
#include "tests/support/marked.h"
#include "tests/support/scripted_engine.h"

namespace efimd::test {

/// A completion service over a scripted engine, and an editor with documents.
///
/// The window is fixed, so that nothing is measured: what the engine counts is what requests cost.
class Harness {
 public:
  using Outcome = completion::Outcome;

  explicit Harness(std::shared_ptr<EngineScript> script_ = std::make_shared<EngineScript>(),
                   completion::CompletionService::Settings settings = fixed_window())
      : Harness(script_, std::move(settings),
                [s = script_] { return std::make_unique<ScriptedEngine>(s); }) {}
  using Load = std::function<Result<std::unique_ptr<engine::Engine>>()>;
  Harness(std::shared_ptr<EngineScript> script_, completion::CompletionService::Settings settings,
          Load load)
      : script(std::move(script_)),
        service(std::make_unique<completion::CompletionService>(
            [load = std::move(load)](const auto&, auto) { return load(); }, settings,
            [this] {
              if (!std::exchange(has_loaded, true)) loaded.set_value();
            })) {
    loaded.get_future().wait();
  }

  static completion::CompletionService::Settings fixed_window() {
    completion::CompletionService::Settings settings;
    settings.prompt_tokens_max = 2048;
    settings.background = [] { return false; };  // what requests cost is what is counted
    return settings;
  }

  /// Opens `uri`, or makes its text this; the cursor is kept for ask().
  void set(const std::string& marked_text, const std::string& uri = "file:///a") {
    const Marked place = marked(marked_text);
    documents.insert_or_assign(uri, text::Document(place.text));
    cursors[uri] = place.cursor;
  }
  /// Replaces `removed` bytes at the cursor's offset `from` and puts the cursor after `text`.
  void type(const std::string& text, const std::string& uri = "file:///a") {
    std::size_t& cursor = cursors[uri];
    if (!documents.at(uri).replace(cursor, cursor, text)) std::abort();
    cursor += text.size();
  }
  void erase(std::size_t bytes, const std::string& uri = "file:///a") {
    std::size_t& cursor = cursors[uri];
    if (!documents.at(uri).replace(cursor - bytes, cursor, "")) std::abort();
    cursor -= bytes;
  }
  void accept(const completion::Item& item, const std::string& uri = "file:///a") {
    if (!documents.at(uri).replace(item.replace_begin, item.replace_end, item.text)) std::abort();
    cursors[uri] = item.replace_begin + item.text.size();
  }

  void dismiss(const std::string& uri = "file:///a") { dismiss(documents.at(uri).snapshot(), uri); }
  void dismiss(text::SnapshotPtr snapshot, const std::string& uri) {
    completion::Dismissal dismissal;
    dismissal.document.session = 1;
    dismissal.document.uri = uri;
    dismissal.snapshot = std::move(snapshot);
    service->dismiss(std::move(dismissal));
  }

  completion::Request request(const std::string& uri = "file:///a") {
    completion::Request made;
    made.document = {1, uri};
    made.snapshot = documents.at(uri).snapshot();
    made.cursor = cursors[uri];
    made.options = options;
    made.arrived = std::chrono::steady_clock::now();
    return made;
  }
  std::future<Outcome> submit(completion::Request request) {
    auto promise = std::make_shared<std::promise<Outcome>>();
    auto answer = promise->get_future();
    service->submit(std::move(request),
                    [promise](Outcome outcome) { promise->set_value(std::move(outcome)); });
    return answer;
  }
  std::future<Outcome> submit(const std::string& uri = "file:///a") { return submit(request(uri)); }
  Outcome ask(const std::string& uri = "file:///a") { return submit(uri).get(); }
  /// The suggestion's text, or "-" and why there is none.
  std::string shown(const std::string& uri = "file:///a") {
    const Outcome outcome = ask(uri);
    return outcome.item ? outcome.item->text : std::string("-").append(outcome.receipt.reason);
  }

  std::shared_ptr<EngineScript> script;
  std::promise<void> loaded;
  bool has_loaded = false;  ///< the engine thread's
  completion::Options options;
  std::map<std::string, text::Document> documents;
  std::map<std::string, std::size_t> cursors;
  std::unique_ptr<completion::CompletionService> service;  ///< last: it is gone first
};

/// A script that always continues with `text`.
inline std::shared_ptr<EngineScript> says(std::string text) {
  auto script = std::make_shared<EngineScript>();
  script->continuation = [text = std::move(text)](const ScriptedPrompt&) { return text; };
  return script;
}

}  // namespace efimd::test
