#include "daemon/syntax/outline.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "daemon/syntax/tree.h"

namespace efimd::syntax {

namespace {

/// A longer value, list of enumerators or macro says more of the file's inside than of its use.
constexpr std::size_t kValueBytesMax = 60;
/// Names of a declaration, at most: its own, and those of what is in it.
constexpr std::size_t kNamesMax = 64;

using Types = std::span<const std::string_view>;

bool is_among(std::string_view type, Types types) {
  return std::ranges::find(types, type) != types.end();
}

/// What stands around declarations and is not one itself.
constexpr auto kAround = std::to_array<std::string_view>(
    {"namespace_definition", "linkage_specification", "declaration_list", "preproc_if",
     "preproc_ifdef", "preproc_else", "preproc_elif", "if_statement", "else_clause",
     "try_statement", "except_clause", "block", "mod_item", "export_statement",
     "ambient_declaration", "expression_statement"});

constexpr auto kDeclared = std::to_array<std::string_view>(
    {// C and C++
     "function_definition", "declaration", "type_definition", "struct_specifier", "class_specifier",
     "enum_specifier", "union_specifier", "template_declaration", "alias_declaration",
     "concept_definition", "preproc_def", "preproc_function_def",
     // Python
     "class_definition", "decorated_definition", "assignment", "type_alias_statement",
     // Go
     "function_declaration", "method_declaration", "type_declaration", "const_declaration",
     "var_declaration",
     // Rust
     "function_item", "struct_item", "enum_item", "trait_item", "impl_item", "type_item",
     "const_item", "static_item", "union_item", "macro_definition",
     // TypeScript and JavaScript
     "class_declaration", "abstract_class_declaration", "interface_declaration",
     "type_alias_declaration", "enum_declaration", "lexical_declaration", "variable_declaration",
     "function_signature", "internal_module", "module", "generator_function_declaration",
     // Java, besides those of the same name
     "record_declaration", "annotation_type_declaration"});

constexpr auto kComments =
    std::to_array<std::string_view>({"comment", "line_comment", "block_comment"});

/// Whose field "body" is what it does, and not what it is.
constexpr auto kFunctions = std::to_array<std::string_view>(
    {"function_definition", "function_declaration", "method_declaration", "function_item",
     "method_definition", "constructor_declaration", "compact_constructor_declaration",
     "arrow_function", "function_expression", "generator_function_declaration", "lambda",
     "lambda_expression"});

constexpr auto kValued = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"init_declarator", "value"},
     {"variable_declarator", "value"},
     {"assignment", "right"},
     {"const_spec", "value"},
     {"var_spec", "value"},
     {"const_item", "value"},
     {"static_item", "value"},
     {"public_field_definition", "value"},
     {"field_definition", "value"},
     {"field_declaration", "default_value"},
     {"preproc_def", "value"},
     {"preproc_function_def", "value"}});

/// Nodes that are left out of a declaration with all that is in them.
constexpr auto kInner = std::to_array<std::string_view>(
    {"field_initializer_list", "static_initializer", "static_block", "class_static_block",
     "static_assert_declaration", "friend_declaration"});

/// Where what is in a declaration has names that others use.
constexpr auto kMembers =
    std::to_array<std::string_view>({"function_definition", "function_declaration",
                                     "method_declaration",  "function_item",
                                     "method_definition",   "method_signature",
                                     "method_spec",         "method_elem",
                                     "enumerator",          "enum_variant",
                                     "enum_constant",       "enum_assignment",
                                     "const_spec",          "var_spec",
                                     "type_spec",           "function_signature_item",
                                     "variable_declarator", "public_field_definition",
                                     "property_signature",  "function_declarator",
                                     "type_alias",          "class_specifier",
                                     "struct_specifier"});

/// The text of a declaration without what is cut out of it.
class Cutter {
 public:
  Cutter(Grammar grammar, const Tree& tree) : grammar_(grammar), tree_(tree) {}

  std::string text_of(TSNode node) {
    at_ = ts_node_start_byte(node);
    out_.clear();
    // Python's and TypeScript's members are indented as the whole is.
    copy(node, 0);
    put_up_to(ts_node_end_byte(node));
    return squeezed();
  }

