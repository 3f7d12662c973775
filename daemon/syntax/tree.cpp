#include "daemon/syntax/tree.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include "base/thread_clock.h"

namespace efimd::syntax {

namespace {

struct DeleteParser {
  void operator()(TSParser* parser) const { ts_parser_delete(parser); }
};

/// Bytes that tree-sitter is given before the time that it took is looked at.
constexpr std::size_t kPieceBytes = 512;

/// A text that goes on as blanks once its time is over: 48 KiB of them take tenths of a second at
/// most. tree-sitter's own limits are not used, because up to 0.20.7 a parse that is given up between
/// two tokens frees a null pointer. Nor does the text end there: its lexer trusts that what it has
/// seen stays.
struct TimedText {
  std::string_view text;
  ThreadClock::time_point end;
  bool is_over = false;

  static const char* read(void* self, std::uint32_t at, TSPoint, std::uint32_t* size) {
    static const std::string kBlanks(kPieceBytes, ' ');
    TimedText& timed = *static_cast<TimedText*>(self);
    timed.is_over = timed.is_over || ThreadClock::now() >= timed.end;
    const std::size_t left = timed.text.size() - std::min<std::size_t>(at, timed.text.size());
    *size = static_cast<std::uint32_t>(std::min(left, kPieceBytes));
    return timed.is_over || left == 0 ? kBlanks.data() : timed.text.data() + at;
  }
};

/// A cursor over the children of one node.
class Children {
 public:
  explicit Children(TSNode node) : cursor_(ts_tree_cursor_new(node)) {
    there_ = ts_tree_cursor_goto_first_child(&cursor_);
  }
  ~Children() { ts_tree_cursor_delete(&cursor_); }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  bool there() const { return there_; }
  TSNode node() const { return ts_tree_cursor_current_node(&cursor_); }
  void next() { there_ = ts_tree_cursor_goto_next_sibling(&cursor_); }

 private:
  TSTreeCursor cursor_;
  bool there_ = false;
};

}  // namespace

std::optional<Tree> Tree::of(Grammar grammar, std::string_view text, std::uint64_t time_us) {
  const TSLanguage* const language = language_of(grammar);
  if (language == nullptr) return std::nullopt;
  if (text.size() > kTextBytesMax) {
    const std::size_t line_end = text.rfind('\n', kTextBytesMax - 1);
    if (line_end == std::string_view::npos) return std::nullopt;
    text = text.substr(0, line_end + 1);
  }
  const std::unique_ptr<TSParser, DeleteParser> parser(ts_parser_new());
  if (!parser || !ts_parser_set_language(parser.get(), language)) return std::nullopt;
  TimedText timed{text, ThreadClock::now() + std::chrono::microseconds(time_us)};
  std::unique_ptr<TSTree, Delete> tree(
      ts_parser_parse(parser.get(), nullptr, {&timed, &TimedText::read, TSInputEncodingUTF8}));
  if (tree == nullptr || timed.is_over) return std::nullopt;
  return Tree(tree.release(), text);
}

void for_each_child(TSNode node, const std::function<bool(TSNode)>& visit) {
  if (ts_node_is_null(node)) return;
  for (Children children(node); children.there(); children.next())
    if (ts_node_is_named(children.node()) && !visit(children.node())) return;
}

TSNode child_of_type(TSNode node, std::string_view type) {
  TSNode found = {};
  for_each_child(node, [&](TSNode child) {
    if (type_of(child) == type) found = child;
    return ts_node_is_null(found);
  });
  return found;
}

}  // namespace efimd::syntax
