#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/recall/match.h"
#include "daemon/recall/sorted_batch.h"

namespace efimd::recall {

/// A batch and which of its files are searched.
struct HeldBatch {
  /// kEdited: searched, and an open document says the same that was edited.
  enum class State : std::uint8_t { kSearched, kEdited, kHidden, kRemoved };

  BatchPtr batch;
  std::vector<State> states;  ///< of its files
  std::size_t files_left = 0;
};

/// Text that is scanned instead of looked up.
struct Scanned {
  std::string_view text;
  Source source = Source::kOpenFile;
  std::string_view path = {};
  bool edited = false;  ///< since its editor opened it
};

/// Bytes read through for one query, all documents together.
inline constexpr std::size_t kScannedBytesMax = std::size_t{192} * 1024;
/// Of the cursor's own document, on each side.
inline constexpr std::size_t kOwnBytesMax = std::size_t{96} * 1024;
/// Of another text, on each side of its centre.
inline constexpr std::size_t kOtherBytesMax = std::size_t{64} * 1024;
inline constexpr std::size_t kScannedMatchesMax = 32;
inline constexpr std::size_t kBatchMatchesMax = 32;

/// Collects the places that agree best with a query.
///
/// Cost: scanning 10 GB/s, looking up some microseconds a batch, judging 200 ns a match. A probe has
/// at most kScannedMatchesMax + kBatchMatchesMax matches.
class Search {
 public:
  explicit Search(const Asked& asked) : asked_(asked) {}

  /// The cursor's own document, but for its line. No batch is asked for a file of its path then.
  void scan_own(std::string_view path);
  /// Of a long text, what is around byte `centre`. Nothing once kScannedBytesMax were read.
  void scan(const Scanned& scanned, std::size_t centre = 0);
  /// Whether anything more would be read.
  bool has_room() const { return scanned_bytes_ < kScannedBytesMax; }
  void look_up(std::span<const HeldBatch* const> batches);

  /// The best matches, judged. No place comes twice.
  std::vector<Match> take();

 private:
  struct Side;
  void scan_window(const Scanned& scanned, std::size_t begin, std::size_t end);
  void look_up(const Probe& probe, std::span<const HeldBatch* const> batches);
  void add_from(const HeldBatch& held, std::size_t rank, std::size_t agreed, const Probe& probe);

  const Asked& asked_;
  std::string_view own_path_;
  std::vector<Match> scanned_, looked_up_;
  std::size_t scanned_bytes_ = 0;
  std::size_t scanned_floor_ = 0;  ///< a scanned match that agrees less is none of the best
};

}  // namespace efimd::recall
