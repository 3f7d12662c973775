#include "daemon/recall/sorted_batch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "daemon/recall/anchors.h"
#include "daemon/recall/match.h"

namespace efimd::recall {

namespace {

static_assert(kBatchBytesMax + kFileBytesMax + 2 * Batch::kContextBytesMax < (1U << 24));

constexpr std::size_t kKeyBytes = sizeof(std::uint64_t);
/// Some 0.1 ms of sorting.
constexpr std::size_t kComparedInOnePiece = 8192;

/// The eight bytes that end at `end`, the last one most significant.
std::uint64_t key_before(const char* end) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t key;
  std::memcpy(&key, end - kKeyBytes, kKeyBytes);
  return key;
}

/// Orders the contexts that end at `a` and `b`, whose last `equal` bytes are known to be equal.
int compare(const char* a, const char* b, std::size_t equal) {
  for (; equal < Batch::kContextBytesMax; equal += kKeyBytes) {
    const std::uint64_t left = key_before(a - equal), right = key_before(b - equal);
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

struct Sortable {
  std::uint64_t key;
  std::uint32_t at;
};

std::vector<Sortable> anchors_of(std::string_view text, std::size_t begin) {
  std::vector<Sortable> found;
  for (std::size_t at = 0; at <= text.size(); ++at)
    if (is_anchor(text, at))
      found.push_back({key_before(text.data() + at), static_cast<std::uint32_t>(begin + at)});
  return found;
}

/// A query's context as far as it counts, with zero bytes before it as a batch's first file has.
struct Padded {
  explicit Padded(std::string_view context) {
    const std::size_t bytes = std::min(context.size(), Batch::kContextBytesMax);
    std::memcpy(storage + sizeof(storage) - bytes, context.data() + context.size() - bytes, bytes);
  }
  const char* end() const { return storage + sizeof(storage); }
  char storage[Batch::kContextBytesMax + kKeyBytes] = {};
};

}  // namespace

Batch::Batch(std::span<const File> files, const Between& between)
    : text_(kContextBytesMax + kKeyBytes, '\0') {
  std::size_t bytes = text_.size();
  for (const File& file : files) bytes += file.text.size() + 1;
  text_.reserve(std::min(bytes, kBatchBytesMax + kFileBytesMax));
  for (const File& file : files) {
    if (paths_.empty()) family_ = family_of(file.path);
    if (file.text.size() > kFileBytesMax || text_.size() > kBatchBytesMax ||
        family_of(file.path) != family_)
      continue;
    begins_.push_back(static_cast<std::uint32_t>(text_.size()));
    paths_.push_back(file.path);
    text_ += file.text;
    text_ += '\0';
    between();
  }
  std::vector<Sortable> order;
  for (std::size_t file = 0; file < begins_.size(); ++file) {
    std::ranges::move(anchors_of(text(file), begins_[file]), std::back_inserter(order));
    between();
  }
  std::size_t compared = 0;
  std::ranges::sort(order, [&](const Sortable& a, const Sortable& b) {
    if (++compared % kComparedInOnePiece == 0) between();
    if (a.key != b.key) return a.key < b.key;
    const int later = compare(text_.data() + a.at, text_.data() + b.at, kKeyBytes);
    return later != 0 ? later < 0 : a.at < b.at;
  });
  for (std::size_t rank = 0; rank < order.size(); rank += kSampledEvery)
    samples_.push_back(order[rank].key);
  samples_.shrink_to_fit();
  anchors_.reserve(order.size() * kAnchorBytes);
  for (const Sortable& anchor : order)
    for (unsigned byte = 0; byte < kAnchorBytes; ++byte)
      anchors_.push_back(static_cast<std::uint8_t>(anchor.at >> 8U * byte));
}

std::string_view Batch::text(std::size_t file) const {
  const std::size_t end = file + 1 < begins_.size() ? begins_[file + 1] : text_.size();
  return std::string_view(text_).substr(begins_[file], end - 1 - begins_[file]);
}

std::size_t Batch::bytes() const {
  std::size_t bytes = sizeof(*this) + text_.capacity() + anchors_.capacity() +
                      samples_.capacity() * sizeof(samples_[0]);
  for (const std::string& path : paths_) bytes += sizeof(path) + path.capacity();
  return bytes + begins_.capacity() * sizeof(begins_[0]);
}

std::size_t Batch::anchor(std::size_t rank) const {
  const std::uint8_t* at = anchors_.data() + rank * kAnchorBytes;
  return at[0] | std::size_t{at[1]} << 8U | std::size_t{at[2]} << 16U;
}

std::size_t Batch::rank_of(std::string_view context) const {
  const Padded query(context);
  // Not std::ranges, whose subranges clang 14 cannot compile.
  const auto [first, last] =
      std::equal_range(samples_.begin(), samples_.end(), key_before(query.end()));
  const auto rank_at = [&](auto sample) {
    return static_cast<std::size_t>(sample - samples_.begin()) * kSampledEvery;
  };
  std::size_t begin = first == samples_.begin() ? 0 : rank_at(first) - kSampledEvery;
  std::size_t end = std::min(rank_at(last), anchor_count());
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (compare(text_.data() + anchor(middle), query.end(), 0) < 0)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

void Batch::prefetch(std::size_t rank) const {
  if (rank >= anchor_count()) return;
  constexpr std::size_t kLineBytes = 64;
  const char* at = text_.data() + anchor(rank);
  __builtin_prefetch(at);
  __builtin_prefetch(at - std::min(kLineBytes, anchor(rank)));
}

std::size_t Batch::agreement(std::size_t rank, std::string_view context) const {
  // A zero byte ends the file before, so a match never runs over into it.
  return common_suffix(std::string_view(text_).substr(0, anchor(rank)), context);
}

// std::upper_bound() jumps at each step to where nobody can foresee.
Batch::At Batch::file_at(std::size_t byte) const {
  const std::uint32_t* begin = begins_.data();
  for (std::size_t left = begins_.size(); left > 1; left -= left / 2)
    begin += begin[left / 2] <= byte ? left / 2 : 0;
  return {static_cast<std::size_t>(begin - begins_.data()), byte - *begin};
}

std::vector<std::string> paths_of(const Batch& batch) {
  std::vector<std::string> paths;
  for (std::size_t file = 0; file < batch.file_count(); ++file) paths.push_back(batch.path(file));
  return paths;
}

BatchPtr make_batch(std::span<const File> files, const Between& between) {
  return std::make_shared<const Batch>(files, between);
}

}  // namespace efimd::recall
