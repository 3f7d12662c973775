#include "daemon/completion/documents/note.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <tuple>

#include "base/utf8.h"

namespace efimd::completion {

namespace {

constexpr std::string_view kHead = "5";  ///< the form's version

constexpr std::string_view kPath = "path";
constexpr std::string_view kFile = "file ";

/// Takes fields off a line, each up to the next blank.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}
  std::string_view next() {
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view field = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return field;
  }
  template <class Number>
  bool number(Number& value, int base = 10) {
    const std::string_view field = next();
    return read(field, value, base);
  }
  bool digest(Digest& value) {
    const std::string_view field = next();
    return field.size() == 32 && read(field.substr(0, 16), value.high, 16) &&
           read(field.substr(16), value.low, 16);
  }
  bool over() const { return rest_.empty(); }

 private:
  template <class Number>
  static bool read(std::string_view field, Number& value, int base) {
    const auto [end, error] =
        std::from_chars(field.data(), field.data() + field.size(), value, base);
    return error == std::errc() && end == field.data() + field.size() && !field.empty();
  }
  std::string_view rest_;
};

std::optional<NotedAnchor> parse_anchor(std::string_view line) {
  Fields fields(line);
  NotedAnchor anchor;
  unsigned view = 0, has_head = 0;
  if (!fields.number(view) || view > static_cast<unsigned>(prompt::View::kNear) ||
      !fields.number(anchor.window_begin) || !fields.number(anchor.cut) ||
      !fields.number(anchor.resume) || !fields.number(anchor.window_end) ||
      !fields.digest(anchor.before) || !fields.digest(anchor.after) || !fields.number(has_head) ||
      has_head > 1 || !fields.over())
    return std::nullopt;
  anchor.has_head = has_head == 1;
  anchor.view = static_cast<prompt::View>(view);
  return anchor;
}

/// "path FILES TOKENS INSIDE ID ..."; the last INSIDE ids stand after the prefix token.
std::optional<prompt::PathHead> parse_path(std::string_view line) {
  Fields fields(line);
  prompt::PathHead path;
  std::size_t inside = 0;
  if (fields.next() != kPath || !fields.number(path.other_files) ||
      !fields.number(path.other_tokens) || !fields.number(inside))
    return std::nullopt;
  std::vector<engine::TokenId> tokens;
  while (!fields.over()) {
    engine::TokenId id = engine::kNoToken;
    if (tokens.size() >= kNotedPathTokensMax || !fields.number(id) || id < 0) return std::nullopt;
    tokens.push_back(id);
  }
  if (inside > tokens.size()) return std::nullopt;
  const auto border = tokens.end() - static_cast<std::ptrdiff_t>(inside);
  path.front.assign(tokens.begin(), border);
  path.inside.assign(border, tokens.end());
  return path;
}

Digest digest_of_tokens(const std::vector<engine::TokenId>& tokens) {
  return digest_of(std::as_bytes(std::span(tokens)));
}

std::vector<engine::TokenId> encode(const text::Snapshot& snapshot, std::size_t begin,
                                    std::size_t end, const engine::Tokenizer& tokenizer) {
  return tokenizer.encode(snapshot.bytes().substr(begin, end - begin),
                          begin == 0 ? engine::Fragment::kTextStart : engine::Fragment::kInside);
}

}  // namespace

