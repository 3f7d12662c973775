#include "daemon/models/read_ahead.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "base/small_file.h"
#include "daemon/config/this_system.h"
#include "daemon/models/kept_json.h"

namespace efimd::service {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

/// Weights are read in pieces of this size; a stop is seen between them.
constexpr std::size_t kPieceBytes = std::size_t{16} << 20;
constexpr std::size_t kDigestsBytesMax = std::size_t{1} << 16;

std::optional<Digest> find(const fs::path& file, const std::string& stamp) {
  const Json kept = read_kept_json(file, kDigestsBytesMax);
  const auto found = kept.find(stamp);
  if (found == kept.end() || !found->is_array() || found->size() != 2 ||
      !(*found)[0].is_number_unsigned() || !(*found)[1].is_number_unsigned())
    return std::nullopt;
  return Digest{(*found)[0].get<std::uint64_t>(), (*found)[1].get<std::uint64_t>()};
}

/// If it cannot be written, the weights are digested again next time.
void keep(const fs::path& file, const std::string& stamp, const Digest& digest) {
  if (file.empty()) return;
  Json kept = read_kept_json(file, kDigestsBytesMax);
  if (kept.size() >= kDigestsMax) kept.clear();
  kept[stamp] = {digest.low, digest.high};
  static_cast<void>(replace_small_file(file, kept.dump(1) + "\n"));
}

/// Brings one piece of the mapping into memory and into this process's page table.
void touch(std::span<const std::byte> piece, std::size_t page_bytes) {
  volatile std::byte sink{};
  for (std::size_t at = 0; at < piece.size(); at += page_bytes) sink = piece[at];
  static_cast<void>(sink);
}

}  // namespace

Result<Digest> read_ahead(const engine::GgufFile& file, const ModelDigests& digests,
                          const std::function<void(double)>& progress,
                          const std::stop_token& stop) {
  const std::span<const std::byte> bytes = file.bytes();
  const std::string stamp = file.stamp();
  if (bytes.size() > memory_bytes() / 4 * 3)
    return digest_of(std::as_bytes(std::span(stamp.data(), stamp.size())));
  const std::optional<Digest> known = find(digests.file, stamp);
  Digest digest = known.value_or(Digest{});
  const auto page_bytes = static_cast<std::size_t>(std::max(4096L, ::sysconf(_SC_PAGESIZE)));
  for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    if (stop.stop_requested()) return fail(Fault::kStopped, "loading the model was stopped");
    const auto piece = bytes.subspan(at, std::min(kPieceBytes, bytes.size() - at));
    // The mapping starts on a page and pieces are whole pages, as madvise wants; a refusal only
    // costs speed.
    ::posix_madvise(const_cast<std::byte*>(piece.data()), piece.size(), POSIX_MADV_WILLNEED);
    if (known)
      touch(piece, page_bytes);
    else
      digest = digest_of(piece, digest, digests.key);
    progress(static_cast<double>(at + piece.size()) / static_cast<double>(bytes.size()));
  }
  if (!known && !stamp.empty() && file.stamp() == stamp) keep(digests.file, stamp, digest);
  return digest;
}

}  // namespace efimd::service
