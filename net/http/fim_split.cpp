#include "net/http/fim_split.h"

#include <algorithm>

namespace efimd::http {

namespace {

/// Longer first lines are no paths.
constexpr std::size_t kPathBytesMax = 512;

/// The path on the head's last line, after the last separator; "" if there is none.
std::string path_in(std::string_view head, const FimMarks& marks) {
  const std::string_view mark = marks.file_separator;
  if (mark.empty()) return {};
  const std::size_t at = head.rfind(mark);
  if (at == head.npos) return {};
  std::string_view path = head.substr(at + mark.size());
  while (!path.empty() && (path.back() == '\n' || path.back() == ' ')) path.remove_suffix(1);
  const bool is_path = path.size() <= kPathBytesMax && path.find('\n') == path.npos;
  return is_path ? std::string(path) : std::string();
}

/// Whether the head says more than a repository's name and the file's path.
bool says_more(std::string_view head, const FimMarks& marks) {
  if (marks.file_separator.empty()) return !head.empty();
  const std::size_t first = head.find(marks.file_separator);
  if (first == head.npos) return head.find('\n') < head.size();
  return head.find(marks.file_separator, first + 1) != head.npos || path_in(head, marks).empty();
}

FimParts parts(std::string_view head, std::string_view before, std::string_view after,
               const FimMarks& marks) {
  return {std::string(before), std::string(after), path_in(head, marks), says_more(head, marks)};
}

/// Code Llama's frame has blanks around its marks, which are no text.
std::string_view without_blanks(std::string_view text, const FimMarks& marks, bool in_front,
                                bool behind) {
  if (marks.prefix != "<PRE>") return text;
  if (in_front && text.starts_with(' ')) text.remove_prefix(1);
  if (behind && text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<FimParts> split_by(std::string_view prompt, const FimMarks& marks) {
  const std::size_t pre = prompt.find(marks.prefix);
  const std::size_t suf = prompt.find(marks.suffix);
  if (pre == prompt.npos || suf == prompt.npos) return std::nullopt;
  const std::size_t mid = marks.middle.empty() ? prompt.npos : prompt.rfind(marks.middle);
  const std::size_t last = std::max(pre, suf);
  if (!marks.middle.empty() && (mid == prompt.npos || mid <= last)) return std::nullopt;
  const std::string_view head = prompt.substr(0, std::min(pre, suf));
  const std::string_view more =
      mid == prompt.npos ? std::string_view() : prompt.substr(mid + marks.middle.size());
  const auto between = [&](std::size_t begin, std::size_t end) {
    return prompt.substr(begin, end == prompt.npos ? end : end - begin);
  };
  const std::size_t pre_end = pre + marks.prefix.size(), suf_end = suf + marks.suffix.size();
  if (suf < pre)  // SUF after PRE before MID
    return parts(head, std::string(between(pre_end, mid)) + std::string(more),
                 between(suf_end, pre), marks);
  if (pre_end == suf)  // PRE SUF after MID before
    return parts(head, more, between(suf_end, mid), marks);
  return parts(
      head,
      std::string(without_blanks(between(pre_end, suf), marks, true, true)) + std::string(more),
      without_blanks(between(suf_end, mid), marks, false, true), marks);
}

}  // namespace

const std::vector<FimMarks>& known_marks() {
  static const std::vector<FimMarks> kMarks = {
      {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"},
      {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>"},
      {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
      {"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"},
      {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
      {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
      {"▁<PRE>", "▁<SUF>", "▁<MID>"},
      {"<PRE>", "<SUF>", "<MID>"},
      {"[PREFIX]", "[SUFFIX]", ""},
  };
  return kMarks;
}

std::optional<FimParts> split_fim(std::string_view prompt, const std::optional<FimMarks>& model) {
  if (model && !model->prefix.empty() && !model->suffix.empty())
    if (auto split = split_by(prompt, *model)) return split;
  for (const FimMarks& marks : known_marks())
    if (auto split = split_by(prompt, marks)) return split;
  return std::nullopt;
}

}  // namespace efimd::http