std::string note_text(const Note& note) {
  std::string text = fmt::format("{} {} {} {} {}\n", kHead, note.cursor, note.text_bytes,
                                 note.window_begin, note.window_end);
  for (const NotedAnchor& anchor :
       std::span(note.anchors).first(std::min(note.anchors.size(), kNotedAnchorsMax)))
    text += fmt::format("{} {} {} {} {} {} {} {:d}\n", static_cast<unsigned>(anchor.view),
                        anchor.window_begin, anchor.cut, anchor.resume, anchor.window_end,
                        anchor.before.hex(), anchor.after.hex(), anchor.has_head);
  const prompt::PathHead& path = note.path;
  const auto is_one_line = [](const std::string& uri) {
    return !uri.empty() && uri.find('\n') == uri.npos;
  };
  // What nobody could find at a purge is not noted.
  if (path.other_files == 0 || path.size() > kNotedPathTokensMax || note.files.empty() ||
      note.files.size() > kNotedFilesMax || !std::ranges::all_of(note.files, is_one_line))
    return text;
  text +=
      fmt::format("{} {} {} {}", kPath, path.other_files, path.other_tokens, path.inside.size());
  for (const auto* const part : {&path.front, &path.inside})
    for (const engine::TokenId id : *part) text += fmt::format(" {}", id);
  text += "\n";
  for (const std::string& uri : note.files) text += fmt::format("{}{}\n", kFile, uri);
  return text;
}

bool shows_any(std::string_view note, const std::set<std::string, std::less<>>& uris) {
  while (!note.empty()) {
    const std::string_view line = note.substr(0, note.find('\n'));
    note.remove_prefix(std::min(line.size() + 1, note.size()));
    if (line.starts_with(kFile) && uris.contains(line.substr(kFile.size()))) return true;
  }
  return false;
}

std::optional<Note> parse_note(std::string_view text) {
  Note note;
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (first) {
      Fields fields(line);
      if (fields.next() != kHead || !fields.number(note.cursor) ||
          !fields.number(note.text_bytes) || !fields.number(note.window_begin) ||
          !fields.number(note.window_end) || !fields.over())
        return std::nullopt;
      first = false;
      continue;
    }
    if (line.starts_with(kPath)) {
      auto path = parse_path(line);
      if (!path || note.path.size() > 0) return std::nullopt;
      note.path = std::move(*path);
      continue;
    }
    if (line.starts_with(kFile)) {
      if (note.files.size() >= kNotedFilesMax) return std::nullopt;
      note.files.emplace_back(line.substr(kFile.size()));
      continue;
    }
    const auto anchor = parse_anchor(line);
    if (!anchor || note.anchors.size() >= kNotedAnchorsMax) return std::nullopt;
    note.anchors.push_back(*anchor);
  }
  if (first || (note.path.size() > 0 && note.files.empty())) return std::nullopt;
  return note;
}

NotedAnchor noted(const prompt::Anchor& anchor) {
  return {anchor.view,
          anchor.window_begin,
          anchor.cut,
          anchor.resume,
          anchor.window_end,
          digest_of_tokens(anchor.before),
          digest_of_tokens(anchor.after),
          true};
}

std::optional<prompt::Anchor> anchor_from(const NotedAnchor& noted, const text::Snapshot& snapshot,
                                          std::ptrdiff_t grown,
                                          const engine::Tokenizer& tokenizer) {
  const std::string_view text = snapshot.bytes();
  // Modulo 2^64: a place below 0 becomes one past the end.
  const auto moved = static_cast<std::size_t>(grown);
  const std::array places = {noted.window_begin, noted.cut, noted.resume + moved,
                             noted.window_end + moved};
  if (!std::ranges::is_sorted(places) || places.back() > text.size()) return std::nullopt;
  for (const std::size_t place : places)
    if (utf8::floor(text, place) != place) return std::nullopt;
  prompt::Anchor anchor;
  anchor.view = noted.view;
  anchor.serial = snapshot.serial();
  std::tie(anchor.window_begin, anchor.cut, anchor.resume, anchor.window_end) =
      std::tuple_cat(places);
  anchor.before = encode(snapshot, anchor.window_begin, anchor.cut, tokenizer);
  anchor.after = tokenizer.encode(text.substr(anchor.resume, anchor.window_end - anchor.resume),
                                  engine::Fragment::kInside);
  if (digest_of_tokens(anchor.before) != noted.before ||
      digest_of_tokens(anchor.after) != noted.after)
    return std::nullopt;
  return anchor;
}

}  // namespace efimd::completion
