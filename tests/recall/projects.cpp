#include "tests/recall/projects.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "base/utf8.h"
#include "daemon/recall/anchors.h"

namespace efimd::recall_places {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtensions[] = {".c",  ".h",  ".cc",  ".cpp", ".hpp", ".py",  ".go",
                                            ".rs", ".ts", ".tsx", ".js",  ".mjs", ".lua", ".java"};

struct Line {
  std::size_t file, begin, end;  ///< of its content, without indentation and blanks at its end
};

std::vector<Line> lines_of(const Project& project) {
  std::vector<Line> lines;
  for (std::size_t file = 0; file < project.files.size(); ++file) {
    const std::string& text = project.files[file].text;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t next = std::min(text.find('\n', at), text.size());
      std::size_t begin = at, end = next;
      while (begin < end && recall::is_blank(text[begin])) ++begin;
      while (end > begin && (recall::is_blank(text[end - 1]) || text[end - 1] == '\r')) --end;
      if (begin < end) lines.push_back({file, begin, end});
      at = next + 1;
    }
  }
  return lines;
}

}  // namespace

Project read_project(const fs::path& folder) {
  Project project{folder.filename().string(), {}};
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (!entry.is_regular_file() ||
        std::ranges::find(kExtensions, extension) == std::end(kExtensions))
      continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (text.size() > recall::kFileBytesMax || text.find('\0') != std::string::npos) continue;
    project.files.push_back({entry.path().lexically_relative(folder).string(), std::move(text)});
  }
  std::ranges::sort(project.files, {}, &recall::File::path);
  return project;
}

std::vector<recall::BatchPtr> batches_of(const Project& project) {
  std::map<std::string, std::vector<recall::File>> waiting;
  std::map<std::string, std::size_t> bytes;
  std::vector<recall::BatchPtr> batches;
  for (const recall::File& file : project.files) {
    const std::string family = recall::family_of(file.path);
    waiting[family].push_back(file);
    bytes[family] += file.text.size() + 1;
    if (bytes[family] + recall::kFileBytesMax < recall::kBatchBytesMax) continue;
    batches.push_back(recall::make_batch(waiting[family]));
    waiting[family].clear();
    bytes[family] = 0;
  }
  for (const auto& [family, files] : waiting)
    if (!files.empty()) batches.push_back(recall::make_batch(files));
  return batches;
}

std::vector<Cursor> draw_cursors(const Project& project, std::size_t count, std::uint64_t seed) {
  const std::vector<Line> lines = lines_of(project);
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::vector<Cursor> cursors;
  std::array<std::size_t, kKinds> drawn{};
  for (std::size_t tries = 0; !lines.empty() && tries < 100 * count; ++tries) {
    const auto kind = static_cast<Kind>(tries % kKinds);
    if (drawn[tries % kKinds] == count) continue;
    const Line& line = lines[below(lines.size())];
    const std::string& text = project.files[line.file].text;
    if (kind == Kind::kInside && line.end - line.begin < 3) continue;
    std::size_t at = kind == Kind::kStart ? line.begin : line.end;
    if (kind == Kind::kInside) at = line.begin + 1 + below(line.end - line.begin - 1);
    if (at < text.size() && utf8::is_continuation(text[at])) continue;
    const std::size_t rest_end = std::min(text.find_first_of("\r\n", line.end), text.size());
    cursors.push_back({kind, line.file, text.substr(0, at) + text.substr(rest_end), at,
                       text.substr(at, line.end - at)});
    ++drawn[tries % kKinds];
  }
  return cursors;
}

}  // namespace efimd::recall_places
