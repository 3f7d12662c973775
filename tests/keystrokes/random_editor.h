#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/completion/completion.h"
#include "daemon/text/document.h"

namespace efimd::test {

/// Somebody at several files who types, takes back, accepts, jumps, undoes and switches, at random
/// but the same for the same seed. Text typed is the files' own.
class RandomEditor {
 public:
  struct File {
    std::string uri;
    text::Document document;
    std::size_t cursor = 0;
    std::optional<completion::Item> shown = {};  ///< good for the text as it is
    std::vector<std::pair<std::string, std::size_t>> undone = {}, done = {};  ///< texts and cursors
  };

  RandomEditor(std::vector<File> files, unsigned seed) : files_(std::move(files)), random_(seed) {}

  File& file() { return files_[at_]; }
  std::string_view bytes() { return file().document.snapshot()->bytes(); }
  /// Below `end`, which is not 0.
  std::size_t pick(std::size_t end) { return random_() % end; }

  /// One thing that a person does; returns its name.
  std::string_view act() {
    switch (pick(16)) {
      case 0:
        return jump();
      case 1:
        return step_aside();
      case 2:
        return add_line_above();
      case 3:
        return switch_file();
      case 4:
        return undo();
      case 5:
        return redo();
      case 6:
      case 7:
        return accept();
      case 8:
        return newline();
      case 9:
        return erase();
      case 10:
        return type_pair();
      default:
        return type();
    }
  }

 private:
  std::string_view type() {
    const std::string_view text = bytes();
    const std::size_t from = pick(std::max<std::size_t>(text.size(), 1));
    std::string typed(text.substr(from, 1 + pick(3)));
    std::erase_if(typed, [](char c) { return static_cast<signed char>(c) < ' '; });
    insert(typed.empty() ? "x" : typed);
    return "type";
  }
  std::string_view type_pair() {
    insert("(");
    replace(file().cursor, file().cursor, ")");
    return "pair";
  }
  std::string_view newline() {
    insert("\n" + std::string(2 * pick(4), ' '));
    return "newline";
  }
  std::string_view erase() {
    const std::size_t from = file().cursor - std::min(file().cursor, 1 + pick(4));
    replace(from, file().cursor, "");
    return "erase";
  }
  /// All of what is shown, its first line or its first word.
  std::string_view accept() {
    if (!file().shown) return type();
    const completion::Item item = *file().shown;
    std::size_t size = item.text.size();
    if (pick(3) == 0) size = std::min(size, item.text.find('\n', 1));
    if (pick(3) == 0) size = std::min(size, item.text.find_first_of(" \n", 1));
    replace(item.replace_begin, size == item.text.size() ? item.replace_end : file().cursor,
            item.text.substr(0, size));
    file().cursor = item.replace_begin + size;
    return "accept";
  }
  std::string_view jump() {
    const text::LineIndex& lines = file().document.snapshot()->lines();
    const std::size_t line = pick(lines.line_count());
    file().cursor = lines.content_end(bytes(), line);
    file().shown.reset();
    return "jump";
  }
  std::string_view step_aside() {
    const std::size_t by = 1 + pick(3);
    std::size_t& cursor = file().cursor;
    cursor = pick(2) == 0 ? cursor - std::min(cursor, by) : std::min(cursor + by, bytes().size());
    file().shown.reset();
    return "step";
  }
  std::string_view add_line_above() {
    const text::LineIndex& lines = file().document.snapshot()->lines();
    const std::size_t line = lines.line_of(file().cursor);
    const std::size_t at = lines.start(pick(line + 1));
    const std::string added = "// note\n";
    const std::size_t cursor = file().cursor;
    replace(at, at, added);
    file().cursor = cursor + added.size();
    return "above";
  }
  std::string_view switch_file() {
    at_ = pick(files_.size());
    return "switch";
  }
  std::string_view undo() { return travel(file().done, file().undone, "undo"); }
  std::string_view redo() { return travel(file().undone, file().done, "redo"); }

  using Past = std::vector<std::pair<std::string, std::size_t>>;
  std::string_view travel(Past& from, Past& to, std::string_view name) {
    if (from.empty()) return type();
    to.emplace_back(std::string(bytes()), file().cursor);
    auto [text, cursor] = std::move(from.back());
    from.pop_back();
    set(text);
    file().cursor = cursor;
    return name;
  }
  /// As an editor tells an undo: the span that differs.
  void set(std::string_view text) {
    const std::string_view now = bytes();
    const auto first = std::ranges::mismatch(now, text).in1 - now.begin();
    const auto most = static_cast<std::ptrdiff_t>(std::min(now.size(), text.size())) - first;
    std::ptrdiff_t last = 0;
    while (last < most && now[now.size() - 1 - static_cast<std::size_t>(last)] ==
                              text[text.size() - 1 - static_cast<std::size_t>(last)])
      ++last;
    const auto begin = static_cast<std::size_t>(first), tail = static_cast<std::size_t>(last);
    change(begin, now.size() - tail, std::string(text.substr(begin, text.size() - tail - begin)));
  }
  void insert(const std::string& text) {
    replace(file().cursor, file().cursor, text);
    file().cursor += text.size();
  }
  void replace(std::size_t begin, std::size_t end, const std::string& text) {
    constexpr std::size_t kPastMax = 20;
    file().done.emplace_back(std::string(bytes()), file().cursor);
    if (file().done.size() > kPastMax) file().done.erase(file().done.begin());
    file().undone.clear();
    change(begin, end, text);
    file().cursor = begin;
  }
  void change(std::size_t begin, std::size_t end, const std::string& text) {
    if (!file().document.replace(begin, end, text)) std::abort();
    file().shown.reset();
  }

  std::vector<File> files_;
  std::size_t at_ = 0;
  std::mt19937 random_;
};

}  // namespace efimd::test
