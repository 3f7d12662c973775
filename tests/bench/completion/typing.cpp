#include "tests/bench/completion/typing.h"

#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "daemon/text/document.h"
#include "lsp/uri.h"
#include "tests/bench/completion/bounded_queue.h"

namespace efimd::bench {

namespace {

using Clock = std::chrono::steady_clock;

/// Answers on their way to the typist, who looks at each key. More are on the way only if the engine
/// hung for as many keys.
constexpr std::size_t kAnswersMax = 4096;

double ms_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

double cpu_s() {
  ::rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const ::timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Arrived {
  std::uint64_t key = 0;  ///< that it answers
  Clock::time_point asked, at;
  completion::Outcome outcome;
};

/// The grey text after the cursor, as an editor shows it: typing what it says leaves the rest.
struct Ghost {
  std::string text;
  Clock::time_point since;

  /// Another answer: what was there already goes on being read.
  void show(std::string shown, Clock::time_point now) {
    const bool same = !text.empty() && (shown.starts_with(text) || text.starts_with(shown));
    if (!same) since = now;
    text = std::move(shown);
  }
  void typed(std::string_view key) {
    if (text.starts_with(key))
      text.erase(0, key.size());
    else
      text.clear();
  }
};

/// One person at one file.
class Typing {
 public:
  Typing(BenchService& bench, const std::string& path, const Exercise& exercise,
         const TypingOptions& options, TypingResult& result)
      : bench_(bench),
        uri_(lsp::file_uri("/typed/" + path)),
        options_(options),
        result_(result),
        typist_(options.seed),
        document_(exercise.open),
        cursor_(exercise.cursor),
        rest_(exercise.typed),
        arrived_(std::make_shared<BoundedQueue<Arrived>>(kAnswersMax)) {}

  Result<void> run() {
    const double cpu_begin = cpu_s();
    const auto begin = Clock::now();
    auto next = begin;
    ask();
    bool line_start = true;
    while (!rest_.empty()) {
      next += std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double, std::milli>(typist_.pause_ms(line_start) / options_.speed));
      std::this_thread::sleep_until(next);
      while (std::optional<Arrived> arrived = arrived_->try_pop()) look_at(std::move(*arrived));
      const std::string key(rest_.substr(0, next_bytes(Clock::now())));
      line_start = key[0] == '\n' || key[0] == '\r';
      if (auto edited = document_.replace(cursor_, cursor_, key); !edited) return edited;
      cursor_ += key.size();
      rest_.remove_prefix(key.size());
      ghost_.typed(key);
      ++result_.keys;
      ask();
    }
    result_.typing_s += ms_between(begin, Clock::now()) / 1e3 * options_.speed;
    result_.cpu_s += cpu_s() - cpu_begin;
    while (outstanding_ > 0) look_at(*arrived_->pop());
    return {};
  }

 private:
  /// What the next key brings: a suggestion, when one was there long enough, or what it types.
  std::size_t next_bytes(Clock::time_point now) {
    const bool read = ms_between(ghost_.since, now) * options_.speed >= kReadMs;
    const std::size_t accepted = read ? acceptable_bytes(ghost_.text, rest_) : 0;
    if (accepted == 0) return key_bytes(rest_);
    ++result_.accepted;
    return accepted;
  }

  /// The first request is of no key.
  static constexpr std::uint64_t kOpening = 1;

  void ask() {
    completion::Request request;
    request.document = {1, uri_};
    request.home = {"/typed", uri_};  // the files that are typed are a project of their own
    request.snapshot = document_.snapshot();
    request.cursor = cursor_;
    request.options = bench_.options();
    const auto at = request.arrived = Clock::now();
    ++outstanding_;
    bench_.completions().submit(
        std::move(request), [arrived = arrived_, key = ++asked_, at](completion::Outcome outcome) {
          (void)arrived->push({key, at, Clock::now(), std::move(outcome)});
        });
  }

  void count(const Arrived& arrived) {
    ++result_.answered;
    if (arrived.outcome.receipt.source == "typed-through") ++result_.typed_through;
    if (!arrived.outcome.item) return;
    ++result_.suggested;
    result_.suggestion_ms.add(ms_between(arrived.asked, arrived.at));
  }

  void look_at(Arrived arrived) {
    --outstanding_;
    if (arrived.outcome.superseded) return;
    if (arrived.key > kOpening) count(arrived);
    if (arrived.key != asked_) return;  // the text has gone on
    ghost_.show(arrived.outcome.item ? std::move(arrived.outcome.item->text) : "", arrived.at);
  }

  BenchService& bench_;
  const std::string uri_;
  const TypingOptions options_;
  TypingResult& result_;
  Typist typist_;
  text::Document document_;
  std::size_t cursor_;
  std::string_view rest_;  ///< to be typed
  Ghost ghost_;
  std::uint64_t asked_ = 0;
  std::size_t outstanding_ = 0;
  /// Shared, for the engine thread may still be in push() when the last answer is taken.
  std::shared_ptr<BoundedQueue<Arrived>> arrived_;
};

}  // namespace

double TypingResult::saved_share() const {
  const auto by_hand = static_cast<double>(keys_by_hand);
  return keys_by_hand == 0 ? 0 : (by_hand - static_cast<double>(keys)) / by_hand;
}

double TypingResult::cpu_s_per_minute() const { return typing_s > 0 ? cpu_s / (typing_s / 60) : 0; }

Result<void> type_exercise(BenchService& bench, const std::string& path, const Exercise& exercise,
                           const TypingOptions& options, TypingResult& result) {
  result.keys_by_hand += keys_of(exercise.typed);
  return Typing(bench, path, exercise, options, result).run();
}

}  // namespace efimd::bench
