#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/completion.h"
#include "daemon/completion/documents/session_memory.h"
#include "daemon/config/config.h"
#include "daemon/server/cache_request.h"
#include "daemon/server/file_judge.h"
#include "daemon/server/status_json.h"
#include "daemon/server/text_budget.h"
#include "daemon/text/document.h"
#include "lsp/json_rpc.h"
#include "lsp/protocol.h"

namespace spdlog {
class logger;
}

namespace efimd::service {

/// The progress of loading the model, for the editor.
struct ModelProgress {
  completion::EngineState state = completion::EngineState::kLoading;
  double progress = 0;
  std::string failure;
  std::string remote_trouble = {};  ///< of the engine elsewhere; empty: none
};

/// An open document of an editor, and how many bytes of what was sought it has.
struct FoundDocument {
  std::size_t alike = 0;
  std::string uri;
  std::string language_id;
  text::SnapshotPtr text;
};

/// A session's view of the daemon around it. Thread: io. Outlives every session.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  virtual const Config& config() const = 0;
  virtual spdlog::logger& log() = 0;
  /// `done` is called on io, later, exactly once, never from inside this call; so is the request's
  /// `partial` before it, any number of times.
  virtual void complete(completion::Request request,
                        std::function<void(completion::Outcome)> done) = 0;
  virtual void close_document(completion::DocumentKey document) = 0;
  virtual void open_document(completion::OpenedDocument opened) = 0;
  /// The editor changed the document: recall finds its text as it is now.
  virtual void revise_document(const completion::DocumentKey& document,
                               const completion::TextHome& home, text::SnapshotPtr snapshot) = 0;
  virtual void focus_document(completion::DocumentKey document) = 0;
  virtual void dismiss_suggestion(completion::Dismissal dismissal) = 0;
  virtual TextBudget& text_budget() = 0;
  /// What the document's file is. `judged` is called on io, now or later: once, or a second time if the
  /// first was that its file system does not answer, and it did later.
  virtual void judge(const completion::DocumentKey& document, FileJudge::Judged judged) = 0;
  /// `done` is called on io, once, now or later.
  virtual void cache(std::uint64_t session, CacheRequest request,
                     std::function<void(Result<lsp::Json>)> done) = 0;
  /// A document of this project was opened or closed, so the project's files are looked at, beside
  /// all other work.
  virtual void look_at_project(const completion::TextHome& home) = 0;
  /// A workspace folder was removed: recall forgets it, unless some session is in it still.
  virtual void leave_project(const std::string& project) = 0;
  /// This file of a project was made, changed or removed; all of them if `path` is empty.
  virtual void file_changed(const std::string& path) = 0;
  /// Recall forgets this text at once: it became secret or excluded.
  virtual void forget_text(const completion::TextHome& home) = 0;
  /// The document of another session than `session` that is most like what is sought, if any is.
  virtual std::optional<FoundDocument> find_document(
      std::uint64_t session, const lsp::FindDocumentParams& sought) const = 0;
  /// Counts a request that was answered with nothing before it reached the completion service.
  /// `reason` is one of a few.
  virtual void count_silence(const std::string& reason) = 0;
  virtual ModelProgress model_progress() const = 0;
  virtual lsp::Json status() const = 0;
  /// Asks the daemon to finish; messages sent before still go out.
  virtual void stop() = 0;
  /// The same, once nobody waits for it or types.
  virtual void retire() = 0;
};

/// The name of an item's command; the editor executes it when the user accepts the whole item.
inline constexpr char kAcceptCommand[] = "efimd.accept";

