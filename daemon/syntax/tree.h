#pragma once

#include <tree_sitter/api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/thread_clock.h"
#include "daemon/syntax/grammar.h"

// tree-sitter for this room alone: no other room includes its headers, or this one.
namespace efimd::syntax {

static_assert(TREE_SITTER_LANGUAGE_VERSION >= 14, "tree-sitter 0.20 or later reads these grammars");

const TSLanguage* language_of(Grammar grammar);

struct DeleteParser {
  void operator()(TSParser* parser) const { ts_parser_delete(parser); }
};
using ParserPtr = std::unique_ptr<TSParser, DeleteParser>;
struct DeleteTree {
  void operator()(TSTree* tree) const { ts_tree_delete(tree); }
};

/// A parser for that language; null for kNone.
ParserPtr parser_of(Grammar grammar);

/// What a parser reads: a text that goes on as blanks once its time is over. 48 KiB of them take
/// tenths of a second at most. tree-sitter's own limits are not used, because up to 0.20.7 a parse
/// that is given up between two tokens frees a null pointer. Nor does the text end there: its lexer
/// trusts that what it has seen stays.
class TimedText {
 public:
  TimedText(std::string_view text, std::uint64_t time_us);

  /// What tree-sitter reads from the byte `at` on.
  const char* piece(std::size_t at, std::uint32_t& size);
  bool is_over() const { return is_over_; }
  void end_now() { is_over_ = true; }

 private:
  const std::string_view text_;
  const ThreadClock::time_point end_;
  bool is_over_ = false;
};

/// A text's tree, or that of its first lines. Borrows the text.
class Tree {
 public:
  /// nullopt if it takes too long, and for kNone.
  static std::optional<Tree> of(Grammar grammar, std::string_view text,
                                std::uint64_t time_us = kParseTimeUs);

  TSNode root() const { return ts_tree_root_node(tree_.get()); }
  std::string_view text() const { return text_; }
  std::string_view text_of(TSNode node) const {
    return text_.substr(ts_node_start_byte(node),
                        ts_node_end_byte(node) - ts_node_start_byte(node));
  }

 private:
  Tree(TSTree* tree, std::string_view text) : tree_(tree), text_(text) {}

  std::unique_ptr<TSTree, DeleteTree> tree_;
  std::string_view text_;
};

inline std::string_view type_of(TSNode node) { return ts_node_type(node); }

inline bool is_among(std::string_view type, std::span<const std::string_view> types) {
  return std::ranges::find(types, type) != types.end();
}

/// The child of that field; a null node if there is none, as of a null node.
inline TSNode field_of(TSNode node, std::string_view field) {
  if (ts_node_is_null(node)) return node;
  return ts_node_child_by_field_name(node, field.data(), static_cast<std::uint32_t>(field.size()));
}

/// Visits the named children in order, until `visit` returns false. ts_node_child() counts from the
/// first one each time, which would make a flat file of 50,000 nodes a matter of seconds.
void for_each_child(TSNode node, const std::function<bool(TSNode)>& visit);

/// The first named child of that type; a null node if there is none.
TSNode child_of_type(TSNode node, std::string_view type);

}  // namespace efimd::syntax
