// recall_places [--count N] [--seed N] [--dump FILE] [--longest] PROJECT...
//
// How good recall alone is, over whole projects: at cursors inside lines, at line starts and after
// finished lines; the file's own line is taken away from the buffer and from what is searched.
//
//   shown    of all cursors
//   exact    of all cursors: what is shown is exactly the rest of the line
//   chars    saved, of all characters of the rests: those that what is shown has right
//   begins   of the shown ones: the first piece (word or sign) is right
//   wrong    of the shown ones: the first character is wrong already
//   quiet    of the cursors where nothing is shown
//
// --longest: instead of judged candidates, the line that most matches say: a baseline.
// --dump: what training/fit_recall.py reads. --dump-next: what its --next reads; the documents then end at
// the cursor, as files do that are being written.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "daemon/recall/index.h"
#include "tests/recall/projects.h"

namespace {

using namespace efimd;
using namespace efimd::recall_places;
using Clock = std::chrono::steady_clock;

struct Options {
  std::size_t count = 80;
  std::uint64_t seed = 1;
  std::string dump, dump_next;
  bool longest = false;
  std::vector<std::string> folders;
};

struct Tally {
  std::size_t cursors = 0, shown = 0, exact = 0, begins = 0, wrong = 0;
  std::size_t saved = 0, chars = 0;
  std::vector<double> us;

  void operator+=(const Tally& other) {
    cursors += other.cursors, shown += other.shown, exact += other.exact;
    begins += other.begins, wrong += other.wrong;
    saved += other.saved, chars += other.chars;
    us.insert(us.end(), other.us.begin(), other.us.end());
  }
};
using Tallies = std::array<Tally, kKinds>;

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// Of a suggestion: all of its text that is shown, and its first piece.
struct Shown {
  std::string text;
  std::size_t first_piece = 0;
};

Shown shown_of(const std::vector<recall::Candidate>& candidates) {
  for (const recall::Candidate& candidate : candidates)
    if (candidate.shown > 0)
      return {candidate.text.substr(0, candidate.shown), candidate.boundaries.front().bytes};
  return {};
}

Shown longest_of(std::string_view draft) {
  const std::string_view line = draft.substr(0, draft.find_first_of("\r\n"));
  const std::string text(line.substr(0, line.find_last_not_of(" \t") + 1));
  return {text, std::min<std::size_t>(1, text.size())};
}

void count(Tally& tally, const Cursor& cursor, const Shown& shown) {
  const std::size_t right = common_prefix(shown.text, cursor.truth);
  ++tally.cursors;
  tally.chars += cursor.truth.size();
  if (shown.text.empty()) return;
  ++tally.shown;
  tally.saved += right;
  tally.exact += shown.text == cursor.truth ? 1 : 0;
  tally.begins += right >= shown.first_piece ? 1 : 0;
  tally.wrong += right == 0 ? 1 : 0;
}

/// One line a boundary: place kind cursor truth-bytes candidate text-bytes right-bytes bytes
/// features...
void dump(std::ostream& out, std::size_t id, const Cursor& cursor,
          const std::vector<recall::Candidate>& candidates) {
  if (candidates.empty())
    out << "0 " << static_cast<int>(cursor.kind) << ' ' << id << ' ' << cursor.truth.size()
        << " -1\n";
  for (std::size_t i = 0; i < candidates.size(); ++i)
    for (const recall::Boundary& boundary : candidates[i].boundaries) {
      out << static_cast<int>(candidates[i].evidence.place) << ' ' << static_cast<int>(cursor.kind)
          << ' ' << id << ' ' << cursor.truth.size() << ' ' << i << ' ' << candidates[i].text.size()
          << ' ' << common_prefix(candidates[i].text, cursor.truth) << ' ' << boundary.bytes;
      for (const float feature : boundary.features) out << ' ' << feature;
      out << '\n';
    }
}

/// One line for each line under a candidate that is right so far: cursor number right features...
void dump_next(std::ostream& out, std::size_t id, const Cursor& cursor, std::string_view below,
               const std::vector<recall::Candidate>& candidates) {
  for (const recall::Candidate& candidate : candidates) {
    if (candidate.text != cursor.truth) continue;
    std::string_view rest = below;
    for (std::size_t i = 0; i < candidate.next.size(); ++i) {
      rest.remove_prefix(std::min(rest.size(), rest.find('\n') + 1));
      std::string_view line = rest.substr(0, rest.find_first_of("\r\n"));
      line = line.substr(0, line.find_last_not_of(" \t") + 1);
      const bool right = !rest.empty() && line == candidate.next[i].text;
      out << id << ' ' << i + 1 << ' ' << (right ? 1 : 0);
      for (const float feature : candidate.next[i].features) out << ' ' << feature;
      out << '\n';
      if (!right) break;
    }
  }
}

class Measurement {
 public:
  explicit Measurement(const Options& options) : options_(options) {
    if (!options.dump.empty()) dump_.open(options.dump);
    if (!options.dump_next.empty()) dump_next_.open(options.dump_next);
  }

