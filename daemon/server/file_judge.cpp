#include "daemon/server/file_judge.h"

#include <boost/asio/post.hpp>
#include <filesystem>
#include <mutex>
#include <utility>

#include "daemon/files/project_files.h"
#include "daemon/files/repository.h"
#include "daemon/files/secrets.h"
#include "lsp/uri.h"

namespace efimd::service {

namespace asio = boost::asio;
namespace fs = std::filesystem;

struct FileJudge::Link {
  std::mutex mutex;
  asio::io_context* io = nullptr;

  void post(std::function<void()> work) {
    const std::lock_guard lock(mutex);
    if (io != nullptr) asio::post(*io, std::move(work));
  }
};

FileFacts facts_of(const Exclusions& exclusions, const std::string& uri) {
  FileFacts facts;
  facts.exclusion = exclusions.judge(uri);
  facts.file = file_name_of(uri);
  const Exclusions::Reason reason = facts.exclusion.reason;
  if (reason == Exclusions::Reason::kNone || reason == Exclusions::Reason::kScheme)
    facts.home = text_home_of(uri);
  return facts;
}

FileFacts facts_without_asking(std::string_view uri) {
  FileFacts facts;
  const auto path = lsp::path_of(uri);
  const std::string name = path ? *path : "/" + lsp::base_name(uri);
  if (std::string pattern = secret_by_name(name); !pattern.empty())
    facts.exclusion = {Exclusions::Reason::kSecret, std::move(pattern)};
  else
    facts.exclusion = {Exclusions::Reason::kUnknown, "its file system does not answer"};
  if (path) facts.file.path = fs::path(*lsp::text_path_of(uri)).filename().generic_string();
  return facts;
}

FileJudge::FileJudge(asio::io_context& io, Settings settings)
    : io_(io), settings_(std::move(settings)), link_(std::make_shared<Link>()) {
  link_->io = &io_;
  if (!settings_.threads) settings_.threads = std::make_shared<FileThreads>();
  if (!settings_.facts)
    settings_.facts = [exclusions = settings_.exclusions](const std::string& uri) {
      return facts_of(exclusions, uri);
    };
}

FileJudge::~FileJudge() {
  const std::lock_guard lock(link_->mutex);
  link_->io = nullptr;
}

void FileJudge::judge(std::uint64_t session, const std::string& uri, Judged judged) {
  auto facts = std::make_shared<FileFacts>();
  begin({session + 1, settings_.patience,
         [facts, uri, find = settings_.facts] { *facts = find(uri); },
         [facts, judged] { judged(*facts); }, [uri, judged] { judged(facts_without_asking(uri)); },
         Late::kIsTold});
}

void FileJudge::begin(Question question) {
  const std::uint64_t number = ++last_;
  const bool taken = settings_.threads->post(
      question.key, [this, number, link = link_, ask = std::move(question.ask)] {
        ask();
        link->post([this, number] { answered(number); });
      });
  auto clock = std::make_unique<asio::steady_timer>(
      io_, taken ? question.patience : std::chrono::milliseconds(0));
  clock->async_wait([this, number](boost::system::error_code cancelled) {
    if (!cancelled) late(number);
  });
  asked_[number] = {std::move(question.answered), std::move(question.late),
                    taken ? question.answer_after_late : Late::kIsDropped, std::move(clock)};
}

void FileJudge::answered(std::uint64_t number) {
  const auto asked = asked_.extract(number);
  if (!asked.empty()) asked.mapped().answered();
}

void FileJudge::late(std::uint64_t number) {
  const auto found = asked_.find(number);
  if (found == asked_.end()) return;
  const auto tell = std::move(found->second.late);
  if (found->second.answer_after_late == Late::kIsDropped) asked_.erase(found);
  if (tell) tell();
}

}  // namespace efimd::service
