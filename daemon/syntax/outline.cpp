#include "daemon/syntax/outline.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "daemon/syntax/class_macros.h"
#include "daemon/syntax/declaration_text.h"
#include "daemon/syntax/tree.h"

namespace efimd::syntax {

namespace {

/// Names of a declaration, at most: its own, and those of what is in it.
constexpr std::size_t kNamesMax = 64;

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
     "const_item", "static_item", "union_item", "macro_definition", "foreign_mod_item",
     // TypeScript and JavaScript
     "class_declaration", "abstract_class_declaration", "interface_declaration",
     "type_alias_declaration", "enum_declaration", "lexical_declaration", "variable_declaration",
     "function_signature", "internal_module", "module", "generator_function_declaration",
     // Java, besides those of the same name
     "record_declaration", "annotation_type_declaration"});

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

constexpr std::string_view kError = "ERROR";

class OutlineReader {
 public:
  OutlineReader(Grammar grammar, const Tree& tree) : grammar_(grammar), tree_(tree) {}

  std::vector<Declaration> read() {
    walk(tree_.root(), 0);
    return std::move(declarations_);
  }

 private:
  bool has_room() const { return bytes_ < kOutlineBytesMax; }

  void walk(TSNode node, int depth) {
    if (depth > kDepthMax) return;
    bool of_tests = false;  // what Rust's #[cfg(test)] stands before
    TSNode last = {};
    for_each_child(node, [&](TSNode child) {
      const TSNode before = std::exchange(last, child);
      const std::string_view type = type_of(child);
      if (type.ends_with("comment")) return true;
      if (type == "attribute_item") {
        of_tests |= tree_.text_of(child).find("cfg(test)") != std::string_view::npos;
        return true;
      }
      if (std::exchange(of_tests, false) || is_guard(node, before, child)) return true;
      const bool in_error = type_of(node) == kError;
      if (in_error && may_be_of_body(child, type)) return true;
      // Python's assignments stand in a statement each; methods alone, if their class is cut.
      if (is_among(type, kDeclared) || is_exported_function(child, type) ||
          (in_error && type == "method_definition")) {
        take(child);
      } else if (type == kError || (is_among(type, kAround) && !is_own(child, type))) {
        walk(child, depth + 1);
      }
      return has_room();
    });
  }

  /// Where a text is cut, half typed or beyond the grammar, all around the place may be an error: a
  /// header from its guard on, or a function. What is in a function's body is not for others; it is
  /// indented, and no function.
  static bool may_be_of_body(TSNode node, std::string_view type) {
    constexpr auto kStatements = std::to_array<std::string_view>(
        {"declaration", "assignment", "expression_statement", "block", "if_statement",
         "try_statement", "lexical_declaration", "variable_declaration", "var_declaration",
         "const_declaration"});
    if (!is_among(type, kStatements) || ts_node_start_point(node).column == 0) return false;
    TSNode declared = field_of(node, "declarator");
    while (!ts_node_is_null(declared) && type_of(declared) != "function_declarator")
      declared = field_of(declared, "declarator");
    return ts_node_is_null(declared);
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

  /// "#ifndef A_H", "#define A_H" say nothing of what is in a header.
  bool is_guard(TSNode around, TSNode before, TSNode node) const {
    if (type_of(node) != "preproc_def" || !ts_node_is_null(field_of(node, "value"))) return false;
    // Of a guard that is not closed only the name is left.
    const TSNode guarded = type_of(around) == kError ? before : field_of(around, "name");
    const TSNode name = field_of(node, "name");
    return !ts_node_is_null(guarded) && !ts_node_is_null(name) &&
           tree_.text_of(guarded) == tree_.text_of(name);
  }

  /// JavaScript's "exports.a = function () {}", and methods of a prototype.
  static bool is_exported_function(TSNode node, std::string_view type) {
    if (type != "assignment_expression") return false;
    const TSNode left = field_of(node, "left"), right = field_of(node, "right");
    return !ts_node_is_null(left) && !ts_node_is_null(right) &&
           type_of(left) == "member_expression" && is_function(type_of(right));
  }

  void take(TSNode node) {
    Declaration declaration;
    add_names(node, declaration.names, 0);
    // Python's __all__ and the like are not for those who import it.
    if (declaration.names.empty() ||
        (type_of(node) == "assignment" && declaration.names[0].starts_with("__")))
      return;
    declaration.text = declaration_text(grammar_, tree_, node);
    // JavaScript's "const a = require("b")" imports a, and declares nothing for others.
    const bool is_script = grammar_ == Grammar::kTsx || grammar_ == Grammar::kTypescript;
    const auto has = [&](const char* part) {
      return declaration.text.find(part) != std::string::npos;
    };
    if (declaration.text.empty() || (is_script && (has(" = require(") || has(" = await import("))))
      return;
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
    // Go's "var a, b = 1, 2" has several names of its own.
    const bool is_spec = type_of(node) == "var_spec" || type_of(node) == "const_spec";
    for_each_child(node, [&](TSNode child) {
      const std::string_view type = type_of(child);
      if (is_spec && type == "identifier") add_identifiers(child, names, 0);
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
    const bool is_name = type.ends_with("identifier") && type != "qualified_identifier" &&
                         type != "scoped_type_identifier";
    if (is_name || type == "shorthand_property_identifier_pattern") {
      std::string name(tree_.text_of(node));
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
      return;
    }
    for (const std::string_view field : {"name", "declarator", "property"}) {
      const TSNode child = field_of(node, field);
      if (!ts_node_is_null(child)) return add_identifiers(child, names, depth + 1);
    }
    // "a, b = 1, 2" has several names; of "A[T]" the first is the type's own.
    const bool is_several = type.ends_with("_pattern") || type == "pattern_list";
    if (is_several || type.ends_with("declarator") || type == "generic_type" || type == "type")
      for_each_child(node, [&](TSNode child) {
        add_identifiers(child, names, depth + 1);
        return is_several && names.size() < kNamesMax;
      });
  }

  static constexpr int kNameDepthMax = 8;

  const Grammar grammar_;
  const Tree& tree_;
  std::vector<Declaration> declarations_;
  std::size_t bytes_ = 0;
};

}  // namespace

std::vector<Declaration> outline_of(Grammar grammar, std::string_view text) {
  std::string plain;
  if (grammar == Grammar::kC || grammar == Grammar::kCpp)
    text = plain = without_class_macros(part_read(text));
  const std::optional<Tree> tree = Tree::of(grammar, text);
  if (!tree) return {};
  return OutlineReader(grammar, *tree).read();
}

}  // namespace efimd::syntax