/// One editor's conversation: the LSP server's states, its open documents and its pending requests.
///
///   S-1  Before initialize, requests get -32002 and notifications are dropped; efim/status,
///        efim/version, efim/retire, efim/cache and efim/stop are answered in every state. After
///        shutdown only exit counts.
///   S-2  Every request is answered exactly once. A document has one pending completion: a newer
///        request answers the older with null at once and stops its work.
///   S-3  "Nothing to suggest" is {items: []}, with the reason in the receipt. Errors are for
///        broken requests and for what the editor cancelled, because VS Code shows other errors.
///   S-4  Only `exit` ends the session; no other message does. Broken frames are the connection's
///        concern.
///
/// Thread: io.  Owns: its documents.  Held by its connection; outcomes find it through a weak
/// pointer.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// kUnfinished: go_on() comes before the next message. kAside: so it does, after work_aside().
  enum class Next { kGoOn, kClose, kUnfinished, kAside };
  /// A message that another thread has parsed, and what became of a large text there.
  struct Prepared {
    tl::expected<lsp::Message, lsp::BadMessage> message;
    std::optional<lsp::DidOpenTextDocumentParams> opened = {};  ///< without its text
    std::optional<Result<text::Document>> document = {};
    std::string secret = {};  ///< why the text is one, if it is
    std::optional<lsp::DidChangeTextDocumentParams> changed = {};
  };
  using Send = std::function<void(std::string body)>;

  Session(std::uint64_t id, SessionHost& host, Send send);

  /// One message from the editor. kClose after exit. A long one is done in parts: others are served between.
  Next receive(std::string_view body);
  /// Thread: any. What takes long of a large message.
  static Prepared prepare(std::string_view body);
  Next receive(Prepared prepared);
  Next go_on();
  /// For another thread, while nothing but end() is called here.
  std::function<void()> work_aside();
  /// The model loaded further, is ready or failed.
  void model_changed();
  /// Shows the user the first thing that is ignored in config.toml.
  void tell_configuration(const std::vector<ConfigWarning>& warnings);
  /// Tells the client that the daemon was asked to finish, so that its end is no failure, and
  /// whether that was for another one.
  void take_leave(bool another_comes);
  /// Call it when the connection is gone. It stops pending work, closes documents, and sends
  /// nothing from then on.
  void end();

  SessionInfo info() const;
  /// Whether initialize was answered: an editor, no passing command.
  bool is_initialized() const { return state_ != State::kFresh; }
  /// The open document that is most like what is sought, if it is more so than `best`.
  void find_document(const lsp::FindDocumentParams& sought,
                     std::optional<FoundDocument>& best) const;
  /// Whether the project is a workspace folder, or a document's.
  bool is_in(const std::string& project) const;

 private:
  enum class State { kFresh, kServing, kShutDown, kEnded };
  enum class Progress { kNone, kAsked, kShown, kOver };

  /// What must be remembered of a request to write its answer and receipt.
  struct Asked {
    lsp::Id id;
    std::string uri;
    std::optional<std::int32_t> version;
    std::string language_id;
    std::uint64_t number = 0;
    std::chrono::steady_clock::time_point arrived = {};
    completion::Options options = {};  ///< as they were when it came
  };
  struct Waiting {
    Asked asked;
    lsp::InlineCompletionParams params;
  };
  struct OpenDocument {
    text::Document document;
    std::optional<std::int32_t> version;
    std::string language_id;
    /// Why it gets no completions until it is reopened; empty if it gets them.
    std::string unusable;
    Exclusions::Verdict exclusion = {};
    prompt::FileName file = {};
    completion::TextHome home = {};
    std::uint64_t opening = 0;  ///< which didOpen of the session this is
    bool judged = false;        ///< whether the three above are known, or known to be unknown
    HeldText held = {};
    std::optional<Waiting> waiting = {};  ///< the newest request, until then
  };
  /// A didChange that is being made. Another thread may be at it.
  struct Revising {
    std::string uri;
    text::Revision revision;
    std::vector<lsp::TextDocumentContentChangeEvent> changes;
    lsp::PositionEncoding encoding = lsp::PositionEncoding::kUtf16;
    std::size_t next = 0;
    std::size_t bytes_touched = 0;  ///< the measure of the time that it took
    Result<void> outcome = {};
    std::string secret = {};  ///< what was inserted is one, and why; once all is made
    bool lost = false;        ///< there was no memory for it on the other thread

    bool is_done() const { return !outcome || next >= changes.size(); }
    void go_on(std::size_t bytes_max);
    Result<void> make_next();
    /// Looks for secrets in what was inserted, and frees it.
    void judge();
  };
  struct Pending {
    lsp::Id id;
    std::stop_source stop;
    std::uint64_t number = 0;
    text::SnapshotPtr snapshot;  ///< of the request; a newer request lets it go
  };
  enum class When { kServing, kAlways };
  struct Method {
    const char* name;
    void (Session::*handler)(const lsp::Message&);
    When when;
  };
  static std::span<const Method> requests();
  static std::span<const Method> notifications();
  static const Method* find(std::span<const Method> methods, std::string_view name);

  void receive_request(const lsp::Message& message);
  void receive_notification(const lsp::Message& message);
  void receive_response(const lsp::Message& message);

  void initialize(const lsp::Message& message);
  void shutdown(const lsp::Message& message);
  void inline_completion(const lsp::Message& message);
  void execute_command(const lsp::Message& message);
  void status(const lsp::Message& message);
  void version(const lsp::Message& message);
  void stop(const lsp::Message& message);
  void retire(const lsp::Message& message);
  void cache(const lsp::Message& message);
  void find_document(const lsp::Message& message);

  void initialized(const lsp::Message& message);
  void did_open(const lsp::Message& message);
  void did_change(const lsp::Message& message);
  void did_close(const lsp::Message& message);
  void did_change_configuration(const lsp::Message& message);
  void did_change_watched_files(const lsp::Message& message);
  void did_change_workspace_folders(const lsp::Message& message);
  void cancel_request(const lsp::Message& message);
  void did_focus(const lsp::Message& message);
  void did_show(const lsp::Message& message);
  void did_dismiss(const lsp::Message& message);
  void did_partially_accept(const lsp::Message& message);

  /// Tells the user, once for a document, why it gets no completions.
  void tell_unusable(const std::string& uri, const OpenDocument& open);
  void add_folder(const std::string& uri);
  /// The document is of another project now.
  void move(const std::string& uri, OpenDocument& open, const completion::TextHome& home);
  void leave_folder(const std::string& folder);
  void enter_folders();
  /// The project of a file that `facts` are of: a workspace folder, if one holds it.
  completion::TextHome home_of(const FileFacts& facts) const;
  /// While the user of a client that watches no files types, the project is looked at once in kLookAgain.
  void look_again(const completion::TextHome& home);
  static constexpr std::chrono::minutes kLookAgain{1};
  /// Files that git ignores by now leave recall, and those that it ignored come to it.
  void judge_documents_again();
  /// After a change that brings a private key (`why`), the document is one with secrets.
  void close_if_secret(const std::string& uri, const std::string& why);
  bool revises_large_text() const;
  void take_options(const lsp::EfimOptions& options);
  void open(lsp::DidOpenTextDocumentParams params, Result<text::Document> document,
            std::string secret);
  /// Takes the changes of `revising_`, which are made.
  void revised();
  std::size_t byte_at(std::string_view bytes, const text::LineIndex& lines,
                      const lsp::Position& position) const;
  lsp::Position position_at(const text::Snapshot& snapshot, std::size_t byte) const;

  /// The file of the document that `opening` opened is known.
  void judged(const std::string& uri, std::uint64_t opening, const FileFacts& facts);
  /// Closes the document if there is no room for its text, or if that is lost, for this reason.
  void weigh(const std::string& uri, OpenDocument& open, std::string lost = {});
  void become_usable(const std::string& uri, OpenDocument& open);
  void answer_unusable(const Asked& asked, const OpenDocument& open);
  void submit(const Asked& asked, const lsp::InlineCompletionParams& params);
  /// The answer begins with this item.
  void begun(const Asked& asked, const lsp::Id& token, const completion::Item& item);
  void finished(const Asked& asked, const completion::Outcome& outcome);
  lsp::InlineCompletionItem item_of(const Asked& asked, const text::Snapshot& snapshot,
                                    const completion::Item& item) const;
  /// `silence` is counted, one of a few; `reason` is what the receipt says, with its numbers.
  void answer_empty(const Asked& asked, const char* silence, const std::string& reason);
  /// Takes the document's pending request, stopped, to be answered by the caller.
  std::optional<Pending> take_pending(const std::string& uri);
  void send_receipt(const Asked& asked, const completion::Receipt& receipt);

  void dispatch(const lsp::Message& message);
  void tell_remote(const std::string& trouble);
  void tell_failure(const std::string& failure);
  void show(lsp::MessageType type, const std::string& text);
  /// Sends efim/state, if the client wants it and it differs from the last one.
  void tell_state();

  void answer(const lsp::Id& id, lsp::Json result);
  void refuse(const lsp::Id& id, lsp::ErrorCode code, std::string_view message);
  void notify(std::string_view method, lsp::Json params);
  /// nullopt if they are bad; then an error went to the sender (a request), or to the log (a notification).
  template <class Params>
  std::optional<Params> params_of(const lsp::Message& message) {
    auto params = lsp::params_of<Params>(message.params);
    if (params) return std::move(*params);
    refuse_params(message, params.error());
    return std::nullopt;
  }
  void refuse_params(const lsp::Message& message, const Error& error);

  const std::uint64_t id_;
  SessionHost& host_;
  Send send_;
  State state_ = State::kFresh;

  std::string client_;
  lsp::PositionEncoding encoding_ = lsp::PositionEncoding::kUtf16;
  completion::Options options_;
  bool receipts_ = false;
  bool states_ = false;
  lsp::Json state_told_;  ///< params of the last efim/state; null before the first
  bool work_done_progress_ = false;
  bool registers_watchers_ = false;
  std::chrono::steady_clock::time_point looked_ = {};  ///< look_again()
  std::vector<std::filesystem::path> folders_;         ///< of the workspace
  Progress progress_ = Progress::kNone;
  bool failure_told_ = false;
  bool remote_trouble_told_ = false;

  std::map<std::string, OpenDocument> documents_;
  std::shared_ptr<Revising> revising_;
  std::optional<Prepared> prepared_;     ///< while it is received
  std::set<std::string> unusable_told_;  ///< URIs, at most kDocumentsMax
  std::map<std::string, Pending> pending_;
  std::uint64_t openings_ = 0;
  std::uint64_t completions_ = 0;
  std::uint64_t shown_ = 0;
  std::uint64_t dismissed_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t accepted_partly_ = 0;
  std::string focused_;  ///< URI; empty if the editor does not report it
};

}  // namespace efimd::service
