#include "daemon/syntax/tree.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include "base/thread_clock.h"

namespace efimd::syntax {

namespace {

/// Bytes that tree-sitter is given before the time that it took is looked at.
constexpr std::size_t kPieceBytes = 512;

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

TimedText::TimedText(std::string_view text, std::uint64_t time_us)
    : text_(text), end_(ThreadClock::now() + std::chrono::microseconds(time_us)) {}

const char* TimedText::piece(std::size_t at, std::uint32_t& size) {
  static const std::string kBlanks(kPieceBytes, ' ');
  is_over_ = is_over_ || ThreadClock::now() >= end_;
  const std::size_t left = text_.size() - std::min(at, text_.size());
  size = static_cast<std::uint32_t>(std::min(left, kPieceBytes));
  return is_over_ || left == 0 ? kBlanks.data() : text_.data() + at;
}

ParserPtr parser_of(Grammar grammar) {
  const TSLanguage* const language = language_of(grammar);
  if (language == nullptr) return nullptr;
  ParserPtr parser(ts_parser_new());
  if (!parser || !ts_parser_set_language(parser.get(), language)) return nullptr;
  return parser;
}

std::optional<Tree> Tree::of(Grammar grammar, std::string_view text, std::uint64_t time_us) {
  const ParserPtr parser = parser_of(grammar);
  if (parser == nullptr) return std::nullopt;
  const bool is_long = text.size() > kTextBytesMax;
  text = part_read(text);
  if (is_long && text.empty()) return std::nullopt;
  TimedText timed(text, time_us);
  const auto read = [](void* self, std::uint32_t at, TSPoint, std::uint32_t* size) {
    return static_cast<TimedText*>(self)->piece(at, *size);
  };
  std::unique_ptr<TSTree, DeleteTree> tree(
      ts_parser_parse(parser.get(), nullptr, {&timed, read, TSInputEncodingUTF8}));
  if (tree == nullptr || timed.is_over()) return std::nullopt;
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
