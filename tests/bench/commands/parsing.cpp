// What parsing takes of the daemon's threads after one edit.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_clock.h"
#include "daemon/cli/commands/table.h"
#include "daemon/completion/fit/fit.h"
#include "daemon/prompt/places.h"
#include "daemon/syntax/imports.h"
#include "daemon/syntax/outline.h"
#include "daemon/text/document.h"
#include "tests/bench/commands/commands.h"
#include "tests/recall/projects.h"

namespace efimd::bench {

namespace {

using service::Align;

/// Milliseconds of a processor, one for each edit.
struct Parsed {
  std::vector<double> fit, imports, outline, edit, all;
};

template <class Work>
double cpu_ms(const Work& work) {
  const auto begin = ThreadClock::now();
  work();
  return std::chrono::duration<double, std::milli>(ThreadClock::now() - begin).count();
}

/// After an edit two texts are fitted at most, recall's and the model's; one text here is right, the
/// other is another line's. Once the user pauses, the file's imports are read, and where another open
/// file imports it, what it declares.
void measure(const recall_places::Project& project, const recall_places::Cursor& cursor,
             const std::string& other, std::map<std::string_view, Parsed>& by_language) {
  const std::string& path = project.files[cursor.file].path;
  const syntax::Grammar grammar = syntax::grammar_of(path);
  if (grammar == syntax::Grammar::kNone) return;
  const text::SnapshotPtr snapshot = text::Document(cursor.text).snapshot();
  const completion::Language& language = completion::language_of("", path);
  const double fit = cpu_ms([&] {
    completion::CursorContext place = completion::context_at(
        *snapshot, language, cursor.at, prompt::choose_resume(*snapshot, cursor.at));
    place.grammar = grammar;
    for (const std::string& text : {cursor.truth, other})
      static_cast<void>(completion::fit(text, place));
  });
  const double imports =
      cpu_ms([&] { static_cast<void>(syntax::imports_of(grammar, cursor.text)); });
  const double outline =
      cpu_ms([&] { static_cast<void>(syntax::outline_of(grammar, cursor.text)); });
  for (Parsed* const parsed : {&by_language[language.name], &by_language["all"]}) {
    parsed->fit.push_back(fit);
    parsed->imports.push_back(imports);
    parsed->outline.push_back(outline);
    parsed->edit.push_back(fit + imports);
    parsed->all.push_back(fit + imports + outline);
  }
}

std::string quantile(std::vector<double>& ms, double share) {
  std::ranges::sort(ms);
  const auto at = static_cast<std::size_t>(share * static_cast<double>(ms.size() - 1));
  return fmt::format("{:.2f}", ms[at]);
}

}  // namespace

int run_parsing(const CommandLine& options) {
  std::map<std::string_view, Parsed> by_language;
  for (const auto& folder : options.files) {
    const recall_places::Project project = recall_places::read_project(folder);
    const auto cursors =
        recall_places::draw_cursors(project, options.places.count, options.places.seed);
    for (std::size_t i = 0; i < cursors.size(); ++i)
      measure(project, cursors[i], cursors[(i + 1) % cursors.size()].truth, by_language);
  }
  if (by_language.empty())
    return failed({Fault::kNotFound, "no file there has a grammar", "name folders with code"});
  std::vector<std::vector<std::string>> rows;
  for (auto& [language, parsed] : by_language) {
    std::vector<std::string> row = {std::string(language), std::to_string(parsed.all.size())};
    for (std::vector<double>* const ms :
         {&parsed.fit, &parsed.imports, &parsed.outline, &parsed.edit, &parsed.all})
      for (const double share : {0.5, 0.99, 1.0}) row.push_back(quantile(*ms, share));
    rows.push_back(std::move(row));
  }
  std::vector<service::Column> columns = {{"language", Align::kLeft}, {"edits"}};
  for (const char* const part :
       {"fit p50", "imports p50", "outline p50", "fit, imports p50", "all p50"}) {
    columns.push_back({part});
    columns.push_back({"p99"});
    columns.push_back({"most"});
  }
  fmt::print("{}", service::table(columns, rows));
  return 0;
}

}  // namespace efimd::bench
