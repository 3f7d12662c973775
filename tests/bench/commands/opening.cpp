#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/cli/commands/table.h"
#include "daemon/server/project_reader.h"
#include "lsp/json_rpc.h"
#include "lsp/uri.h"
#include "tests/bench/commands/commands.h"
#include "tests/bench/completion/bench_service.h"
#include "tests/bench/completion/samples.h"
#include "tests/bench/completion/typist.h"
#include "tests/recall/projects.h"

namespace efimd::bench {

namespace fs = std::filesystem;
using lsp::Json;

namespace {

using Clock = std::chrono::steady_clock;

/// When a key is typed: nothing of the project is there, it is being read, or all of it was read.
enum class When { kBefore, kMeanwhile, kAfter };
constexpr std::array kAll = {When::kBefore, When::kMeanwhile, When::kAfter};
constexpr std::array<const char*, kAll.size()> kNames = {"before", "meanwhile", "after"};

/// What keys cost: until the whole answer, until its first token, and what the engine did for it.
struct Costs {
  Samples ms, first_ms, steps, drafted;
};

/// The project, as the daemon reads it: again and again while keys are typed meanwhile.
class Opening {
 public:
  Opening(BenchService& bench, const fs::path& root) : bench_(bench), root_(root) {}

  void prepare(When when) {
    // A reader that is gone may still sort what it has read.
    if (std::exchange(reader_, nullptr)) std::this_thread::sleep_for(kLast);
    if (when == When::kBefore) return forget();
    if (when == When::kMeanwhile || !read_) begin();
    while (when == When::kAfter && !is_read()) std::this_thread::sleep_for(kLook);
  }
  /// Whether the next key is typed while the project is read.
  void go_on(When when) {
    if (when == When::kMeanwhile && is_read()) begin();
  }
  std::string description() const {
    return fmt::format("{} files, {:.1f} MiB, read in {:.1f} s while keys are typed", files_,
                       static_cast<double>(bytes_) / (1 << 20), reads_ == 0 ? 0 : read_s_ / reads_);
  }

 private:
  static constexpr std::chrono::milliseconds kLook{20}, kLast{1500};

  void forget() {
    read_ = false;
    bench_.completions().change_index(
        [root = root_.generic_string()](recall::Index& index) { index.remove_project(root); });
  }
  void begin() {
    reader_.reset();
    forget();
    begun_ = Clock::now();
    reader_ = std::make_unique<service::ProjectReader>(
        service::Exclusions({}, /*gitignore=*/true),
        [this](service::ProjectUpdate update) {
          if (update.is_last) read_ = true;
          bench_.completions().change_index([update = std::move(update)](recall::Index& index) {
            service::apply(update, index);
          });
        },
        service::ProjectReader::Settings{.requests = bench_.completions().in_flight()});
    reader_->look_at(root_, "c");
  }
  bool is_read() {
    if (!read_ || !reader_) return read_;
    read_s_ += std::chrono::duration<double>(Clock::now() - begun_).count();
    ++reads_;
    const auto rows = reader_->status();
    files_ = rows.front().files;
    bytes_ = rows.front().bytes;
    reader_.reset();
    return true;
  }

  BenchService& bench_;
  const fs::path root_;
  std::atomic<bool> read_ = false;
  Clock::time_point begun_;
  double read_s_ = 0;
  int reads_ = 0;
  std::size_t files_ = 0, bytes_ = 0;
  std::unique_ptr<service::ProjectReader> reader_;  ///< last: it delivers until it is gone
};

/// Somebody who types the same keys in the same file each time, as a new document.
class Keys {
 public:
  Keys(BenchService& bench, const fs::path& root, const recall::File& file, std::uint32_t seed,
       const CommandLine& options)
      : bench_(bench),
        root_(root),
        path_((root / file.path).generic_string()),
        exercise_(exercise_of(file.text, 1000, seed)),
        options_(options),
        documents_(std::uint64_t{seed} << 32U) {}

