#include "daemon/syntax/imports.h"

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/syntax/import_part.h"
#include "daemon/syntax/tree.h"

namespace efimd::syntax {

namespace {

/// Nodes that imports may stand in, also the functions of Python and Rust. While a line is half typed,
/// all that follows may be an error, and so may the block in which the text was cut.
constexpr auto kBlocks = std::to_array<std::string_view>({"preproc_if",
                                                          "preproc_ifdef",
                                                          "preproc_else",
                                                          "preproc_elif",
                                                          "namespace_definition",
                                                          "linkage_specification",
                                                          "declaration_list",
                                                          "if_statement",
                                                          "else_clause",
                                                          "try_statement",
                                                          "except_clause",
                                                          "block",
                                                          "mod_item",
                                                          "import_declaration",
                                                          "import_spec_list",
                                                          "function_definition",
                                                          "class_definition",
                                                          "decorated_definition",
                                                          "function_item",
                                                          "impl_item",
                                                          "lexical_declaration",
                                                          "variable_declaration",
                                                          "export_statement",
                                                          "statement_block",
                                                          "ERROR"});

bool is_block(std::string_view type) {
  for (const std::string_view block : kBlocks)
    if (type == block) return true;
  return false;
}

std::string unquoted(std::string_view text) {
  if (text.size() >= 2) text = text.substr(1, text.size() - 2);
  return std::string(text);
}

class ImportReader {
 public:
  ImportReader(Grammar grammar, const Tree& tree) : grammar_(grammar), tree_(tree) {}

  std::vector<Import> read() {
    walk(tree_.root(), 0);
    return std::move(imports_);
  }

 private:
  void walk(TSNode node, int depth) {
    if (depth > kDepthMax) return;
    for_each_child(node, [&](TSNode child) {
      if (take(child) || !is_block(type_of(child))) return imports_.size() < kImportsMax;
      const std::size_t is_module = type_of(child) == "mod_item" ? 1 : 0;
      modules_ += is_module;
      walk(child, depth + 1);
      modules_ -= is_module;
      return imports_.size() < kImportsMax;
    });
  }

  void add(Import import) {
    if (!import.what.empty() && imports_.size() < kImportsMax)
      imports_.push_back(std::move(import));
  }

  /// Whether the node was an import.
  bool take(TSNode node) {
    switch (grammar_) {
      case Grammar::kC:
      case Grammar::kCpp:
        return take_include(node);
      case Grammar::kPython:
        return take_python(node);
      case Grammar::kGo:
        return take_go(node);
      case Grammar::kRust:
        return take_rust(node);
      case Grammar::kTypescript:
      case Grammar::kTsx:
        return take_script(node);
      case Grammar::kJava:
        return take_java(node);
      case Grammar::kNone:
        break;
    }
    return false;
  }

  bool take_include(TSNode node) {
    if (type_of(node) != "preproc_include") return false;
    const TSNode path = field_of(node, "path");
    if (ts_node_is_null(path)) return true;
    const bool system = type_of(path) == "system_lib_string";
    if (system || type_of(path) == "string_literal")
      add({system ? Import::Kind::kSystem : Import::Kind::kQuoted, unquoted(tree_.text_of(path))});
    return true;
  }

  /// The name that an import gives: of `a as b`, a.
  std::string name_of(TSNode node) const {
    const TSNode name = field_of(node, "name");
    return std::string(tree_.text_of(ts_node_is_null(name) ? node : name));
  }

  void add_name(TSNode node, Import& import) const {
    import.names.push_back(name_of(node));
    const TSNode alias = field_of(node, "alias");
    if (!ts_node_is_null(alias))
      import.renamed.push_back({import.names.back(), std::string(tree_.text_of(alias))});
  }

  bool take_python(TSNode node) {
    const std::string_view type = type_of(node);
    if (type == "import_statement") {
      for_each_child(node, [&](TSNode child) {
        add({Import::Kind::kModule, name_of(child)});
        return true;
      });
      return true;
    }
    if (type != "import_from_statement") return false;
    const TSNode module = field_of(node, "module_name");
    if (ts_node_is_null(module)) return true;
    Import import{Import::Kind::kModule, std::string(tree_.text_of(module))};
    for_each_child(node, [&](TSNode child) {
      const std::string_view kind = type_of(child);
      if (!ts_node_eq(child, module) && (kind == "dotted_name" || kind == "aliased_import"))
        add_name(child, import);
      return import.names.size() < kImportsMax;
    });
    add(std::move(import));
    return true;
  }

  bool take_go(TSNode node) {
    if (type_of(node) != "import_spec") return false;
    const TSNode path = field_of(node, "path");
    if (!ts_node_is_null(path)) add({Import::Kind::kQuoted, unquoted(tree_.text_of(path))});
    return true;
  }

  bool take_rust(TSNode node) {
    const std::string_view type = type_of(node);
    if (type == "mod_item" && ts_node_is_null(field_of(node, "body"))) {
      add({Import::Kind::kChild, name_of(node)});
      return true;
    }
    if (type != "use_declaration") return false;
    const TSNode argument = field_of(node, "argument");
    if (!ts_node_is_null(argument)) take_use(argument, "", 0);
    return true;
  }

  /// In a module of the text, such as that of tests, "super" begins at this module and may lead to no
  /// other file.
  void add_use(std::string path) {
    constexpr std::string_view kSelf = "self", kSuper = "super";
    const auto begins_with = [&](std::string_view word) {
      return path.starts_with(word) && (path.size() == word.size() || path[word.size()] == ':');
    };
    std::size_t above = 0;
    for (; above < modules_ && begins_with(kSuper); ++above)
      path.erase(0, std::min(path.size(), kSuper.size() + kColons.size()));
    if (above < modules_ && (above > 0 || begins_with(kSelf))) return;
    if (above > 0 && !begins_with(kSuper)) {
      if (path.empty()) return;
      path.insert(0, std::string(kSelf).append(kColons));
    }
    add({Import::Kind::kModule, std::move(path)});
  }

