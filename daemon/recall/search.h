#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/recall/match.h"
#include "daemon/recall/sorted_batch.h"
#include "daemon/text/differences.h"

namespace efimd::recall {

/// A batch and which of its files are searched.
struct HeldBatch {
  /// kEdited: searched, and an open document says the same that was edited. kChanged: an open document
  /// says something else, so only what both have is searched, as text of the document.
  enum class State : std::uint8_t { kSearched, kEdited, kChanged, kRemoved };

  BatchPtr batch;
  std::vector<State> states;  ///< of its files
  std::size_t files_left = 0;
};

/// A file of a batch; of none if `held` is null.
struct PlacedFile {
  HeldBatch* held = nullptr;
  std::size_t file = 0;
};

/// Text that is scanned instead of looked up.
struct Scanned {
  std::string_view text;
  Source source = Source::kOpenFile;
  std::string_view path = {};
  bool edited = false;  ///< since its editor opened it
};

/// A text that is a part of a longer one, and where it begins there.
struct Placed {
  Scanned part;
  std::size_t begin = 0;
};
class Scroll;

/// An open document whose file is in a batch, and says something else.
struct ChangedFile {
  Scanned document;
  const text::Differences* differences = nullptr;  ///< of the file's text and the document
};

/// Brings what Search::scan() will read of it into the processor's cache.
void prefetch(const ChangedFile& changed);

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

  /// The cursor's own document, but for its line.
  void scan_own(std::string_view path);
  /// Of a long text, what is around byte `centre`. Nothing that would pass kScannedBytesMax.
  void scan(const Scanned& scanned, std::size_t centre = 0);
  /// Of the texts in a scroll, the last ones.
  void scan(const Scroll& scroll);
  /// The document where it differs from its file. look_up() finds the rest through the file's batch.
  void scan(const ChangedFile& changed);
  /// All that batches have, but for the cursor's own file.
  void look_up(std::span<const HeldBatch* const> batches, const PlacedFile& own);

  /// The best matches, judged. No place comes twice.
  std::vector<Match> take();

 private:
  struct Side;
  struct Neighbour;
  void scan_window(const Scanned& scanned, std::size_t begin, std::size_t end);
  /// `part_at(byte)`, for a byte of `text`: the text that it is a part of.
  template <class PartAt>
  void scan_window(std::string_view text, std::size_t begin, std::size_t end,
                   const PartAt& part_at);
  void look_up(const Probe& probe, std::span<const HeldBatch* const> batches,
               std::span<const std::size_t> ranks);
  void add_from(std::span<Neighbour> found, const Probe& probe);
  void add_from(const HeldBatch& held, const Batch::At& place, std::size_t agreed,
                const Probe& probe);
  void add_from(const ChangedFile& changed, std::size_t place, const Probe& probe);
  void add_looked_up(const Match& match, const Probe& probe);

  const Asked& asked_;
  PlacedFile own_;
  std::vector<ChangedFile> changed_;
  std::vector<Match> scanned_, looked_up_;
  std::size_t scanned_bytes_ = 0;
  std::size_t scanned_floor_ = 0;  ///< a scanned match that agrees less is none of the best
};

}  // namespace efimd::recall
