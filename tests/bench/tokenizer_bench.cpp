// Tokenizing a megabyte of real code (5 MB/s are asked for), and one character typed into it.
// usage: tokenizer_bench SOURCE_FILES... -- VOCABULARY.gguf...
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "engine/model/gguf.h"
#include "engine/tokenizer/tokenized_text.h"

namespace efimd {
namespace {

using engine::Fragment;
using engine::TokenizedText;
using engine::Tokenizer;

constexpr std::size_t kTextBytes = 1'000'000;
constexpr int kRuns = 7;
constexpr int kEdits = 2000;

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

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

int measure(const char* path, const std::string& text) {
  const auto file = engine::GgufFile::open(path);
  auto tokenizer = file ? Tokenizer::from_gguf(*file)
                        : Result<std::unique_ptr<Tokenizer>>(tl::unexpected(file.error()));
  if (!tokenizer) {
    fmt::print(stderr, "{}\n", tokenizer.error().message());
    return 1;
  }
  TokenizedText tokens(**tokenizer, Fragment::kTextStart);
  const double open = seconds_of([&] { tokenizer = Tokenizer::from_gguf(*file); });
  tokens = TokenizedText(**tokenizer, Fragment::kTextStart);
  const double first = seconds_of([&] { tokens.set(text); });
  const double best = best_of_runs([&] { tokens.set(text); });
  fmt::print(
      "{:40} {:6.1f} ms to open, {:5.1f} MB/s ({:5.1f} the first time), {:6.1f} us an edit\n",
      std::string_view(path).substr(std::string_view(path).rfind('/') + 1), open * 1e3,
      static_cast<double>(text.size()) / best / 1e6, static_cast<double>(text.size()) / first / 1e6,
      edit_seconds(tokens, text) * 1e6);
  return 0;
}

}  // namespace
}  // namespace efimd

int main(int argc, char** argv) {
  using namespace efimd;
  char** const end = argv + argc;
  char** const dashes =
      std::find_if(argv + 1, end, [](const char* each) { return std::string_view(each) == "--"; });
  std::string text;
  std::for_each(argv + 1, dashes, [&](const char* path) {
    std::ifstream file(path, std::ios::binary);
    text.append(std::istreambuf_iterator<char>(file), {});
  });
  if (dashes == end || text.size() < kTextBytes) {
    fmt::print(stderr, "usage: {} SOURCE_FILES... -- VOCABULARY.gguf...\n{} bytes of source\n",
               argv[0], text.size());
    return 2;
  }
  text = utf8::sanitized(text.substr(0, kTextBytes));
  return std::any_of(dashes + 1, end, [&](const char* path) { return measure(path, text) != 0; });
}
