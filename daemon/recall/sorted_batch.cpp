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
constexpr std::size_t kLineBytes = 64;  ///< of the processor's cache
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

/// In 12 bytes: while a batch is made, its millions of anchors take more memory than all else of it.
struct Sortable {
  std::uint32_t key_low, key_high, at;
  std::uint64_t key() const { return std::uint64_t{key_high} << 32U | key_low; }
};

std::vector<Sortable> anchors_of(std::string_view text, std::size_t begin) {
  std::vector<Sortable> found;
  for (std::size_t at = 0; at <= text.size(); ++at)
    if (is_anchor(text, at)) {
      const std::uint64_t key = key_before(text.data() + at);
      found.push_back({static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32U),
                       static_cast<std::uint32_t>(begin + at)});
    }
  return found;
}

}  // namespace

Batch::Batch(std::span<const File> files, const Between& between)
    : text_(kContextBytesMax + kKeyBytes, '\0') {
  std::size_t bytes = text_.size();
  for (const File& file : files) bytes += file.text.size() + 1;
  text_.reserve(std::min(bytes, kBatchBytesMax + kFileBytesMax));
  std::vector<std::uint32_t> begins;
  for (const File& file : files) {
    if (paths_.empty()) family_ = family_of(file.path);
    if (file.text.size() > kFileBytesMax || text_.size() > kBatchBytesMax ||
        family_of(file.path) != family_)
      continue;
    begins.push_back(static_cast<std::uint32_t>(text_.size()));
    paths_.push_back(file.path);
    text_ += file.text;
    text_ += '\0';
    between();
  }
  files_ = LineTree<std::uint32_t>(begins.size());
  begins_.resize(files_.size());
  std::ranges::copy(begins, begins_.begin() + static_cast<std::ptrdiff_t>(files_.begin()));
  files_.build(begins_);
  std::vector<Sortable> order;
  for (std::size_t file = 0; file < file_count(); ++file) {
    std::ranges::move(anchors_of(text(file), begin_of(file)), std::back_inserter(order));
    between();
  }
  std::size_t compared = 0;
  std::ranges::sort(order, [&](const Sortable& a, const Sortable& b) {
    if (++compared % kComparedInOnePiece == 0) between();
    if (a.key() != b.key()) return a.key() < b.key();
    const int later = compare(text_.data() + a.at, text_.data() + b.at, kKeyBytes);
    return later != 0 ? later < 0 : a.at < b.at;
  });
  anchor_count_ = order.size();
  constexpr std::size_t kWord = sizeof(ranks_[0]);
  samples_ = LineTree<std::uint64_t>(samples_of(order.size()));
  ranks_.resize(samples_.size() + (order.size() * kAnchorBytes + kWord - 1) / kWord);
  for (std::size_t rank = 0; rank < order.size(); rank += kSampledEvery)
    ranks_[samples_.begin() + rank / kSampledEvery] = order[rank].key();
  samples_.build(ranks_);
  auto* next = reinterpret_cast<std::uint8_t*>(ranks_.data() + samples_.size());
  for (const Sortable& anchor : order)
    for (unsigned byte = 0; byte < kAnchorBytes; ++byte)
      *next++ = static_cast<std::uint8_t>(anchor.at >> 8U * byte);
}

Batch::Context::Context(std::string_view before) {
  const std::size_t bytes = std::min(before.size(), kContextBytesMax);
  std::memcpy(storage_ + sizeof(storage_) - bytes, before.data() + before.size() - bytes, bytes);
}

std::string_view Batch::text(std::size_t file) const {
  const std::size_t begin = begin_of(file);
  const std::size_t end = file + 1 < file_count() ? begin_of(file + 1) : text_.size();
  return std::string_view(text_).substr(begin, end - 1 - begin);
}

std::size_t Batch::bytes() const {
  std::size_t bytes = sizeof(*this) + random_access_bytes(text_.capacity()) +
                      random_access_bytes(ranks_.capacity() * sizeof(ranks_[0]));
  for (const std::string& path : paths_) bytes += sizeof(path) + path.capacity();
  return bytes + begins_.capacity() * sizeof(begins_[0]);
}