 private:
  void copy(TSNode node, int depth) {
    if (depth > kDepthMax) return cut(node, "");
    const std::string_view type = type_of(node);
    const TSNode body = is_among(type, kFunctions) ? field_of(node, "body") : TSNode{};
    const TSNode value = long_value_of(node, type);
    const bool is_python_block = grammar_ == Grammar::kPython && type == "block";
    for_each_child(node, [&](TSNode child) {
      if (out_.size() > kDeclarationBytesMax) return false;
      const std::string_view kind = type_of(child);
      if (is_among(kind, kComments) || is_among(kind, kInner) ||
          (is_python_block && !is_member(child))) {
        cut(child, "");
      } else if (!ts_node_is_null(body) && ts_node_eq(child, body)) {
        cut_body(child, type == "arrow_function");
      } else if (!ts_node_is_null(value) && ts_node_eq(child, value)) {
        cut_value(child);
      } else {
        copy(child, depth + 1);
      }
      return true;
    });
  }

  /// Of a class's block in Python: methods and fields, no documentation.
  static bool is_member(TSNode node) {
    constexpr auto kKept = std::to_array<std::string_view>(
        {"function_definition", "decorated_definition", "class_definition"});
    if (is_among(type_of(node), kKept)) return true;
    return type_of(node) == "expression_statement" &&
           !ts_node_is_null(child_of_type(node, "assignment"));
  }

  static TSNode long_value_of(TSNode node, std::string_view type) {
    for (const auto& [owner, field] : kValued) {
      if (type != owner) continue;
      const TSNode value = field_of(node, field);
      if (ts_node_is_null(value) || is_among(type_of(value), kFunctions)) return {};
      return ts_node_end_byte(value) - ts_node_start_byte(value) > kValueBytesMax ? value
                                                                                  : TSNode{};
    }
    return {};
  }

  /// An arrow's body is a value, and stays one.
  void cut_body(TSNode body, bool of_arrow) {
    if (grammar_ == Grammar::kPython || of_arrow) return cut(body, " ...");
    cut(body, grammar_ == Grammar::kGo ? "" : ";");
  }

  void cut_value(TSNode value) {
    const bool is_python = grammar_ == Grammar::kPython;
    cut(value, is_python ? " ..." : "");
    if (is_python) return;
    // "int a = " goes on as "int a".
    if (out_.ends_with('=')) out_.pop_back();
    while (out_.ends_with(' ')) out_.pop_back();
  }

  void put_up_to(std::size_t byte) {
    if (byte > at_) out_ += tree_.text().substr(at_, byte - at_);
    at_ = std::max(at_, byte);
  }

  void cut(TSNode node, std::string_view in_place) {
    put_up_to(ts_node_start_byte(node));
    while (out_.ends_with(' ') || out_.ends_with('\t') || out_.ends_with('\n')) {
      // A comment's line end stays, else what follows it would be one with it.
      if (in_place.empty() && out_.ends_with('\n')) break;
      out_.pop_back();
    }
    out_ += in_place;
    at_ = std::max<std::size_t>(at_, ts_node_end_byte(node));
  }

  /// Without empty lines and blanks at lines' ends, and no longer than a declaration may be.
  std::string squeezed() const {
    std::string text;
    for (std::size_t begin = 0; begin < out_.size();) {
      const std::size_t end = std::min(out_.find('\n', begin), out_.size());
      std::string_view line = std::string_view(out_).substr(begin, end - begin);
      const std::size_t last = line.find_last_not_of(" \t\r;");
      const bool is_blank = last == std::string_view::npos;
      line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
      begin = end + 1;
      if (is_blank) continue;
      if (text.size() + line.size() > kDeclarationBytesMax) break;
      if (!text.empty()) text += '\n';
      text += line;
    }
    return text;
  }

  const Grammar grammar_;
  const Tree& tree_;
  std::string out_;
  std::size_t at_ = 0;
};

class OutlineReader {
 public:
  OutlineReader(Grammar grammar, const Tree& tree) : tree_(tree), cutter_(grammar, tree) {}

