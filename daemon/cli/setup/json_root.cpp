#include "daemon/cli/setup/json_root.h"

#include <fmt/format.h>

#include <algorithm>

namespace efimd::service {

namespace {

/// A reader that walks over the text once. After a fault nothing more is read.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<JsonRoot> root() {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kMark)) at_ = kMark.size();
    if (!skip_blanks() || !take('{')) return wrong("does not begin with {");
    JsonRoot found{at_, {}};
    if (!members('}', 1, &found.keys)) return wrong(fault_);
    if (!skip_blanks() || at_ != text_.size()) return wrong("goes on after its last }");
    return found;
  }

 private:
  tl::unexpected<Error> wrong(const char* what) const {
    const auto before = text_.substr(0, at_);
    return fail(Fault::kBadInput,
                fmt::format("line {} {}", 1 + std::ranges::count(before, '\n'), what));
  }
  bool is_wrong(const char* what) {
    fault_ = what;
    return false;
  }
  bool take(char wanted) {
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  /// Blanks and comments; false if a comment has no end.
  bool skip_blanks() {
    for (;;) {
      at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
      if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return is_wrong("begins a comment without an end");
        at_ = end + 2;
      } else {
        return true;
      }
    }
  }

  bool string(std::string* value) {
    const std::size_t begin = at_ + 1;
    if (!take('"')) return is_wrong("should have a string");
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n')
      at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size() || text_[at_] != '"') return is_wrong("begins a string without an end");
    if (value != nullptr) *value = text_.substr(begin, at_ - begin);
    ++at_;
    return true;
  }

  bool value(int depth) {
    if (depth > kJsonDepthMax) return is_wrong("is nested too deep");
    if (next() == '"') return string(nullptr);
    if (take('{')) return members('}', depth + 1, nullptr);
    if (take('[')) return members(']', depth + 1, nullptr);
    const std::size_t begin = at_;
    const auto is_scalar = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             c == '-' || c == '+' || c == '.';
    };
    while (is_scalar(next())) ++at_;
    return at_ > begin || is_wrong("should have a value");
  }

  /// Of an object or a list, up to its closer; the keys of an object go into `keys`.
  bool members(char closer, int depth, std::vector<std::string>* keys) {
    for (;;) {
      if (!skip_blanks()) return false;
      if (take(closer)) return true;
      if (closer == '}') {
        std::string key;
        if (!string(&key) || !skip_blanks()) return false;
        if (!take(':')) return is_wrong("should have a colon");
        if (keys != nullptr) keys->push_back(std::move(key));
        if (!skip_blanks()) return false;
      }
      if (!value(depth) || !skip_blanks()) return false;
      if (!take(',') && next() != closer) return is_wrong("should have a comma or a closer");
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  const char* fault_ = "cannot be read";
};

}  // namespace

Result<JsonRoot> read_json_root(std::string_view text) { return Reader(text).root(); }

}  // namespace efimd::service
