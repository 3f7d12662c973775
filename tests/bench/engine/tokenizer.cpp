// Tokenizing a megabyte of real code (5 MB/s are asked for), and one character typed into it.
#include "tests/bench/engine/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "base/utf8.h"
#include "engine/model/gguf.h"
#include "engine/tokenizer/tokenized_text.h"
#include "tests/bench/engine/timing.h"

namespace efimd::bench {
namespace {

using engine::Fragment;
using engine::TokenizedText;
using engine::Tokenizer;

constexpr std::size_t kTextBytes = 1'000'000;
constexpr int kRuns = 7;
constexpr int kEdits = 2000;

double best_of_runs(const auto& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) best = std::min(best, seconds_of(work));
  return best;
}

/// A character typed at places all over the text, each time deleted again: seconds for one of both.
double edit_seconds(TokenizedText& tokens, std::string text) {
  double sum = 0;
  for (int edit = 0; edit < kEdits; ++edit) {
    std::size_t at = static_cast<std::size_t>(edit) * 104'729 % text.size();
    while (utf8::is_continuation(text[at])) ++at;
    text.insert(at, "x");
    sum += seconds_of([&] { tokens.replace(text, at, 0, 1); });
    text.erase(at, 1);
    sum += seconds_of([&] { tokens.replace(text, at, 1, 0); });
  }
  return sum / (2 * kEdits);
}

Result<void> measure(const std::filesystem::path& path, const std::string& text) {
  const auto file = engine::GgufFile::open(path);
  if (!file) return tl::unexpected(file.error());
  auto tokenizer = Tokenizer::from_gguf(*file);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  const double open = seconds_of([&] { tokenizer = Tokenizer::from_gguf(*file); });
  TokenizedText tokens(**tokenizer, Fragment::kTextStart);
  const double first = seconds_of([&] { tokens.set(text); });
  const double best = best_of_runs([&] { tokens.set(text); });
  const auto bytes = static_cast<double>(text.size());
  fmt::print(
      "{:40} {:6.1f} ms to open, {:5.1f} MB/s ({:5.1f} the first time), {:6.1f} us an edit\n",
      path.filename().string(), open * 1e3, bytes / best / 1e6, bytes / first / 1e6,
      edit_seconds(tokens, text) * 1e6);
  return {};
}

}  // namespace

Result<void> print_tokenizing(const std::vector<std::filesystem::path>& sources,
                              const std::vector<std::filesystem::path>& vocabularies) {
  std::string text;
  for (const std::filesystem::path& path : sources) {
    std::ifstream file(path, std::ios::binary);
    if (!file.is_open()) return fail(Fault::kIo, path.string() + ": cannot be read");
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  if (text.size() < kTextBytes)
    return fail(Fault::kBadInput,
                fmt::format("the files have {} bytes; {} are measured", text.size(), kTextBytes),
                "name more files");
  text = utf8::sanitized(text.substr(0, kTextBytes));
  for (const std::filesystem::path& path : vocabularies)
    if (auto done = measure(path, text); !done) return done;
  return {};
}

}  // namespace efimd::bench
