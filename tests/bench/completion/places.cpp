#include "tests/bench/completion/places.h"

#include <algorithm>
#include <cctype>
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
  bench.completions().change_index([&](recall::Index& index) {
    index.remove_project(project.name);
    if (!with_recall) return;
    for (const recall::BatchPtr& batch : recall_places::batches_of(project))
      index.add_files(project.name, batch);
  });
  PlacesTallies tallies;
  for (const recall_places::Cursor& cursor :
       recall_places::draw_cursors(project, setup.count, setup.seed)) {
    const completion::TextHome home{project.name, project.files[cursor.file].path};
    const std::string text = setup.above ? cursor.text.substr(0, cursor.at) : cursor.text;
    completion::Request request = request_for(cursor, text, home);
    request.options = bench.options();
    request.options.recall = with_recall;
    const completion::DocumentKey document = request.document;
    count_place(tallies[static_cast<std::size_t>(cursor.kind)], cursor.truth,
                bench.ask(std::move(request)));
    bench.completions().close(document);
  }
  return tallies;
}

}  // namespace efimd::bench
