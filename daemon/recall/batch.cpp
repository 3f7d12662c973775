#include "daemon/recall/batch.h"

#include <algorithm>
#include <array>
#include <utility>

namespace efimd::recall {

namespace {

using Member = std::pair<std::string_view, std::string_view>;
constexpr auto kFamilies = std::to_array<Member>({
    {"c", "c"},     {"h", "c"},     {"cc", "c"},     {"cpp", "c"},     {"cxx", "c"},
    {"hh", "c"},    {"hpp", "c"},   {"hxx", "c"},    {"inl", "c"},     {"ipp", "c"},
    {"cu", "c"},    {"cuh", "c"},   {"m", "c"},      {"mm", "c"},      {"js", "js"},
    {"jsx", "js"},  {"ts", "js"},   {"tsx", "js"},   {"mjs", "js"},    {"cjs", "js"},
    {"mts", "js"},  {"cts", "js"},  {"vue", "js"},   {"svelte", "js"}, {"py", "py"},
    {"pyi", "py"},  {"pyx", "py"},  {"sh", "sh"},    {"bash", "sh"},   {"zsh", "sh"},
    {"yml", "yml"}, {"htm", "htm"}, {"yaml", "yml"}, {"html", "htm"},
});

}  // namespace

std::string family_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  std::string extension(dot == std::string_view::npos ? name : name.substr(dot + 1));
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : static_cast<char>(c);
  });
  const auto* found = std::ranges::find(kFamilies, std::string_view(extension), &Member::first);
  return found == kFamilies.end() ? extension : std::string(found->second);
}

BatchPtr Gathering::add(File file) {
  constexpr std::size_t kFirstBytes = std::size_t{256} * 1024;
  constexpr std::size_t kLaterBytes = kBatchBytesMax - kFileBytesMax;
  const std::string name = family_of(file.path);
  auto family = std::ranges::find(families_, name, &Family::name);
  if (family == families_.end()) {
    families_.push_back({.name = name, .files = {}});
    family = families_.end() - 1;
  }
  family->bytes += file.text.size();
  family->files.push_back(std::move(file));
  const bool full = family->bytes >= (family->is_first ? kFirstBytes : kLaterBytes);
  return full ? made(*family) : nullptr;
}

std::vector<BatchPtr> Gathering::rest() {
  std::vector<BatchPtr> batches;
  for (Family& family : families_)
    if (!family.files.empty()) batches.push_back(made(family));
  return batches;
}

BatchPtr Gathering::made(Family& family) const {
  BatchPtr batch = make_batch(family.files, between_);
  family.files.clear();
  family.bytes = 0;
  family.is_first = false;
  return batch;
}

}  // namespace efimd::recall
