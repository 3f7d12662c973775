#include "daemon/completion/fit/language.h"

#include <algorithm>

namespace efimd::completion {

namespace {

using Raw = Language::Raw;

constexpr Language kCpp{.name = "cpp",
                        .line_comments = {"//"},
                        .comment_open = "/*",
                        .comment_close = "*/",
                        .quotes = "\"",
                        .char_literals = true,
                        .raw = Raw::kCpp};
constexpr Language kJava{.name = "java",
                         .line_comments = {"//"},
                         .comment_open = "/*",
                         .comment_close = "*/",
                         .quotes = "\"",
                         .char_literals = true,
                         .long_quotes = {"\"\"\""}};
constexpr Language kPython{
    .name = "python", .line_comments = {"#"}, .quotes = "\"'", .long_quotes = {"\"\"\"", "'''"}};
constexpr Language kGo{.name = "go",
                       .line_comments = {"//"},
                       .comment_open = "/*",
                       .comment_close = "*/",
                       .quotes = "\"",
                       .char_literals = true,
                       .long_quotes = {"`"}};
constexpr Language kTypescript{.name = "typescript",
                               .line_comments = {"//"},
                               .comment_open = "/*",
                               .comment_close = "*/",
                               .quotes = "\"'",
                               .long_quotes = {"`"},
                               .javascript = true};
constexpr Language kRust{.name = "rust",
                         .line_comments = {"//"},
                         .comment_open = "/*",
                         .comment_close = "*/",
                         .char_literals = true,
                         .long_quotes = {"\""},
                         .raw = Raw::kRust};
constexpr Language kJson{.name = "json",
                         .line_comments = {"//"},
                         .comment_open = "/*",
                         .comment_close = "*/",
                         .quotes = "\""};
constexpr Language kShell{.name = "shellscript",
                          .line_comments = {"#"},
                          .quotes = "\"'`",
                          .shell = true,
                          .quotes_are_guessed = true};
constexpr Language kMarkdown{.name = "markdown", .prose = true};
constexpr Language kUnknown{.name = "", .quotes = "\"'`", .quotes_are_guessed = true};

struct Named {
  std::string_view id;  ///< as editors send it
  const Language& language;
};
constexpr Named kIds[] = {
    {"c", kCpp},
    {"cpp", kCpp},
    {"cuda", kCpp},
    {"cuda-cpp", kCpp},
    {"objective-c", kCpp},
    {"objective-cpp", kCpp},
    {"objc", kCpp},
    {"objcpp", kCpp},
    {"java", kJava},
    {"kotlin", kJava},
    {"csharp", kJava},
    {"cs", kJava},
    {"python", kPython},
    {"go", kGo},
    {"typescript", kTypescript},
    {"typescriptreact", kTypescript},
    {"javascript", kTypescript},
    {"javascriptreact", kTypescript},
    {"rust", kRust},
    {"json", kJson},
    {"jsonc", kJson},
    {"markdown", kMarkdown},
    {"plaintext", kMarkdown},
    {"text", kMarkdown},
    {"restructuredtext", kMarkdown},
    {"rst", kMarkdown},
    {"asciidoc", kMarkdown},
    {"git-commit", kMarkdown},
    {"gitcommit", kMarkdown},
    {"shellscript", kShell},
    {"sh", kShell},
    {"bash", kShell},
    {"zsh", kShell},
};
constexpr Named kEndings[] = {
    {"c", kCpp},         {"h", kCpp},          {"cc", kCpp},         {"cpp", kCpp},
    {"cxx", kCpp},       {"hpp", kCpp},        {"hh", kCpp},         {"hxx", kCpp},
    {"inl", kCpp},       {"ipp", kCpp},        {"cu", kCpp},         {"cuh", kCpp},
    {"mm", kCpp},        {"java", kJava},      {"kt", kJava},        {"kts", kJava},
    {"cs", kJava},       {"py", kPython},      {"pyi", kPython},     {"go", kGo},
    {"ts", kTypescript}, {"mts", kTypescript}, {"cts", kTypescript}, {"tsx", kTypescript},
    {"js", kTypescript}, {"mjs", kTypescript}, {"cjs", kTypescript}, {"jsx", kTypescript},
    {"rs", kRust},       {"json", kJson},      {"md", kMarkdown},    {"txt", kMarkdown},
    {"rst", kMarkdown},  {"adoc", kMarkdown},  {"sh", kShell},       {"bash", kShell},
    {"zsh", kShell},
};

template <std::size_t size>
const Language* find(const Named (&names)[size], std::string_view id) {
  const auto found = std::ranges::find(names, id, &Named::id);
  return found == std::end(names) ? nullptr : &found->language;
}

}  // namespace

const Language& language_of(std::string_view language_id, std::string_view uri) {
  if (const Language* language = find(kIds, language_id)) return *language;
  const std::size_t dot = uri.find_last_of("./");
  if (dot == std::string_view::npos || uri[dot] != '.') return kUnknown;
  const Language* language = find(kEndings, uri.substr(dot + 1));
  return language != nullptr ? *language : kUnknown;
}

}  // namespace efimd::completion
