#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/completion/request.h"
#include "daemon/files/exclusions.h"
#include "daemon/files/file_threads.h"
#include "daemon/prompt/path_head.h"

namespace efimd::service {

/// The file system's facts about a document's file.
struct FileFacts {
  Exclusions::Verdict exclusion = {};
  prompt::FileName file = {};
  completion::TextHome home = {};  ///< empty: its text is not shared with recall
};

/// Asks the file system.
FileFacts facts_of(const Exclusions& exclusions, const std::string& uri);
/// The facts without asking it: a name that says secret, else kUnknown.
FileFacts facts_without_asking(std::string_view uri);

/// Judges files on threads of their own, since a file system may stall, and answers in time.
///
/// Thread: io. Nothing is called after the destructor has begun.
class FileJudge {
 public:
  struct Settings {
    Exclusions exclusions;
    /// Until a file counts as unknown. Typing goes on meanwhile; its first completion waits.
    std::chrono::milliseconds patience{200};
    std::shared_ptr<FileThreads> threads;
    /// In place of facts_of(): tests stall here.
    std::function<FileFacts(const std::string& uri)> facts = {};
  };
  FileJudge(boost::asio::io_context& io, Settings settings);
  ~FileJudge();
  FileJudge(const FileJudge&) = delete;
  FileJudge& operator=(const FileJudge&) = delete;

  using Judged = std::function<void(const FileFacts&)>;
  /// `judged` is called on io, later: with the facts; or at the end of patience with what is known
  /// without asking, and once more should the facts come after all.
  void judge(std::uint64_t session, const std::string& uri, Judged judged);

  /// Runs `ask` on a file thread. Then `answered` is called on io, or `late` after `patience`; one of
  /// them, once.
  template <class Answer>
  void ask(std::chrono::milliseconds patience, std::function<Answer()> ask,
           std::function<void(Answer)> answered, std::function<void()> late) {
    auto answer = std::make_shared<Answer>();
    begin({kOwnKey, patience, [=] { *answer = ask(); }, [=] { answered(std::move(*answer)); },
           std::move(late), Late::kIsDropped});
  }

 private:
  static constexpr std::uint64_t kOwnKey = 0;  ///< no session's
  enum class Late { kIsDropped, kIsTold };
  struct Question {
    std::uint64_t key = 0;
    std::chrono::milliseconds patience{};
    std::function<void()> ask;  ///< on a file thread; owns what it writes to
    std::function<void()> answered;
    std::function<void()> late;
    Late answer_after_late = Late::kIsDropped;
  };
  struct Asked {
    std::function<void()> answered;
    std::function<void()> late;
    Late answer_after_late = Late::kIsDropped;
    std::unique_ptr<boost::asio::steady_timer> clock;
  };
  struct Link;
  void begin(Question question);
  void answered(std::uint64_t number);
  void late(std::uint64_t number);

  boost::asio::io_context& io_;
  Settings settings_;
  std::map<std::uint64_t, Asked> asked_;  ///< at most FileThreads::kWaitingMax and its threads
  std::uint64_t last_ = 0;
  std::shared_ptr<Link> link_;  ///< a thread that comes back later finds nobody here
};

}  // namespace efimd::service
