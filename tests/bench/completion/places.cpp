#include "tests/bench/completion/places.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <future>
#include <utility>

#include "daemon/recall/match.h"

namespace efimd::bench {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Bytes of the first word or sign of `text`.
std::size_t first_piece(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] == ' ') ++end;
  if (end == text.size()) return end;
  if (!is_word(text[end])) return end + 1;
  while (end < text.size() && is_word(text[end])) ++end;
  return end;
}

completion::Request request_for(const recall_places::Cursor& cursor, const std::string& text,
                                const completion::TextHome& home) {
  completion::Request request;
  request.document = {1, "file://" + home.path};
  request.snapshot = text::Document(text).snapshot();
  request.cursor = cursor.at;
  request.home = home;
  return request;
}

void fill_index(BenchService& bench, const recall_places::Project& project, bool with_recall) {
  bench.completions().change_index([&project, with_recall](recall::Index& index) {
    index.remove_project(project.name);
    if (!with_recall) return;
    for (const recall::BatchPtr& batch : recall_places::batches_of(project))
      index.add_files(project.name, batch);
  });
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// What recall would show without a model: its best candidate that is worth it.
completion::Outcome recall_alone(BenchService& bench, const recall_places::Project& project,
                                 const PlacesSetup& setup, const recall_places::Cursor& cursor) {
  std::promise<completion::Outcome> answer;
  bench.completions().change_index([&](recall::Index& index) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string text = setup.above ? cursor.text.substr(0, cursor.at) : cursor.text;
    const recall::Where where{project.name, project.files[cursor.file].path};
    index.set_document(where, text::Document(text).snapshot());
    completion::Outcome outcome;
    for (const recall::Candidate& candidate : index.find({where, text, cursor.at})) {
      if (candidate.shown == 0 || outcome.item) continue;
      outcome.item =
          completion::Item{candidate.text.substr(0, candidate.shown), cursor.at, cursor.at};
      outcome.receipt.source = completion::source::kRecalled.name;
    }
    index.close_document(where);
    outcome.receipt.total_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    answer.set_value(std::move(outcome));
  });
  return answer.get_future().get();
}

/// Counts the lines of a suggestion under its first one.
void count_further(PlacesTally& tally, std::string_view lines, bool is_right,
                   std::string_view below) {
  while (!lines.empty()) {
    lines.remove_prefix(1);
    const std::string_view line = lines.substr(0, lines.find('\n'));
    const std::string_view there = below.empty() ? below : below.substr(1, below.find('\n', 1) - 1);
    is_right = is_right && !below.empty() && line == there;
    ++tally.further;
    tally.further_right += is_right ? 1 : 0;
    lines.remove_prefix(line.size());
    below.remove_prefix(std::min(below.size(), there.size() + 1));
  }
}

/// What finding candidates takes on the engine thread.
double candidates_ms(BenchService& bench, const recall_places::Project& project,
                     const recall_places::Cursor& cursor) {
  std::promise<double> ms;
  bench.completions().change_index([&](recall::Index& index) {
    const auto begin = std::chrono::steady_clock::now();
    static_cast<void>(
        index.find({{project.name, project.files[cursor.file].path}, cursor.text, cursor.at}));
    ms.set_value(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
                     .count());
  });
  return ms.get_future().get();
}

completion::Outcome ask_at(BenchService& bench, const recall_places::Project& project,
                           const PlacesSetup& setup, const recall_places::Cursor& cursor,
                           bool with_recall, bool with_drafts = true) {
  const completion::TextHome home{project.name, project.files[cursor.file].path};
  const std::string text = setup.above ? cursor.text.substr(0, cursor.at) : cursor.text;
  completion::Request request = request_for(cursor, text, home);
  request.options = bench.options();
  request.options.recall = with_recall;
  request.options.drafts = with_drafts;
  const completion::DocumentKey document = request.document;
  completion::Outcome outcome = bench.ask(std::move(request));
  bench.completions().close(document);
  return outcome;
}

}  // namespace