const std::uint8_t* Batch::anchor_bytes(std::size_t rank) const {
  const std::uint64_t* const anchors = ranks_.data() + samples_.size();
  return reinterpret_cast<const std::uint8_t*>(anchors) + rank * kAnchorBytes;
}

std::size_t Batch::anchor(std::size_t rank) const {
  const std::uint8_t* at = anchor_bytes(rank);
  return at[0] | std::size_t{at[1]} << 8U | std::size_t{at[2]} << 16U;
}

std::vector<Batch::Narrowed> Batch::narrowed_by_samples(std::span<const Sought> sought) {
  struct Bounds {
    std::uint64_t key = 0;
    std::size_t lower = 0, upper = 0;  ///< samples before the key, and not after it
  };
  std::vector<Bounds> found;
  found.reserve(sought.size());
  std::size_t most = 0;
  for (const Sought& each : sought) {
    found.push_back({.key = key_before(each.context->end())});
    most = std::max(most, each.batch->samples_.levels());
    each.batch->samples_.prefetch_top(each.batch->ranks_.data());
  }
  for (std::size_t level = most; level-- > 0;)
    for (std::size_t i = 0; i < sought.size(); ++i) {
      const Batch& batch = *sought[i].batch;
      if (level >= batch.samples_.levels()) continue;
      const std::uint64_t* all = batch.ranks_.data();
      Bounds& at = found[i];
      at.lower = batch.samples_.narrow(all, level, at.lower,
                                       [&](std::uint64_t sample) { return sample < at.key; });
      at.upper = batch.samples_.narrow(all, level, at.upper,
                                       [&](std::uint64_t sample) { return sample <= at.key; });
    }
  std::vector<Narrowed> narrowed;
  narrowed.reserve(sought.size());
  for (std::size_t i = 0; i < sought.size(); ++i) {
    const Batch& batch = *sought[i].batch;
    const std::size_t before = std::max<std::size_t>(found[i].lower, 1) - 1;
    narrowed.push_back({sought[i], before * kSampledEvery,
                        std::min(found[i].upper * kSampledEvery, batch.anchor_count()), 0,
                        nullptr});
    const std::uint8_t* anchors = batch.anchor_bytes(narrowed[i].begin);
    if (narrowed[i].begin < narrowed[i].end)
      for (std::size_t byte = 0; byte < kSampledEvery * kAnchorBytes; byte += kLineBytes)
        __builtin_prefetch(anchors + byte);
  }
  return narrowed;
}

std::vector<std::size_t> Batch::ranks_of(std::span<const Sought> sought) {
  std::vector<Narrowed> narrowed = narrowed_by_samples(sought);
  const auto is_wide = [](const Narrowed& at) { return at.begin < at.end; };
  while (std::ranges::any_of(narrowed, is_wide)) {
    for (Narrowed& at : narrowed) {
      if (!is_wide(at)) continue;
      at.middle = at.begin + (at.end - at.begin) / 2;
      const Batch& batch = *at.sought.batch;
      at.context_end = batch.text_.data() + batch.anchor(at.middle);
      __builtin_prefetch(at.context_end - kKeyBytes);
    }
    for (Narrowed& at : narrowed) {
      if (!is_wide(at)) continue;
      if (compare(at.context_end, at.sought.context->end(), 0) < 0)
        at.begin = at.middle + 1;
      else
        at.end = at.middle;
    }
  }
  std::vector<std::size_t> ranks;
  ranks.reserve(narrowed.size());
  for (const Narrowed& at : narrowed) ranks.push_back(at.begin);
  return ranks;
}

void Batch::prefetch(std::size_t rank) const {
  if (rank >= anchor_count()) return;
  const char* at = text_.data() + anchor(rank);
  __builtin_prefetch(at);
  __builtin_prefetch(at - std::min(kLineBytes, anchor(rank)));
}

std::size_t Batch::agreement(std::size_t rank, std::string_view context) const {
  // A zero byte ends the file before, so a match never runs over into it.
  return common_suffix(std::string_view(text_).substr(0, anchor(rank)), context);
}

Batch::At Batch::file_at(std::size_t byte) const {
  const std::size_t begun =
      files_.count(begins_.data(), [&](std::uint32_t begin) { return begin <= byte; });
  const std::size_t file = std::max<std::size_t>(begun, 1) - 1;
  return {file, byte - begin_of(file)};
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
