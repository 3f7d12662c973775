#include "daemon/syntax/declaration_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/syntax/outline.h"

namespace efimd::syntax {

namespace {

/// A longer value, list of enumerators or macro says more of the file's inside than of its use.
constexpr std::size_t kValueBytesMax = 60;

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
    const bool is_rule = type == "macro_rule";
    const TSNode body =
        is_function(type) || is_rule ? field_of(node, is_rule ? "right" : "body") : TSNode{};
    const TSNode value = long_value_of(node, type);
    const bool is_python_block = grammar_ == Grammar::kPython && type == "block";
    for_each_child(node, [&](TSNode child) {
      if (out_.size() > kDeclarationBytesMax) return false;
      const std::string_view kind = type_of(child);
      if (is_among(kind, kComments) || is_among(kind, kInner) ||
          (is_python_block && !is_member(child))) {
        cut(child, "");
      } else if (!ts_node_is_null(body) && ts_node_eq(child, body)) {
        cut_body(child, is_rule || type == "arrow_function");
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
      if (ts_node_is_null(value) || is_function(type_of(value))) return {};
      return ts_node_end_byte(value) - ts_node_start_byte(value) > kValueBytesMax ? value
                                                                                  : TSNode{};
    }
    return {};
  }

  /// What an arrow, also of a macro's rule, leads to is a value, and stays one.
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

}  // namespace

bool is_function(std::string_view type) { return is_among(type, kFunctions); }

std::string declaration_text(Grammar grammar, const Tree& tree, TSNode node) {
  return Cutter(grammar, tree).text_of(node);
}

}  // namespace efimd::syntax