  std::vector<Declaration> read() {
    walk(tree_.root(), 0);
    return std::move(declarations_);
  }

 private:
  bool has_room() const { return bytes_ < kOutlineBytesMax; }

  void walk(TSNode node, int depth) {
    if (depth > kDepthMax) return;
    for_each_child(node, [&](TSNode child) {
      const std::string_view type = type_of(child);
      // Python's assignments stand in a statement each.
      if (is_among(type, kDeclared)) {
        take(child);
      } else if (is_among(type, kAround) && !is_own(child, type)) {
        walk(child, depth + 1);
      }
      return has_room();
    });
  }

  /// What only the file itself sees.
  bool is_own(TSNode node, std::string_view type) const {
    const TSNode name = field_of(node, "name");
    if (type == "namespace_definition") return ts_node_is_null(name);
    if (type == "mod_item") return !ts_node_is_null(name) && tree_.text_of(name) == "tests";
    if (type == "if_statement") {
      const TSNode condition = field_of(node, "condition");
      return !ts_node_is_null(condition) &&
             tree_.text_of(condition).find("__name__") != std::string_view::npos;
    }
    return false;
  }

  void take(TSNode node) {
    Declaration declaration;
    add_names(node, declaration.names, 0);
    if (declaration.names.empty()) return;
    declaration.text = cutter_.text_of(node);
    if (declaration.text.empty()) return;
    // C's types end with a semicolon that is no part of them.
    if (type_of(node).ends_with("_specifier") && !declaration.text.ends_with(';'))
      declaration.text += ';';
    bytes_ += declaration.text.size();
    declarations_.push_back(std::move(declaration));
  }

  /// The names of the node and of members in it, each once.
  void add_names(TSNode node, std::vector<std::string>& names, int depth) {
    if (depth > kNameDepthMax || names.size() >= kNamesMax) return;
    for (const std::string_view field : {"name", "declarator", "left", "type"}) {
      const bool may_name = field != "type" || type_of(node) == "impl_item";
      const TSNode child = may_name ? field_of(node, field) : TSNode{};
      if (!ts_node_is_null(child)) add_identifiers(child, names, 0);
    }
    for_each_child(node, [&](TSNode child) {
      const std::string_view type = type_of(child);
      if (type == "compound_statement" || type == "statement_block") return true;
      const bool goes_on =
          type.ends_with("_list") || type.ends_with("body") || type == "block" ||
          type == "expression_statement" || type == "object_type" || type == "interface_type" ||
          type == "field_declaration" || type == "type_spec" || type == "type_declaration" ||
          is_among(type, kMembers) || is_among(type, kDeclared) || type == "field_declaration_list";
      if (goes_on && type != "parameter_list" && type != "argument_list")
        add_names(child, names, depth + 1);
      return names.size() < kNamesMax;
    });
  }

  void add_identifiers(TSNode node, std::vector<std::string>& names, int depth) {
    if (depth > kNameDepthMax) return;
    const std::string_view type = type_of(node);
    if (type.ends_with("identifier") && type != "qualified_identifier" &&
        type != "scoped_type_identifier") {
      std::string name(tree_.text_of(node));
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
      return;
    }
    for (const std::string_view field : {"name", "declarator"}) {
      const TSNode child = field_of(node, field);
      if (!ts_node_is_null(child)) return add_identifiers(child, names, depth + 1);
    }
    if (type.ends_with("declarator"))
      for_each_child(node, [&](TSNode child) {
        add_identifiers(child, names, depth + 1);
        return false;
      });
    if (type == "generic_type") add_identifiers(field_of(node, "type"), names, depth + 1);
  }

  static constexpr int kNameDepthMax = 8;

  const Tree& tree_;
  Cutter cutter_;
  std::vector<Declaration> declarations_;
  std::size_t bytes_ = 0;
};

}  // namespace

std::vector<Declaration> outline_of(Grammar grammar, std::string_view text) {
  const std::optional<Tree> tree = Tree::of(grammar, text);
  if (!tree) return {};
  return OutlineReader(grammar, *tree).read();
}

}  // namespace efimd::syntax
