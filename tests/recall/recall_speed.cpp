// recall_speed [--mib N] [--files N] [--read N] PROJECT...
//
// What the index costs with much text: the files of the projects are repeated under other names,
// with other words in them, until there are N MiB in about N files. Prints the seconds and memory
// of reading them in, and microseconds of a keystroke (set_document) and of a look-up (find): the
// first one after the key, and the best of the same one five times, which is what the program does
// where the machine does not hold it up. With --read, N MiB of other memory are read before each key
// and each look-up, as a model's step reads its weights: nothing of the index is in the processor's
// caches then.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "daemon/recall/anchors.h"
#include "daemon/recall/index.h"
#include "tests/recall/projects.h"

namespace {

using namespace efimd;
using namespace efimd::recall_places;
using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void print(const char* what, std::vector<double> us) {
  std::ranges::sort(us);
  const auto at = [&](double q) {
    return us[static_cast<std::size_t>(q * static_cast<double>(us.size() - 1))];
  };
  std::printf("%-12s %6zu times  us p50 %.1f  p95 %.1f  p99 %.1f  max %.1f\n", what, us.size(),
              at(0.5), at(0.95), at(0.99), at(1.0));
}

/// The text with a third of its longer words changed, so that no two rounds are the same.
std::string reworded(const std::string& text, std::size_t round) {
  if (round == 0) return text;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (recall::is_word(text[at]))
      while (end < text.size() && recall::is_word(text[end])) ++end;
    const std::string word = text.substr(at, end - at);
    out += word;
    if (word.size() > 5 && std::hash<std::string>()(word + std::to_string(round)) % 3 == 0)
      out += std::to_string(round);
    at = end;
  }
  return out;
}

/// Files of `mib` MiB in all, joined or cut to the length that makes `count` of them.
Project grown(const std::vector<Project>& seeds, std::size_t mib, std::size_t count) {
  const std::size_t bytes_max = mib << 20, bytes_each = bytes_max / count;
  Project all{"all", {}};
  std::size_t bytes = 0;
  std::string pending;
  for (std::size_t round = 0; bytes < bytes_max; ++round)
    for (const Project& seed : seeds)
      for (const recall::File& file : seed.files) {
        if (bytes >= bytes_max) break;
        pending += reworded(file.text, round);
        while (pending.size() >= bytes_each) {
          all.files.push_back(
              {"f" + std::to_string(all.files.size()) + ".c", pending.substr(0, bytes_each)});
          pending.erase(0, bytes_each);
          bytes += bytes_each;
        }
      }
  return all;
}

/// Memory that is read between two keys.
class OtherMemory {
 public:
  explicit OtherMemory(std::size_t mib) : words_((mib << 20) / sizeof(std::uint64_t), 1) {}
  void read() {
    for (const std::uint64_t word : words_) sum_ += word;
  }
  std::uint64_t sum() const { return sum_; }

 private:
  std::vector<std::uint64_t> words_;
  std::uint64_t sum_ = 0;
};

/// Types a line of the file anew, key by key: one edit and one look-up each.
void type(recall::Index& index, const Project& project, std::size_t file, OtherMemory& other,
          std::vector<double>& edits, std::vector<double>& finds, std::vector<double>& best) {
  const std::string& path = project.files[file].path;
  const std::string& text = project.files[file].text;
  const std::size_t begin = recall::line_begin(text, text.size() / 2),
                    end = recall::line_end(text, begin);
  text::Document document(text.substr(0, begin) + text.substr(end));
  index.set_document({project.name, path}, document.snapshot());
  for (std::size_t at = begin; at < end && at < begin + 40; ++at) {
    if (!document.replace(at, at, text.substr(at, 1))) break;
    other.read();
    auto start = Clock::now();
    index.set_document({project.name, path}, document.snapshot());
    edits.push_back(us_since(start));
    std::array<double, 5> us{};
    for (double& one : us) {
      if (&one != us.data()) other.read();
      start = Clock::now();
      const auto found = index.find({{project.name, path}, document.snapshot()->bytes(), at + 1});
      one = us_since(start);
    }
    finds.push_back(us.front());
    best.push_back(*std::ranges::min_element(us));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::size_t mib = 64, files = 5000, read_mib = 0;
  std::vector<Project> seeds;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--mib" && i + 1 < argc)
      mib = std::stoul(argv[++i]);
    else if (argument == "--files" && i + 1 < argc)
      files = std::max(1UL, std::stoul(argv[++i]));
    else if (argument == "--read" && i + 1 < argc)
      read_mib = std::stoul(argv[++i]);
    else
      seeds.push_back(read_project(argument));
  }
  if (std::ranges::all_of(seeds, [](const Project& seed) { return seed.files.empty(); })) {
    std::cerr << "usage: recall_speed [--mib N] [--files N] [--read N] PROJECT...\n";
    return 2;
  }
  const Project project = grown(seeds, mib, files);
  auto start = Clock::now();
  const auto batches = batches_of(project);
  std::printf("%zu files sorted into %zu batches in %.1f s\n", project.files.size(), batches.size(),
              us_since(start) / 1e6);
  recall::Index index;
  start = Clock::now();
  for (const recall::BatchPtr& batch : batches) index.add_files(project.name, batch);
  const recall::Usage usage = index.usage();
  std::printf(
      "added in %.1f ms; %zu files, %.1f MiB of text, %.1f MiB in memory (%.2f bytes a byte), %zu "
      "dropped\n",
      us_since(start) / 1e3, usage.files, static_cast<double>(usage.text_bytes) / (1 << 20),
      static_cast<double>(usage.bytes) / (1 << 20),
      static_cast<double>(usage.bytes) / static_cast<double>(usage.text_bytes),
      usage.files_dropped);
  std::vector<double> edits, finds, best;
  OtherMemory other(read_mib);
  const auto file = [&](std::size_t i) { return i * 7919 % project.files.size(); };
  constexpr std::size_t kOpen = 60;
  for (std::size_t i = 0; i < 4 * kOpen; ++i) {
    if (i >= kOpen) index.close_document({project.name, project.files[file(i - kOpen)].path});
    type(index, project, file(i), other, edits, finds, best);
  }
  print("keystroke", edits);
  print("look-up", finds);
  print("best of five", best);
  if (read_mib > 0)
    std::printf("%llu words of other memory were read\n",
                static_cast<unsigned long long>(other.sum()));
  return 0;
} catch (const std::exception& error) {
  std::cerr << "recall_speed: " << error.what() << '\n';
  return 1;
}
