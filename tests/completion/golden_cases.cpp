#include "tests/completion/golden_cases.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace efimd::test {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kVisibleBlank = "␣";

class Reader {
 public:
  explicit Reader(const fs::path& file) : file_(file), stream_(file) {
    if (!stream_) fail("cannot be read");
    advance();
  }

  std::vector<GoldenCase> read() {
    std::vector<GoldenCase> cases;
    while (more_) {
      if (line_.empty() || line_.starts_with('#')) {
        advance();
        continue;
      }
      const std::size_t colon = line_.find(':');
      if (colon == std::string::npos) fail("a field wants a colon");
      const std::string name = line_.substr(0, colon);
      const int at = number_;
      if (name == "case") {
        cases.emplace_back();
        cases.back().language = file_.stem();
        cases.back().line = at;
      }
      if (cases.empty()) fail("a file begins with a case");
      take(cases.back(), name, value(colon));
    }
    return cases;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(file_.filename().string() + ":" + std::to_string(number_) + ": " +
                             what);
  }

  void advance() {
    more_ = static_cast<bool>(std::getline(stream_, line_));
    ++number_;
  }

  /// Behind the colon, or the gutter's lines.
  std::string value(std::size_t colon) {
    const std::string inline_value = line_.substr(std::min(colon + 2, line_.size()));
    advance();
    if (!inline_value.empty()) return inline_value;
    std::string text;
    bool any = false;
    for (; more_ && line_.starts_with('|'); advance(), any = true) {
      std::string content = line_.substr(std::min<std::size_t>(2, line_.size()));
      std::size_t blanks = 0;
      for (; content.ends_with(kVisibleBlank); ++blanks)
        content.resize(content.size() - kVisibleBlank.size());
      text += (any ? "\n" : "") + content + std::string(blanks, ' ');
    }
    if (!any) fail("a field wants a value");
    return text;
  }

  void take(GoldenCase& into, const std::string& name, std::string text) const {
    if (name == "case")
      into.name = std::move(text);
    else if (name == "buffer")
      into.buffer = std::move(text) + "\n";
    else if (name == "raw")
      into.raw = std::move(text);
    else if (name == "unsure")
      into.unsure.push_back(std::move(text));
    else if (name == "rejected")
      into.rejected = std::move(text);
    else if (name == "selected")
      into.selected = std::move(text);
    else if (name == "or")
      into.alternatives.push_back(std::move(text));
    else if (name == "shows")
      into.shows.push_back(std::move(text));
    else if (name == "replaces")
      into.replaces = std::move(text);
    else if (name == "silent")
      into.silent = std::move(text);
    else
      fail("no field is called " + name);
  }

  fs::path file_;
  std::ifstream stream_;
  std::string line_;
  int number_ = 0;
  bool more_ = false;
};

}  // namespace

std::vector<GoldenCase> golden_cases(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<GoldenCase> cases;
  for (const fs::path& file : files)
    for (GoldenCase& each : Reader(file).read()) cases.push_back(std::move(each));
  return cases;
}

}  // namespace efimd::test
