#include "daemon/files/tracked_files.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <utility>

#include "daemon/files/repository.h"

namespace efimd::service {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeaderBytes = 12;
/// Of an entry before its name: times and numbers, then an object's name of 20 bytes, or 32 where the
/// repository was made for SHA-256, then flags.
constexpr std::size_t kStatBytes = 40;
constexpr std::size_t kFlagsBytes = 2;
constexpr unsigned kExtended = 0x4000;  ///< two more bytes of flags

/// Reads big-endian numbers and names; fails at the end of the bytes.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::size_t at() const { return at_; }
  std::optional<std::string_view> take(std::size_t count) {
    if (count > bytes_.size() - at_) return std::nullopt;
    return bytes_.substr(std::exchange(at_, at_ + count), count);
  }
  std::optional<std::string_view> name() {
    const std::size_t end = bytes_.find('\0', at_);
    if (end == std::string_view::npos || end - at_ >= kPathBytesMax) return std::nullopt;
    const std::string_view name = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return name;
  }
  /// As pack files write offsets: seven bits a byte, each further one adds one before it is shifted.
  std::optional<std::size_t> offset() {
    std::size_t value = 0;
    for (int more = 0; more < 5; ++more) {
      const auto byte = take(1);
      if (!byte) return std::nullopt;
      const auto bits = static_cast<unsigned char>((*byte)[0]);
      value = (more == 0 ? 0 : (value + 1) << 7U) | (bits & 0x7FU);
      if (bits < 0x80U) return value;
    }
    return std::nullopt;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

std::uint32_t number(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes) value = value << 8U | static_cast<unsigned char>(byte);
  return value;
}

/// The name of the next entry, whose place before was taken by `before`.
std::optional<std::string> next_name(Reader& reader, std::uint32_t version,
                                     std::size_t object_bytes, const std::string& before) {
  const std::size_t begin = reader.at();
  const auto entry = reader.take(kStatBytes + object_bytes + kFlagsBytes);
  if (!entry) return std::nullopt;
  if ((number(entry->substr(kStatBytes + object_bytes)) & kExtended) != 0 && !reader.take(2))
    return std::nullopt;
  std::size_t kept = 0;
  if (version == 4) {
    const auto stripped = reader.offset();
    if (!stripped || *stripped > before.size()) return std::nullopt;
    kept = before.size() - *stripped;
  }
  const auto name = reader.name();
  if (!name || name->size() + kept >= kPathBytesMax) return std::nullopt;
  // Up to version 3, zero bytes fill an entry up to a multiple of eight; the name's is one of them.
  const std::size_t over = (reader.at() - begin) % 8;
  if (version < 4 && over != 0 && !reader.take(8 - over)) return std::nullopt;
  return before.substr(0, kept).append(*name);
}

/// The names of all entries, which git keeps in order: so objects' names of another length are noticed.
std::optional<std::vector<std::string>> names_in(std::string_view index, std::size_t object_bytes) {
  Reader reader(index);
  const auto header = reader.take(kHeaderBytes);
  if (!header || !header->starts_with("DIRC")) return std::nullopt;
  const std::uint32_t version = number(header->substr(4, 4));
  if (version < 2 || version > 4) return std::nullopt;
  std::vector<std::string> names;
  std::string name;
  for (std::uint32_t left = number(header->substr(8, 4)); left > 0; --left) {
    auto next = next_name(reader, version, object_bytes, name);
    if (!next || next->empty() || *next < name) return std::nullopt;
    name = std::move(*next);
    names.push_back(name);
  }
  return names;
}

}  // namespace

TrackedFiles TrackedFiles::parse(std::string_view index, const fs::path& root) {
  TrackedFiles tracked;
  auto names = names_in(index, 20);
  if (!names) names = names_in(index, 32);
  if (!names) return tracked;
  const std::string begin = root.generic_string() + "/";
  for (const std::string& name : *names) tracked.paths_.push_back(begin + name);
  std::ranges::sort(tracked.paths_);
  return tracked;
}

TrackedFiles TrackedFiles::of(const fs::path& folder) {
  const auto repository = repository_of(folder / "file");
  if (!repository) return {};
  const fs::path index = own_git_of(repository->root) / "index";
  std::error_code error;
  const std::uintmax_t bytes = fs::is_regular_file(index, error) ? fs::file_size(index, error) : 0;
  if (error || bytes == 0 || bytes > kIndexBytesMax) return {};
  std::string text(bytes, '\0');
  std::ifstream stream(index, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  return parse(text, repository->root);
}

bool TrackedFiles::has(std::string_view path) const {
  return std::ranges::binary_search(paths_, path, std::less<>());
}

bool TrackedFiles::has_below(std::string_view folder) const {
  const std::string begin = std::string(folder) + "/";
  const auto first = std::ranges::lower_bound(paths_, begin);
  return first != paths_.end() && first->starts_with(begin);
}

}  // namespace efimd::service
