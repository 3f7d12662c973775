#include "tests/bench/completion/places.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <future>
#include <utility>

namespace efimd::bench {

namespace {

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

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
                           bool with_recall) {
  const completion::TextHome home{project.name, project.files[cursor.file].path};
  const std::string text = setup.above ? cursor.text.substr(0, cursor.at) : cursor.text;
  completion::Request request = request_for(cursor, text, home);
  request.options = bench.options();
  request.options.recall = with_recall;
  const completion::DocumentKey document = request.document;
  completion::Outcome outcome = bench.ask(std::move(request));
  bench.completions().close(document);
  return outcome;
}

}  // namespace

void PlacesTally::add(const PlacesTally& other) {
  cursors += other.cursors, shown += other.shown, exact += other.exact, begins += other.begins;
  wrong += other.wrong, saved += other.saved, chars += other.chars;
  from_recall += other.from_recall, generated += other.generated;
  drafted += other.drafted, accepted += other.accepted;
  ms.insert(ms.end(), other.ms.begin(), other.ms.end());
}

void count_place(PlacesTally& tally, std::string_view truth, const completion::Outcome& outcome) {
  ++tally.cursors;
  tally.chars += truth.size();
  tally.ms.push_back(outcome.receipt.total_ms);
  tally.generated += static_cast<std::size_t>(outcome.receipt.generated_tokens);
  tally.drafted += static_cast<std::size_t>(outcome.receipt.drafted_tokens);
  tally.accepted += static_cast<std::size_t>(outcome.receipt.accepted_tokens);
  if (!outcome.item) return;
  // A suggestion of several lines is judged by its first.
  const std::string_view text(outcome.item->text);
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::size_t right = common_prefix(line, truth);
  ++tally.shown;
  tally.saved += right;
  if (line == truth) ++tally.exact;
  if (right > 0 && right >= std::min(first_piece(line), truth.size())) ++tally.begins;
  if (right == 0) ++tally.wrong;
  if (outcome.receipt.source.starts_with("recalled")) ++tally.from_recall;
}

PlacesTallies measure_places(BenchService& bench, const recall_places::Project& project,
                             const PlacesSetup& setup, bool with_recall) {
  fill_index(bench, project, with_recall);
  PlacesTallies tallies;
  for (const recall_places::Cursor& cursor :
       recall_places::draw_cursors(project, setup.count, setup.seed)) {
    count_place(tallies[static_cast<std::size_t>(cursor.kind)], cursor.truth,
                ask_at(bench, project, setup, cursor, with_recall));
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
    const auto receipt = [&](bool with_recall) {
      return ask_at(bench, project, setup, cursor, with_recall).receipt;
    };
    static_cast<void>(receipt(false));
    completion::Receipt with, without;
    for (const bool with_recall : {with_first, !with_first})
      (with_recall ? with : without) = receipt(with_recall);
    with_first = !with_first;
    if (with.generated_tokens != without.generated_tokens) ++pairs.differing;
    if (without.generated_tokens < kDraftedTokensMin) continue;
    ++pairs.texts;
    pairs.tokens += static_cast<std::size_t>(without.generated_tokens);
    pairs.steps_without += static_cast<std::size_t>(without.steps);
    pairs.steps_with += static_cast<std::size_t>(with.steps);
    pairs.drafted += static_cast<std::size_t>(with.drafted_tokens);
    pairs.accepted += static_cast<std::size_t>(with.accepted_tokens);
    pairs.ms_without.push_back(without.total_ms);
    pairs.ms_with.push_back(with.total_ms);
    pairs.ms_candidates.push_back(candidates_ms(bench, project, cursor));
  }
}

}  // namespace efimd::bench