  void type(Opening& opening, When when, Costs& costs) {
    opening.prepare(when);
    text::Document document(exercise_.open);
    std::size_t cursor = exercise_.cursor;
    std::string_view rest = exercise_.typed;
    const completion::DocumentKey key{++documents_, lsp::file_uri(path_)};
    for (int typed = 0; typed < options_.keys && !rest.empty(); ++typed) {
      std::this_thread::sleep_for(std::chrono::milliseconds(options_.key_pause_ms));
      opening.go_on(when);
      const std::size_t bytes = key_bytes(rest);
      static_cast<void>(document.replace(cursor, cursor, rest.substr(0, bytes)));
      cursor += bytes;
      rest.remove_prefix(bytes);
      const auto begin = Clock::now();
      const completion::Outcome outcome = ask(key, document.snapshot(), cursor);
      costs.ms.add(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      costs.first_ms.add(first_ms(outcome.receipt));
      costs.steps.add(outcome.receipt.steps);
      costs.drafted.add(outcome.receipt.drafted_tokens);
    }
    bench_.completions().close(key);
  }

 private:
  completion::Outcome ask(const completion::DocumentKey& key, text::SnapshotPtr snapshot,
                          std::size_t cursor) {
    completion::Request request;
    request.document = key;
    request.home = {root_.generic_string(), path_};
    request.snapshot = std::move(snapshot);
    request.cursor = cursor;
    request.options = bench_.options();
    return bench_.ask(std::move(request));
  }

  BenchService& bench_;
  const fs::path root_;
  const std::string path_;
  const Exercise exercise_;
  const CommandLine& options_;
  std::uint64_t documents_;  ///< no two of all rounds have the same number
};

/// Neither the smallest nor the largest: as long as somebody works at.
std::vector<recall::File> typed_files(std::vector<recall::File> files) {
  constexpr std::size_t kBytesMin = 2048, kBytesMax = 65536;
  std::erase_if(files, [](const recall::File& file) {
    return file.text.size() < kBytesMin || file.text.size() > kBytesMax;
  });
  return files;
}

struct Round {
  std::array<Costs, kAll.size()> of;
  const Costs& costs(When when) const { return of[static_cast<std::size_t>(when)]; }
  double ratio(double percent, When base) const {
    const double value = costs(base).ms.percentile(percent);
    return value > 0 ? costs(When::kMeanwhile).ms.percentile(percent) / value : 0;
  }
};

/// All keys of all rounds.
Round together(const std::vector<Round>& rounds) {
  Round all;
  for (const Round& round : rounds)
    for (std::size_t when = 0; when < kAll.size(); ++when) {
      all.of[when].ms.add(round.of[when].ms);
      all.of[when].first_ms.add(round.of[when].first_ms);
      all.of[when].steps.add(round.of[when].steps);
      all.of[when].drafted.add(round.of[when].drafted);
    }
  return all;
}

Samples ratios(const std::vector<Round>& rounds, double percent, When base) {
  Samples all;
  for (const Round& round : rounds) all.add(round.ratio(percent, base));
  return all;
}

void print(const std::string& description, const Opening& opening,
           const std::vector<Round>& rounds) {
  const Round all = together(rounds);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t when = 0; when < kAll.size(); ++when) {
    const Costs& costs = all.of[when];
    std::vector<std::string> row = {kNames[when]};
    for (const double value :
         {costs.ms.percentile(50), costs.ms.percentile(95), costs.first_ms.percentile(50),
          costs.first_ms.percentile(95), costs.steps.mean(), costs.drafted.mean()})
      row.push_back(fmt::format("{:.2f}", value));
    rows.push_back(std::move(row));
  }
  fmt::print("{}: {}\n{}", description, opening.description(),
             service::table({{"keys typed", service::Align::kLeft},
                             {"ms p50"},
                             {"ms p95"},
                             {"first p50"},
                             {"first p95"},
                             {"steps"},
                             {"drafted"}},
                            rows));
  for (const When base : {When::kBefore, When::kAfter})
    for (const double percent : {50.0, 95.0}) {
      const Samples each = ratios(rounds, percent, base);
      fmt::print(
          "p{:.0f} meanwhile is {:.2f} times that {} it ({} rounds: {:.2f} to {:.2f}, half of them "
          "up to {:.2f})\n",
          percent, all.ratio(percent, base), kNames[static_cast<std::size_t>(base)], rounds.size(),
          each.percentile(0), each.percentile(100), each.percentile(50));
    }
}

Json json_of(const std::vector<Round>& rounds) {
  Json all = Json::array();
  for (const Round& round : rounds) {
    Json row;
    for (std::size_t when = 0; when < kAll.size(); ++when)
      row[kNames[when]] = {{"msP50", round.of[when].ms.percentile(50)},
                           {"msP95", round.of[when].ms.percentile(95)},
                           {"firstMsP50", round.of[when].first_ms.percentile(50)},
                           {"firstMsP95", round.of[when].first_ms.percentile(95)},
                           {"steps", round.of[when].steps.mean()},
                           {"drafted", round.of[when].drafted.mean()}};
    all.push_back(std::move(row));
  }
  return all;
}

}  // namespace

int run_opening(const service::Paths& paths, const CommandLine& options) {
  std::error_code error;
  const fs::path root = fs::canonical(options.files.front(), error);
  if (error || !fs::is_directory(root, error))
    return failed({Fault::kNotFound, options.files.front().string() + ": no folder is there",
                   "name a folder with source files"});
  const std::vector<recall::File> files = typed_files(recall_places::read_project(root).files);
  if (files.empty())
    return failed({Fault::kNotFound, root.string() + " holds no source file of 2 to 64 KiB", ""});
  const auto bench = BenchService::open(paths, 0);
  if (!bench) return failed(bench.error());
  Opening opening(**bench, root);
  std::vector<Round> rounds(static_cast<std::size_t>(options.rounds));
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    // Each at a place of its own: what recall drafts there differs with how much is read.
    const auto seed = options.seed + static_cast<std::uint32_t>(round);
    Keys keys(**bench, root, files[std::mt19937(seed)() % files.size()], seed, options);
    Costs unheard;
    keys.type(opening, When::kBefore, unheard);  // so that all find the same KV
    for (std::size_t turn = 0; turn < kAll.size(); ++turn) {
      const std::size_t when = (round + turn) % kAll.size();
      keys.type(opening, kAll[when], rounds[round].of[when]);
    }
  }
  if (options.json)
    fmt::print("{}\n", lsp::json_text({{"model", (*bench)->description()},
                                       {"opened", opening.description()},
                                       {"rounds", json_of(rounds)}}));
  else
    print((*bench)->description(), opening, rounds);
  return 0;
}

}  // namespace efimd::bench