void PlacesTally::add(const PlacesTally& other) {
  cursors += other.cursors, shown += other.shown, exact += other.exact, begins += other.begins;
  wrong += other.wrong, saved += other.saved, chars += other.chars;
  further += other.further, further_right += other.further_right;
  from_recall += other.from_recall, generated += other.generated;
  drafted += other.drafted, accepted += other.accepted;
  ms.insert(ms.end(), other.ms.begin(), other.ms.end());
}

void count_place(PlacesTally& tally, const Truth& truth, const completion::Outcome& outcome) {
  ++tally.cursors;
  tally.chars += truth.line.size();
  tally.ms.push_back(outcome.receipt.total_ms);
  tally.generated += static_cast<std::size_t>(outcome.receipt.generated_tokens);
  tally.drafted += static_cast<std::size_t>(outcome.receipt.drafted_tokens);
  tally.accepted += static_cast<std::size_t>(outcome.receipt.accepted_tokens);
  if (!outcome.item) return;
  // A suggestion of several lines is judged by its first.
  const std::string_view text(outcome.item->text);
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::size_t right = recall::common_prefix(line, truth.line);
  ++tally.shown;
  tally.saved += right;
  if (line == truth.line) ++tally.exact;
  if (right > 0 && right >= std::min(first_piece(line), truth.line.size())) ++tally.begins;
  if (right == 0) ++tally.wrong;
  if (outcome.receipt.source.starts_with("recalled")) ++tally.from_recall;
  count_further(tally, text.substr(line.size()), line == truth.line, truth.below);
}

PlacesTallies measure_places(BenchService& bench, const recall_places::Project& project,
                             const PlacesSetup& setup, Asked asked) {
  fill_index(bench, project, asked != Asked::kWithout);
  PlacesTallies tallies;
  for (const recall_places::Cursor& cursor :
       recall_places::draw_cursors(project, setup.count, setup.seed)) {
    const Truth truth{cursor.truth,
                      setup.above ? std::string_view(cursor.text).substr(cursor.at) : ""};
    count_place(tallies[static_cast<std::size_t>(cursor.kind)], truth,
                asked == Asked::kRecallAlone
                    ? recall_alone(bench, project, setup, cursor)
                    : ask_at(bench, project, setup, cursor, asked == Asked::kWith));
  }
  return tallies;
}

void measure_drafts(BenchService& bench, const recall_places::Project& project,
                    const PlacesSetup& setup, DraftPairs& pairs) {
  fill_index(bench, project, true);
  bool with_first = false;
  for (const recall_places::Cursor& cursor :
       recall_places::draw_cursors(project, setup.count, setup.seed)) {
    if (cursor.kind == recall_places::Kind::kFinished) continue;
    const auto receipt = [&](bool with_drafts) {
      return ask_at(bench, project, setup, cursor, /*with_recall=*/true, with_drafts).receipt;
    };
    static_cast<void>(receipt(false));
    if (receipt(false).generated_tokens < kDraftedTokensMin) continue;
    completion::Receipt with, without;
    std::vector<double> ms_with, ms_without;
    bool alike = true;
    for (int round = 0; round < kDraftRounds && alike; ++round) {
      for (const bool with_drafts : {with_first, !with_first}) {
        completion::Receipt& taken = with_drafts ? with : without;
        taken = receipt(with_drafts);
        (with_drafts ? ms_with : ms_without).push_back(taken.total_ms);
      }
      with_first = !with_first;
      alike = with.view == without.view && with.prompt_tokens == without.prompt_tokens;
    }
    if (!alike) {
      ++pairs.unlike;
      continue;
    }
    if (with.generated_tokens != without.generated_tokens) ++pairs.differing;
    ++pairs.texts;
    pairs.tokens += static_cast<std::size_t>(without.generated_tokens);
    pairs.steps_without += static_cast<std::size_t>(without.steps);
    pairs.steps_with += static_cast<std::size_t>(with.steps);
    pairs.drafted += static_cast<std::size_t>(with.drafted_tokens);
    pairs.accepted += static_cast<std::size_t>(with.accepted_tokens);
    pairs.ms_without.push_back(median(std::move(ms_without)));
    pairs.ms_with.push_back(median(std::move(ms_with)));
    pairs.ms_candidates.push_back(candidates_ms(bench, project, cursor));
  }
}

}  // namespace efimd::bench
