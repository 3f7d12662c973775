#include "daemon/syntax/grammar.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "daemon/syntax/tree.h"

extern "C" {
const TSLanguage* tree_sitter_c();
const TSLanguage* tree_sitter_cpp();
const TSLanguage* tree_sitter_python();
const TSLanguage* tree_sitter_go();
const TSLanguage* tree_sitter_rust();
const TSLanguage* tree_sitter_typescript();
const TSLanguage* tree_sitter_tsx();
const TSLanguage* tree_sitter_java();
}

namespace efimd::syntax {

namespace {

using Ending = std::pair<std::string_view, Grammar>;
/// A header is read as C++, which is right for nearly all of C, too.
constexpr auto kEndings = std::to_array<Ending>({
    {"c", Grammar::kC},
    {"h", Grammar::kCpp},
    {"cc", Grammar::kCpp},
    {"cpp", Grammar::kCpp},
    {"cxx", Grammar::kCpp},
    {"c++", Grammar::kCpp},
    {"hh", Grammar::kCpp},
    {"hpp", Grammar::kCpp},
    {"hxx", Grammar::kCpp},
    {"inl", Grammar::kCpp},
    {"ipp", Grammar::kCpp},
    {"cu", Grammar::kCpp},
    {"cuh", Grammar::kCpp},
    {"py", Grammar::kPython},
    {"pyi", Grammar::kPython},
    {"go", Grammar::kGo},
    {"rs", Grammar::kRust},
    {"ts", Grammar::kTypescript},
    {"mts", Grammar::kTypescript},
    {"cts", Grammar::kTypescript},
    {"tsx", Grammar::kTsx},
    {"js", Grammar::kTsx},
    {"jsx", Grammar::kTsx},
    {"mjs", Grammar::kTsx},
    {"cjs", Grammar::kTsx},
    {"java", Grammar::kJava},
});

}  // namespace

Grammar grammar_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return Grammar::kNone;
  std::string ending(name.substr(dot + 1));
  std::ranges::transform(ending, ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  const auto* const found = std::ranges::find(kEndings, std::string_view(ending), &Ending::first);
  return found == kEndings.end() ? Grammar::kNone : found->second;
}

const TSLanguage* language_of(Grammar grammar) {
  switch (grammar) {
    case Grammar::kNone:
      return nullptr;
    case Grammar::kC:
      return tree_sitter_c();
    case Grammar::kCpp:
      return tree_sitter_cpp();
    case Grammar::kPython:
      return tree_sitter_python();
    case Grammar::kGo:
      return tree_sitter_go();
    case Grammar::kRust:
      return tree_sitter_rust();
    case Grammar::kTypescript:
      return tree_sitter_typescript();
    case Grammar::kTsx:
      return tree_sitter_tsx();
    case Grammar::kJava:
      return tree_sitter_java();
  }
  return nullptr;
}

}  // namespace efimd::syntax