  /// crate::a::{B, c::D} is two imports.
  void take_use(TSNode node, const std::string& front, int depth) {
    if (depth > kDepthMax || ts_node_is_null(node)) return;
    const std::string_view type = type_of(node);
    const auto joined = [&](TSNode tail) {
      if (ts_node_is_null(tail)) return front;
      const std::string text(tree_.text_of(tail));
      return front.empty() ? text : std::string(front).append(kColons).append(text);
    };
    if (type == "scoped_use_list") {
      take_use(field_of(node, "list"), joined(field_of(node, "path")), depth + 1);
    } else if (type == "use_list") {
      for_each_child(node, [&](TSNode child) {
        take_use(child, front, depth + 1);
        return imports_.size() < kImportsMax;
      });
    } else if (type == "use_as_clause") {
      add_use(joined(field_of(node, "path")));
    } else if (type == "use_wildcard") {
      TSNode path = {};
      for_each_child(node, [&](TSNode child) {
        path = child;
        return false;
      });
      add_use(joined(path));
    } else {
      add_use(joined(node));
    }
  }

  bool take_script(TSNode node) {
    const std::string_view type = type_of(node);
    if (type == "import_statement" || type == "export_statement") {
      TSNode source = field_of(node, "source");
      // TypeScript's "import a = require("b")".
      if (ts_node_is_null(source))
        source = field_of(child_of_type(node, "import_require_clause"), "source");
      if (ts_node_is_null(source)) return type == "import_statement";
      Import import{Import::Kind::kQuoted, unquoted(tree_.text_of(source))};
      take_script_names(node, import, 0);
      add(std::move(import));
      return true;
    }
    if (type != "variable_declarator") return false;
    const TSNode value = field_of(node, "value");
    const TSNode call = call_in(value);
    const TSNode function = field_of(call, "function");
    if (ts_node_is_null(function)) return true;
    if (tree_.text_of(value).size() <= kLazyBytesMax && add_lazy(call, 0)) return true;
    if (const auto name = tree_.text_of(function); name != "require" && name != "import")
      return true;
    const TSNode source = child_of_type(field_of(call, "arguments"), "string");
    if (ts_node_is_null(source)) return true;
    Import import{Import::Kind::kQuoted, unquoted(tree_.text_of(source))};
    for_each_child(field_of(node, "name"), [&](TSNode child) {
      if (type_of(child) == "shorthand_property_identifier_pattern")
        import.names.emplace_back(tree_.text_of(child));
      return import.names.size() < kImportsMax;
    });
    add(std::move(import));
    return true;
  }

  /// That of `lazy(() => import("a"))` and of `dynamic(() => import("a").then(...))`; false if
  /// there is none.
  bool add_lazy(TSNode node, int depth) {
    if (depth > kLazyDepthMax) return false;
    bool found = false;
    for_each_child(node, [&](TSNode child) {
      const TSNode function = field_of(child, "function");
      if (!ts_node_is_null(function) && type_of(function) == "import") {
        const TSNode source = child_of_type(field_of(child, "arguments"), "string");
        if (!ts_node_is_null(source)) add({Import::Kind::kQuoted, unquoted(tree_.text_of(source))});
        found = true;
      } else {
        found = add_lazy(child, depth + 1);
      }
      return !found;
    });
    return found;
  }

  /// That of `require("a").b` and of `await import("a")`; a null node if there is none.
  static TSNode call_in(TSNode value) {
    for (int level = 0; level < 3 && !ts_node_is_null(value); ++level) {
      const std::string_view type = type_of(value);
      if (type == "call_expression") return value;
      if (type != "member_expression" && type != "await_expression") break;
      value = ts_node_named_child(value, 0);
    }
    return {};
  }

  void take_script_names(TSNode node, Import& import, int depth) {
    if (depth > 3) return;
    for_each_child(node, [&](TSNode child) {
      const std::string_view type = type_of(child);
      if (type == "import_specifier" || type == "export_specifier")
        add_name(child, import);
      else if (type == "import_clause" || type == "named_imports" || type == "export_clause")
        take_script_names(child, import, depth + 1);
      return import.names.size() < kImportsMax;
    });
  }

  bool take_java(TSNode node) {
    if (type_of(node) != "import_declaration") return false;
    std::string what;
    bool all = false;
    for_each_child(node, [&](TSNode child) {
      if (type_of(child) == "asterisk") all = true;
      if (type_of(child).ends_with("identifier")) what = tree_.text_of(child);
      return true;
    });
    add({Import::Kind::kModule, all ? what + ".*" : what});
    return true;
  }

  static constexpr std::string_view kColons = "::";
  /// Of a call that may have an import in its arguments, and of nodes in it.
  static constexpr std::size_t kLazyBytesMax = 1024;
  static constexpr int kLazyDepthMax = 8;

  const Grammar grammar_;
  const Tree& tree_;
  std::vector<Import> imports_;
  std::size_t modules_ = 0;  ///< of the text, around the node that is read
};

}  // namespace

std::vector<Import> imports_of(Grammar grammar, std::string_view text) {
  const std::string part = import_part(grammar, text);
  const std::optional<Tree> tree = Tree::of(grammar, part);
  if (!tree) return {};
  return ImportReader(grammar, *tree).read();
}

}  // namespace efimd::syntax
