#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/http/answer.h"
#include "net/http/daemon_link.h"
#include "net/http/documents.h"
#include "net/http/model_pages.h"
#include "net/http/recent_answers.h"
#include "net/http/request.h"

namespace efimd::http {

/// What becomes of a request.
struct Outcome {
  enum class Kind { kCompleted, kNotReady, kFailed, kTooLate };
  Kind kind = Kind::kCompleted;
  Completed completed = {};
  std::string why = {};  ///< unless it was completed
};

/// Asks the daemon for the completions that HTTP requests want.
///
///   C-1  A request for the text, cursor and settings of one that waits shares its answer: some
///        clients ask several times at once.
///   C-2  A request that nobody waits for any more is cancelled in the daemon.
///   C-3  A request that wants pieces hears what its answer begins with, each time longer, before the
///        answer.
///   C-4  Each request is told what became of it exactly once, within kAnswerMax, unless it was
///        withdrawn.
///   C-5  A request that a newer one in its document displaced is asked again after that one: of each
///        document the newest, unless a piece of its answer is out. The others get no suggestion.
///        Some clients ask ahead while the user types on, and keep what they get.
///   C-6  The daemon is told of requests that ask ahead (recent_answers.h): it learns nothing of them.
///
/// Thread: that of the io context.
class Completer {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(const Outcome&)>;
  using Ticket = std::uint64_t;
  static constexpr auto kAnswerMax = std::chrono::seconds(60);

  /// For what requests leave open.
  struct Defaults {
    int tokens_max = 64;
    double temperature = 0;
    std::int64_t started_s = 0;  ///< when this server started, in seconds since 1970
  };
  /// Of `ends`, on_message and on_lost are its own.
  Completer(boost::asio::io_context& io, DaemonLink::Ends ends, Defaults defaults);

  using Begun = std::function<void(const std::string& text)>;
  /// `done` is called later, never from inside this call, unless the ticket is withdrawn before; so
  /// is `begun`, before it, if the request is for a stream (C-3).
  Ticket ask(const CompletionRequest& request, Done done, Begun begun = nullptr);
  void withdraw(Ticket ticket);
  /// The daemon's word on its model, asked for now; `done` gets an empty one if it cannot be had
  /// within kAnswerMax.
  Ticket look(std::function<void(const ModelPages&)> done);
  /// A client is there, and will ask: the daemon is started, and loads its model.
  void wake();
  /// What was last heard of the model.
  const ModelPages& pages() const { return pages_; }
  /// Gives up what is late at `now`. It is called each second.
  void end_late(Clock::time_point now);

 private:
  struct Waiter {
    Ticket ticket = 0;
    Done done;
    Clock::time_point arrived;
    Begun begun = nullptr;
  };
  /// A request that the daemon has.
  struct Asked {
    std::string uri;
    std::int32_t version = 0;
    lsp::Position cursor;
    lsp::Json options;
    std::string rest;  ///< of the cursor's line
    CompletionRequest request;
    std::vector<Waiter> waiters;
    std::optional<std::string> text;  ///< answered; the receipt follows
    Clock::time_point deadline;
    bool begun = false;  ///< pieces of its answer are out
  };
  /// C-5.
  struct Displaced {
    CompletionRequest request;
    std::vector<Waiter> waiters;
  };

  struct Look {
    Ticket ticket = 0;
    std::function<void(const ModelPages&)> done;
    Clock::time_point deadline;
  };
  /// A request whose text no document of ours has; the daemon looks whether an editor's has it.
  struct Sought {
    CompletionRequest request;
    Waiter waiter;
  };
  void seek(Sought sought);
  void found(Sought sought, const lsp::Json& document);
  void ask_at(Placed placed, const CompletionRequest& request, std::vector<Waiter> waiters);
  void heard(const lsp::Message& message);
  void answered(std::int64_t id, const lsp::Message& message);
  void receipt(const lsp::Json& params);
  void begun(const lsp::Json& params);
  void finish(std::int64_t id, Outcome outcome);
  bool is_asked_in(const std::string& uri) const;
  void displaced(std::int64_t id);
  void ask_displaced(const std::string& uri);
  void lost(const std::string& why);
  void hand_out(std::vector<Waiter> waiters, const Outcome& outcome);
  void ask_status();
  void tick();
  void end_late_looks(Clock::time_point now);
  void answer_looks(const std::vector<Look>& looks, const ModelPages& pages);
  void give_up(std::int64_t id);
  void note_state(const std::string& name);
  void set_options(const lsp::Json& options);

  boost::asio::io_context& io_;
  DaemonLink link_;
  Documents documents_;
  RecentAnswers recent_;
  ModelPages pages_;
  const Defaults defaults_;
  lsp::Json options_;  ///< of the conversation; null before the first
  std::int64_t last_id_ = 0;
  Ticket last_ticket_ = 0;
  std::map<std::int64_t, Asked> asked_;
  std::map<std::int64_t, Sought> sought_;
  std::map<std::string, Displaced> displaced_;  ///< by URI, each of which asked_ has, too
  std::vector<Look> looks_;                     ///< in the order of their deadlines
  std::optional<std::int64_t> status_id_;
  Clock::time_point used_;
  boost::asio::steady_timer timer_;
};

}  // namespace efimd::http
