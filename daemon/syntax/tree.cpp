#include "daemon/syntax/tree.h"

#include <ctime>

namespace efimd::syntax {

namespace {

struct DeleteParser {
  void operator()(TSParser* parser) const { ts_parser_delete(parser); }
};

/// How long tree-sitter works before the time that it took is looked at.
constexpr std::uint64_t kSliceUs = 5'000;

/// Of this thread.
std::uint64_t cpu_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec) / 1'000;
}

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
  // tree-sitter's clock is the wall's, which runs on while a busy machine leaves the thread waiting.
  ts_parser_set_timeout_micros(parser.get(), kSliceUs);
  const std::uint64_t begin = cpu_us();
  TSTree* tree = nullptr;
  do {
    tree = ts_parser_parse_string(parser.get(), nullptr, text.data(),
                                  static_cast<std::uint32_t>(text.size()));
  } while (tree == nullptr && cpu_us() - begin < time_us);
  if (tree == nullptr) return std::nullopt;
  return Tree(tree, text);
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