  Tallies over(const Project& project) {
    recall::Index index;
    for (const recall::BatchPtr& batch : batches_of(project)) index.add_files(project.name, batch);
    const recall::Usage usage = index.usage();
    std::printf("%s: %zu files, %zu bytes of text, %.2f bytes a byte\n", project.name.c_str(),
                usage.files, usage.text_bytes,
                static_cast<double>(usage.bytes) / static_cast<double>(usage.text_bytes + 1));
    Tallies tallies;
    for (const Cursor& cursor : draw_cursors(project, options_.count, options_.seed))
      ask(index, project, cursor, tallies[static_cast<std::size_t>(cursor.kind)]);
    return tallies;
  }

 private:
  void ask(recall::Index& index, const Project& project, const Cursor& cursor, Tally& tally) {
    const recall::Where where{project.name, project.files[cursor.file].path};
    // The open document stands for the file, so the line is gone from what is searched, too.
    index.set_document(where, text::Document(cursor.text).snapshot());
    recall::Query query{where, cursor.text, cursor.at};
    const auto begin = Clock::now();
    const Shown shown =
        options_.longest ? longest_of(index.draft(query, 400).text) : shown_of(index.find(query));
    tally.us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    count(tally, cursor, shown);
    if (dump_next_.is_open()) {
      const std::string above = cursor.text.substr(0, cursor.at);
      index.set_document(where, text::Document(above).snapshot());
      dump_next(dump_next_, cursors_++, cursor, std::string_view(cursor.text).substr(cursor.at),
                index.find({where, above, cursor.at}));
    }
    if (dump_.is_open()) {
      query.candidates_max = 16;
      dump(dump_, cursors_++, cursor, index.find(query));
    }
    index.close_document(where);
  }

  const Options& options_;
  std::ofstream dump_, dump_next_;
  std::size_t cursors_ = 0;
};

void print(const char* name, Tally tally) {
  const auto share = [](std::size_t part, std::size_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::ranges::sort(tally.us);
  const auto quantile = [&](double q) {
    return tally.us.empty()
               ? 0.0
               : tally.us[static_cast<std::size_t>(q * static_cast<double>(tally.us.size() - 1))];
  };
  std::printf(
      "  %-9s %5zu cursors  shown %5.1f  exact %5.1f  chars %5.1f  begins %5.1f  wrong %5.1f  "
      "quiet %5.1f  "
      "us p50 %.0f p95 %.0f max %.0f\n",
      name, tally.cursors, share(tally.shown, tally.cursors), share(tally.exact, tally.cursors),
      share(tally.saved, tally.chars), share(tally.begins, tally.shown),
      share(tally.wrong, tally.shown), share(tally.cursors - tally.shown, tally.cursors),
      quantile(0.5), quantile(0.95), quantile(1.0));
}

void print(const Tallies& tallies) {
  constexpr std::array<const char*, kKinds> kNames = {"inside", "start", "finished"};
  for (std::size_t kind = 0; kind < kKinds; ++kind) print(kNames[kind], tallies[kind]);
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--count" && has_value)
      options.count = std::stoul(argv[++i]);
    else if (argument == "--seed" && has_value)
      options.seed = std::stoull(argv[++i]);
    else if (argument == "--dump" && has_value)
      options.dump = argv[++i];
    else if (argument == "--dump-next" && has_value)
      options.dump_next = argv[++i];
    else if (argument == "--longest")
      options.longest = true;
    else
      options.folders.push_back(argument);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = options_of(argc, argv);
  if (options.folders.empty()) {
    std::cerr
        << "usage: recall_places [--count N] [--seed N] [--dump FILE] [--longest] PROJECT...\n";
    return 2;
  }
  Measurement measurement(options);
  Tallies all;
  for (const std::string& folder : options.folders) {
    const Tallies tallies = measurement.over(read_project(folder));
    print(tallies);
    for (std::size_t kind = 0; kind < kKinds; ++kind) all[kind] += tallies[kind];
  }
  std::printf("all\n");
  print(all);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "recall_places: " << error.what() << '\n';
  return 1;
}
