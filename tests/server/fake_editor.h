#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "daemon/server/session.h"

namespace efimd::test {

using Json = nlohmann::json;

/// The daemon around a session: keeps what it is asked for until the test answers.
class FakeHost : public service::SessionHost {
 public:
  struct Submitted {
    completion::Request request;
    std::function<void(completion::Outcome)> done;
  };

  FakeHost();
  const service::Config& config() const override { return settings; }
  spdlog::logger& log() override { return *logger; }
  void complete(completion::Request request,
                std::function<void(completion::Outcome)> done) override {
    submitted.push_back({std::move(request), std::move(done)});
  }
  void close_document(completion::DocumentKey document) override { closed.push_back(document); }
  void open_document(completion::OpenedDocument document) override {
    opened.push_back(std::move(document));
  }
  void focus_document(completion::DocumentKey document) override { focused.push_back(document); }
  void dismiss_suggestion(completion::Dismissal dismissal) override {
    dismissed.push_back(std::move(dismissal));
  }
  service::TextBudget& text_budget() override { return texts; }
  void judge(const completion::DocumentKey& document, service::FileJudge::Judged judged) override {
    if (!judges_at_once) return waiting_judgements.push_back(std::move(judged));
    judged(service::facts_of(excluded, document.uri));
  }
  void cache(std::uint64_t, service::CacheRequest request,
             std::function<void(Result<Json>)> done) override {
    cache_requests.push_back(request);
    done(Json{{"documents", 0}});
  }
  void look_at_project(const completion::TextHome& home) override {
    projects.push_back(home.project);
  }
  void revise_document(const completion::DocumentKey&, const completion::TextHome& home,
                       text::SnapshotPtr snapshot) override {
    revised.emplace_back(home.path, std::move(snapshot));
  }
  void leave_project(const std::string& project) override { left.push_back(project); }
  void file_changed(const std::string& path) override { changed_files.push_back(path); }
  void forget_text(const completion::TextHome& home) override { forgotten.push_back(home.path); }
  std::optional<service::FoundDocument> find_document(
      std::uint64_t, const lsp::FindDocumentParams& params) const override {
    sought = params;
    return found;
  }
  void count_silence(const std::string& reason) override { silences.push_back(reason); }
  service::ModelProgress model_progress() const override { return model; }
  Json status() const override { return {{"pid", 1}}; }
  void stop() override { stopped = true; }
  void retire() override { retired = true; }

  service::Config settings;
  std::ostringstream logged;
  std::shared_ptr<spdlog::logger> logger;
  std::vector<Submitted> submitted;
  std::vector<completion::DocumentKey> closed;
  std::vector<completion::OpenedDocument> opened;
  std::vector<completion::DocumentKey> focused;
  std::vector<completion::Dismissal> dismissed;
  service::TextBudget texts;
  mutable lsp::FindDocumentParams sought;
  bool judges_at_once = true;
  std::vector<service::FileJudge::Judged> waiting_judgements;
  service::Exclusions excluded{{"private/"}, false};
  std::vector<service::CacheRequest> cache_requests;
  std::vector<std::string> silences;
  std::optional<service::FoundDocument> found;
  std::vector<std::string> projects;
  std::vector<std::string> left;
  std::vector<std::string> changed_files;
  std::vector<std::pair<std::string, text::SnapshotPtr>> revised;
  std::vector<std::string> forgotten;
  service::ModelProgress model{completion::EngineState::kReady, 1.0, {}};
  bool stopped = false;
  bool retired = false;
};

/// An editor that talks to one session in this thread and keeps what it was sent.
class FakeEditor {
 public:
  FakeEditor();

  /// Initializes with receipts on and `capabilities`; `options` are initializationOptions.efim.
  void initialize(Json capabilities = Json::object(), Json options = {{"receipts", true}});
  service::Session::Next send(const std::string& body) {
    auto next = session->receive(body);
    for (; next == service::Session::Next::kUnfinished; next = session->go_on()) ++parts;
    return next;
  }
  service::Session::Next send(const Json& message) { return send(message.dump()); }
  void request(const Json& id, const std::string& method, const Json& params = nullptr);
  void notify(const std::string& method, const Json& params = nullptr);

  void open(const std::string& text, const std::string& uri = kUri);
  /// One change of [line:character, line:character) to `text`.
  void change(int version, Json range, const std::string& text);
  void complete(const Json& id, int line, int character, const std::string& uri = kUri);

  /// The answers to `id` so far: S-2 wants exactly one.
  std::vector<Json> answers(const Json& id) const;
  /// The only answer to `id`; fails the test when there is another number of them.
  Json answer(const Json& id) const;
  /// Params of every notification or request `method` that was sent.
  std::vector<Json> sent(const std::string& method) const;
  /// What the completion service was given last.
  FakeHost::Submitted& last_submitted();

  static constexpr char kUri[] = "file:///src/a.cpp";
  Json folders = nullptr;  ///< workspaceFolders of initialize
  int parts = 0;           ///< in which messages were done, beyond one each
  FakeHost host;
  std::vector<Json> messages;
  std::shared_ptr<service::Session> session;
};

inline Json range(int line, int begin, int end_line, int end) {
  return {{"start", {{"line", line}, {"character", begin}}},
          {"end", {{"line", end_line}, {"character", end}}}};
}

/// A suggestion of `text` in place of bytes [begin, end).
completion::Outcome suggestion(std::string text, std::size_t begin, std::size_t end);
completion::Outcome silence(std::string reason);

}  // namespace efimd::test
