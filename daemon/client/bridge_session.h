#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/client/document_mirror.h"
#include "daemon/client/notebooks.h"
#include "daemon/client/workspace_mirror.h"
#include "daemon/config/build.h"
#include "lsp/json_rpc.h"
#include "lsp/position.h"
#include "lsp/protocol.h"

namespace efimd::service {

/// One editor's conversation with the daemon of the moment. It passes messages through and keeps
/// the state that a new daemon must learn. No I/O and no clock: message bodies in, message bodies
/// out. bridge.h moves the bytes and decides when to connect.
///
///   BR-1  The editor sees one server. Each request has one answer, initialize is never answered
///         twice, and a daemon's death is no error.
///   BR-2  A new daemon learns the old one's state: initialize, initialized, the settings and
///         workspace folders, the open documents with their current texts, and the unanswered
///         requests in their order.
///   BR-3  The daemon's own requests and progress end with it. The editor's late answers go
///         nowhere, and open progress is closed.
///   BR-4  A daemon of an earlier build than ours is asked to retire, which it does when it is
///         idle. The next is sought at once, so it has the editor's documents before the next
///         keystroke. If it does not know how to retire, or that build comes back, it serves, and
///         one message to the user says what to do.
///   BR-5  A message to the user is shown once, even if several daemons send it.
///   BR-6  A daemon that leaves for another one, as D-6 and D-7 have it, is sought again at once.
///   BR-7  The daemon knows no notebooks: their code cells are told to it as documents (notebooks.h), and
///         what is said of a cell, as of its place there.
///
///   link:  kNone --connected()--> kGreeting --initialize answered--> kUp
///          any   --disconnected()--> kNone
///
/// Thread: its owner's.  Limits: kPendingMax unanswered requests (more are answered as cancelled by
/// the server).
/// kToldMax messages are remembered as shown (BR-5); more are shown again.
class BridgeSession {
 public:
  static constexpr std::size_t kPendingMax = 1024;
  static constexpr std::size_t kToldMax = 256;

  BridgeSession() = default;
  /// `ours`: the build that daemons should have (BR-4).
  explicit BridgeSession(Build ours) : ours_(std::move(ours)) {}

  /// From here on, who asks for the status waits for a daemon, as with any other request.
  void wait_for_status() { status_waits_ = true; }

  /// A message body, from the editor or the daemon.
  void editor_says(std::string body);
  void daemon_says(std::string body);

  /// The editor sent a message that is too large to be read, such as a file that it opened.
  void skipped(std::size_t bytes);

  /// processId of initialize; nullopt before it, and if it names none.
  std::optional<std::int64_t> editor_process() const;

  void connected();
  void disconnected();
  /// No daemon is available for now. Answers pending requests with nothing, and a pending
  /// initialize with the reason. Tells the user once per outage.
  void give_up(const std::string& reason);

  /// The last daemon served for a while: the next outage is reported again.
  void forget_outage() { outage_told_ = false; }

  /// Whether to look for a daemon: a request waits for one, or the editor said something since the
  /// last one died. An idle editor does not bring back a daemon that was stopped, nor does one that
  /// asks for its status: without a daemon the answer is null.
  bool wants_daemon() const;
  /// Whether the daemon has yet to answer initialize.
  bool is_greeting() const { return link_ == Link::kGreeting && greeting_; }
  /// Whether the daemon has yet to answer something of the editor's.
  bool is_asking() const { return link_ == Link::kUp && !pending_.empty(); }
  /// Asks the daemon for what it answers at once in any state.
  void ask_sign_of_life();
  /// The reason if the connection is of no use: the daemon refused to initialize or sent nonsense.
  const std::optional<std::string>& hang_up_reason() const { return hang_up_; }
  /// Whether the daemon said that it was asked to finish. Its end is no failure then.
  bool daemon_leaves() const { return daemon_leaves_; }
  /// Set once the editor sent `exit`: 0 after a shutdown, else 1.
  std::optional<int> exit_code() const { return exit_code_; }

  /// Bodies to send now, in order; the caller takes them.
  std::vector<std::string> take_for_editor() { return std::exchange(for_editor_, {}); }
  std::vector<std::string> take_for_daemon() { return std::exchange(for_daemon_, {}); }

 private:
  enum class Link { kNone, kGreeting, kUp };
  struct Pending {
    lsp::Id id;
    std::string method;
    std::string body;
    bool cancelled = false;
    std::optional<std::uint32_t> first_line = {};  ///< of its cell, in the document (BR-7)
  };
  struct Greeting {
    lsp::Id id;  ///< the editor's
    lsp::Json params;
    bool answered = false;
  };

  void on_editor_request(lsp::Message& message, std::string body);
  void on_editor_notification(lsp::Message& message, std::string body);
  void on_editor_response(const lsp::Message& message);
  void on_notebook(const lsp::Message& message);
  void on_initialize(const lsp::Message& message);
  void on_cancel(const lsp::Json& params);
  void on_daemon_response(const lsp::Message& message, std::string body);
  void on_daemon_request(const lsp::Message& message);
  void on_greeting_answered(const lsp::Message& message);
  void ask_build();
  void on_build_answered(const lsp::Message& message);
  void tell(lsp::MessageType type, const std::string& text);
  /// Whether the user has not been shown this message (BR-5).
  bool is_news(const lsp::Json& params);
  void note_progress(const lsp::Json& params);
  bool accept_encoding(const lsp::Json& result);
  void replay();
  void answer_empty(const Pending& request);
  void answer_cancelled(const lsp::Id& id);
  bool is_of_running(const std::string& method) const;
  void to_editor(std::string body) { for_editor_.push_back(std::move(body)); }
  void to_daemon(std::string body) { for_daemon_.push_back(std::move(body)); }

  std::optional<Build> ours_;
  std::optional<lsp::Id> version_id_;    ///< of the unanswered efim/version
  std::optional<std::string> retiring_;  ///< the build of the daemon that was asked to retire
  std::set<std::string> retired_;        ///< builds that retired
  std::set<std::string> told_;
  Link link_ = Link::kNone;
  std::optional<Greeting> greeting_;
  lsp::Id greeting_id_;  ///< of the initialize request that this daemon got from us
  std::uint64_t ids_made_ = 0;
  bool initialized_ = false;
  bool shut_down_ = false;
  bool touched_ = false;  ///< the editor said something that no daemon has received
  bool outage_told_ = false;
  bool status_waits_ = false;
  bool daemon_leaves_ = false;
  bool another_comes_ = false;  ///< after the one that leaves
  std::optional<int> exit_code_;
  std::optional<std::string> hang_up_;
  std::optional<lsp::PositionEncoding> encoding_;
  DocumentMirror documents_;
  Notebooks notebooks_;
  WorkspaceMirror workspace_;
  bool registered_ = false;  ///< the editor was asked for notices of files
  std::deque<Pending> pending_;
  /// The name that the editor sees -> the daemon's id.
  std::map<std::string, lsp::Id> daemon_requests_;
  std::set<std::string> progress_;  ///< tokens (as JSON) that the daemon began and has not ended
  std::vector<std::string> for_editor_;
  std::vector<std::string> for_daemon_;
};

}  // namespace efimd::service
