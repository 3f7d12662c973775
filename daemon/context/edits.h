#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/text/document.h"

namespace efimd::context {

/// Places of one text that are remembered; the one edited longest ago goes.
inline constexpr std::size_t kEditedPlacesMax = 8;
/// Of one place; of a larger one, such as a pasted or formatted text, its first lines are shown.
inline constexpr std::size_t kEditedBytesMax = std::size_t{1} << 10;

/// Where a text was edited, in bytes of the version that was followed last.
struct EditedPlace {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint64_t order = 0;  ///< of its last edit, among the edits of all texts
  bool operator==(const EditedPlace&) const = default;
};

/// The places of one text that its user edited since it was opened. Edits near each other are
/// one place.
///
/// Thread: its owner's.
class RecentEdits {
 public:
  /// Takes in what was edited up to `snapshot`; the first one has no edits. Forgets all places if the
  /// snapshot does not remember how the text came about. `order` grows from call to call.
  void follow(const text::Snapshot& snapshot, std::uint64_t order);

  /// In the order of the text.
  std::span<const EditedPlace> places() const { return places_; }

 private:
  std::optional<std::uint64_t> serial_;
  std::vector<EditedPlace> places_;
};

/// The whole lines of a place as they are in `snapshot`, each with its end; empty if they are blank.
std::string edited_lines(const EditedPlace& place, const text::Snapshot& snapshot);

}  // namespace efimd::context
