#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config/printable.h"
#include "daemon/files/head_keeper.h"
#include "daemon/files/served_uris.h"
#include "daemon/server/connection.h"
#include "daemon/server/daemon.h"
#include "daemon/server/file_judge.h"
#include "daemon/server/lifetime.h"
#include "daemon/server/project_reader.h"
#include "daemon/server/session.h"

namespace efimd::service {

/// The inside of the daemon: sessions, completion service, store, projects.
///
/// Thread: io. Members end in the reverse order: first what posts to io, last the lock (D-1).
class Daemon::Impl : public SessionHost, private Lifetime::Host {
 public:
  /// `listening`: of no use if settings has a passed socket.
  Impl(Settings settings, LockFile lock, UniqueFd listening);
  ~Impl() override;

  void run();
  void stop_from_any_thread();
  void stop_on_signals();

  // SessionHost
  const Config& config() const override { return settings_.config; }
  spdlog::logger& log() override { return *settings_.log; }
  void complete(completion::Request request,
                std::function<void(completion::Outcome)> done) override;
  void close_document(completion::DocumentKey document) override;
  void open_document(completion::OpenedDocument opened) override;
  void revise_document(const completion::DocumentKey& document, const completion::TextHome& home,
                       text::SnapshotPtr snapshot) override {
    service_->change_index(
        [home, snapshot = std::move(snapshot)](recall::Index& index) {
          index.set_document({home.project, home.path}, snapshot);
        },
        document);
  }
  void focus_document(completion::DocumentKey document) override {
    service_->focus(std::move(document));
  }
  void dismiss_suggestion(completion::Dismissal dismissal) override {
    service_->dismiss(std::move(dismissal));
  }
  TextBudget& text_budget() override { return text_budget_; }
  void judge(const completion::DocumentKey& document, FileJudge::Judged judged) override;
  void look_at_project(const completion::TextHome& home) override;
  void leave_project(const std::string& project) override;
  void file_changed(const std::string& path) override;
  void forget_text(const completion::TextHome& home) override;
  void cache(std::uint64_t session, CacheRequest request,
             std::function<void(Result<lsp::Json>)> done) override;
  std::optional<FoundDocument> find_document(std::uint64_t session,
                                             const lsp::FindDocumentParams& sought) const override {
    std::optional<FoundDocument> best;
    for (const auto& [id, connection] : connections_)
      if (id != session) connection->session().find_document(sought, best);
    return best;
  }
  void count_silence(const std::string& reason) override { ++silence_[reason]; }
  ModelProgress model_progress() const override;
  lsp::Json status() const override;
  void stop() override { lifetime_.stop(); }
  void retire() override { lifetime_.retire("a later build asks for it"); }

 private:
  /// Looks on a file thread, since a home's file system may stall (D-7).
  std::function<void(std::function<void(const ConfigLook&)>)> looks_at_config() {
    if (!settings_.look_at_config) return {};
    return [this](std::function<void(const ConfigLook&)> told) {
      judge_->ask<ConfigLook>(kLookMax, settings_.look_at_config, std::move(told), [] {});
    };
  }

  // Lifetime::Host
  void admit(Lifetime::Socket socket) override;
  std::size_t session_count() const override { return connections_.size(); }
  void end_sessions(bool another_comes) override;
  /// As one of the configuration's warnings, which new sessions and the status show, too.
  void show_config_trouble(const std::optional<ConfigWarning>& trouble) override {
    if (trouble == config_trouble_) return;
    std::vector<ConfigWarning>& warnings = settings_.config.warnings;
    if (config_trouble_) std::erase(warnings, *config_trouble_);
    config_trouble_ = trouble;
    if (!trouble) return;
    log().warn("configuration, line {}: {}", trouble->line, printable(trouble->message));
    warnings.insert(warnings.begin(), *trouble);
    for (const auto& [id, connection] : connections_)
      connection->session().tell_configuration({*trouble});
  }

  /// Closes the connection that has been silent for longest, without having been initialized; false
  /// if there is none.
  bool make_room();
  void ended(std::uint64_t id);
  /// An editor uses the document: a purge must find it, and a purge before does not hold any more.
  void serves(const std::string& uri);
  /// Heads show these files.
  void shows(const std::vector<std::string>& uris);
  /// Drops what is held of files that were used longest ago, if there are too many to remember.
  void forget_oldest();
  /// Does what was begun for this session; without memory for it, the session ends.
  void work_for(std::uint64_t session, const std::function<void()>& work);
  /// After an allocation failed somewhere.
  void give_up_stuck();
  /// `factory` with its progress told to the sessions.
  completion::EngineFactory watched(completion::EngineFactory factory);
  void post_change();  // from the engine thread
  void model_changed();

  /// Listens for failures, and removes documents that were excluded after they were stored.
  void begin_store();
  void purge_excluded(std::vector<std::string> uris);
  void read_projects();
  void keep_heads();
  static constexpr std::chrono::seconds kLookMax{1};
  using Answered = std::function<void(Result<lsp::Json>)>;
  void ask_store(const CacheRequest& request, Answered done);
  /// Finds every spelling of the file that the store or a session knows, then does what is asked.
  void find_spellings(CacheRequest request, Answered done);
  void serve_file(CacheRequest request, Answered done);
  /// The purge of a file or folder.
  struct Purge {
    CacheRequest request;
    std::vector<std::string> uris;  ///< that memory has still to forget
    std::size_t tokens = 0;         ///< that memory held before
    Answered done;
  };
  /// One after another idle work would begin between them, some 9 ms each.
  static constexpr std::ptrdiff_t kForgottenAtOnce = 64;
  /// Drops the last of the purge's URIs from memory and the queue, then the others, then from the disk.
  void forget_then_purge(const std::shared_ptr<Purge>& purge);
  std::size_t tokens_in_memory() const;
  /// Memory, which held `tokens`, has forgotten; now the disk does, if anything is kept there.
  void finish_purge(const CacheRequest& request, std::size_t tokens, Answered done);
  /// Recall's text of a file, under the path that its URI says.
  void forget_recalled(const std::string& uri);
  /// The part of the answer that the store cannot know: device tokens, speeds.
  void complete_answer(const CacheRequest& request, lsp::Json& answer) const;

  Settings settings_;
  const LockFile lock_;  // D-1: the first in, the last out
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  // Sessions that io_ still holds at the end give their text back to it.
  TextBudget text_budget_;
  std::size_t unfinished_bytes_ = 0;  ///< of messages that are on their way, of all connections
  boost::asio::io_context io_{1};
  Turns turns_{io_.get_executor()};  ///< of all connections
  Lifetime lifetime_;
  boost::asio::signal_set signals_{io_};
  boost::asio::steady_timer trim_clock_{io_};
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;
  std::uint64_t last_session_ = 0;
  std::map<std::string, std::uint64_t> silence_;
  ServedUris served_;  ///< until they are purged
  std::unique_ptr<FileJudge> judge_;
  std::string remote_trouble_;  ///< of the engine elsewhere, as the log has it
  std::optional<ConfigWarning> config_trouble_;
  std::atomic<bool> change_posted_ = false;
  std::unique_ptr<HeadKeeper> heads_;  ///< null: prompts show no other files. service_ asks it
  std::unique_ptr<completion::CompletionService> service_;  // its thread posts to io_: ends first
  std::unique_ptr<ProjectReader> projects_;  ///< null: nothing is recalled. Delivers to service_
  boost::asio::thread_pool aside_{1};        ///< parses large messages, and posts to io_
};

}  // namespace efimd::service
