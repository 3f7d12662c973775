#pragma once

#include <tree_sitter/api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "daemon/syntax/grammar.h"

// tree-sitter for this room alone: no other room includes its headers, or this one.
namespace efimd::syntax {

static_assert(TREE_SITTER_LANGUAGE_VERSION >= 14, "tree-sitter 0.20 or later reads these grammars");

const TSLanguage* language_of(Grammar grammar);

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
  struct Delete {
    void operator()(TSTree* tree) const { ts_tree_delete(tree); }
  };
  Tree(TSTree* tree, std::string_view text) : tree_(tree), text_(text) {}

  std::unique_ptr<TSTree, Delete> tree_;
  std::string_view text_;
};

inline std::string_view type_of(TSNode node) { return ts_node_type(node); }

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
