#include "net/http/documents.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/text/line_index.h"
#include "lsp/json_rpc.h"

namespace efimd::http {

using lsp::Json;

namespace {

/// A side of a window is taken for cut if it is nearly as large as the largest one of its document.
constexpr std::size_t kCutEighths = 7;
/// So alike is no other file: the others are not compared.
constexpr double kSurelyAlike = 0.9;

constexpr std::size_t kSampleBytesMax = 1024;

bool is_cut(std::size_t bytes, std::size_t largest) {
  return bytes > 0 && bytes * 8 >= largest * kCutEighths;
}

lsp::Position position_at(const text::LineIndex& lines, std::size_t byte) {
  const std::size_t line = lines.line_of(byte);
  return {static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(byte - lines.start(line))};
}

/// Later edits first: each range is then in the text that it was made for.
std::string change_body(const std::string& uri, std::int32_t version, std::string_view text,
                        const std::vector<Edit>& edits) {
  const text::LineIndex lines(text);
  Json changes = Json::array();
  for (auto edit = edits.rbegin(); edit != edits.rend(); ++edit)
    changes.push_back({{"range", lsp::to_json(lsp::Range{position_at(lines, edit->begin),
                                                         position_at(lines, edit->end)})},
                       {"text", edit->text}});
  return lsp::notification_body("textDocument/didChange",
                                {{"textDocument", {{"uri", uri}, {"version", version}}},
                                 {"contentChanges", std::move(changes)}});
}

std::string close_body(const std::string& uri) {
  return lsp::notification_body("textDocument/didClose", {{"textDocument", {{"uri", uri}}}});
}

/// The path's last part, encoded; rules for secret files look at it.
std::string name_in_uri(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  const std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : name.substr(0, 255)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (plain) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += kHex[byte >> 4U];
      encoded += kHex[byte & 15U];
    }
  }
  return encoded.empty() ? "text" : encoded;
}

void finish(Placed& placed, std::string_view text, std::size_t cursor) {
  const text::LineIndex lines(text);
  placed.cursor = position_at(lines, cursor);
  const std::size_t end = lines.content_end(text, placed.cursor.line);
  placed.rest = text.substr(cursor, std::max(end, cursor) - cursor);
}

}  // namespace

std::string_view lines_above(std::string_view before) {
  before = before.substr(0, before.rfind('\n') + 1);
  if (before.size() <= kSampleBytesMax) return before;
  before.remove_prefix(before.size() - kSampleBytesMax);
  return before.substr(std::min(before.find('\n') + 1, before.size()));
}

std::string_view lines_below(std::string_view after) {
  const std::size_t end = after.find('\n');
  if (end == std::string_view::npos) return {};
  after.remove_prefix(end + 1);
  return after.size() <= kSampleBytesMax
             ? after
             : after.substr(0, after.rfind('\n', kSampleBytesMax - 1) + 1);
}

Placed Documents::place(const Surroundings& text, Clock::time_point now) {
  auto placed = place_in_open(text, now);
  return placed ? std::move(*placed) : opened(text, now);
}

std::optional<Placed> Documents::place_in_open(const Surroundings& text, Clock::time_point now) {
  Match match = best_match(text);
  if (match.open == open_.end()) return std::nullopt;
  open_.splice(open_.begin(), open_, match.open);
  Open& open = open_.front();
  std::string changed = edited(open.text, match.laid.edits);
  if (changed.size() > kTextBytesMax) {
    Placed placed = opened(text, now);  // it goes on with what the client shows
    const auto old = std::next(open_.begin());
    placed.messages.push_back(close_body(old->uri));
    open_.erase(old);
    return placed;
  }
  Placed placed{open.uri, open.version, {}, {}, {}};
  if (!match.laid.edits.empty()) {
    placed.version = ++open.version;
    placed.messages.push_back(change_body(open.uri, open.version, open.text, match.laid.edits));
    open.text = std::move(changed);
  }
  open.before_max = std::max(open.before_max, text.before.size());
  open.after_max = std::max(open.after_max, text.after.size());
  open.used = now;
  finish(placed, open.text, match.laid.cursor);
  return placed;
}

Documents::Match Documents::best_match(const Surroundings& text) {
  Match best{open_.end(), {}};
  Window window{text.before + text.after, text.before.size()};
  for (auto open = open_.begin(); open != open_.end(); ++open) {
    if (open->path != text.path) continue;
    window.cut_above = is_cut(text.before.size(), open->before_max);
    window.cut_below = is_cut(text.after.size(), open->after_max);
    Laid laid = lay_over(open->text, window);
    if (laid.likeness < kLikenessMin || laid.likeness <= best.laid.likeness) continue;
    best = {open, std::move(laid)};
    if (best.laid.likeness >= kSurelyAlike) break;
  }
  return best;
}

Placed Documents::opened(const Surroundings& text, Clock::time_point now) {
  Open open;
  open.uri = "efimd-http:/" + std::to_string(++opened_) + "/" + name_in_uri(text.path);
  open.path = text.path;
  open.text = text.before + text.after;
  open.before_max = text.before.size();
  open.after_max = text.after.size();
  Placed placed{open.uri, open.version, {}, {}, {}};
  placed.messages = add(std::move(open), "", now);
  finish(placed, open_.front().text, text.before.size());
  return placed;
}

std::vector<std::string> Documents::adopt(Edited document, const Surroundings& text,
                                          Clock::time_point now) {
  Window window{text.before + text.after, text.before.size()};
  window.cut_above = window.cut_below = true;
  if (document.text.size() > kTextBytesMax ||
      std::ranges::find(open_, document.uri, &Open::uri) != open_.end() ||
      lay_over(document.text, window).likeness < kLikenessMin)
    return {};
  Open open;
  open.uri = std::move(document.uri);
  open.path = text.path;
  open.text = std::move(document.text);
  return add(std::move(open), document.language_id, now);
}

std::vector<std::string> Documents::add(Open open, const std::string& language_id,
                                        Clock::time_point now) {
  std::vector<std::string> messages;
  if (open_.size() >= kDocumentsMax) {
    messages.push_back(close_body(open_.back().uri));
    open_.pop_back();
  }
  messages.push_back(lsp::notification_body("textDocument/didOpen", {{"textDocument",
                                                                      {{"uri", open.uri},
                                                                       {"languageId", language_id},
                                                                       {"version", open.version},
                                                                       {"text", open.text}}}}));
  open.used = now;
  open_.push_front(std::move(open));
  return messages;
}

std::vector<std::string> Documents::close_idle(Clock::time_point now) {
  std::vector<std::string> messages;
  while (!open_.empty() && now - open_.back().used >= kIdleMax) {
    messages.push_back(close_body(open_.back().uri));
    open_.pop_back();
  }
  return messages;
}

}  // namespace efimd::http
