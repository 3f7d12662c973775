#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "daemon/recall/scroll.h"
#include "daemon/recall/search.h"

namespace efimd::recall {

/// Text that was in a project's documents in this session: deleted or undone text, and accepted
/// suggestions, each with some of the text before it.
///
/// Text that is deleted key by key is one text: a deletion beside the last one in the same file is
/// joined to it.
/// Limits: `bytes_max` in all, the oldest out first; kDeletedBytesMax of one deletion.
class SessionText {
 public:
  static constexpr std::size_t kDeletedBytesMax = std::size_t{16} * 1024;
  /// Bytes before the text, kept with it so that a match has a context.
  static constexpr std::size_t kBeforeBytes = 160;
  static constexpr std::size_t kTextsMax = 256;

  /// Bytes [begin, begin + removed) of `text` were deleted.
  void deleted(std::string_view path, std::string_view text, std::size_t begin,
               std::size_t removed);
  void accepted(std::string_view path, std::string_view text, std::size_t begin,
                std::size_t inserted);
  void forget(std::string_view path);
  void limit(std::size_t bytes_max);

  std::size_t bytes() const;
  /// Scans the texts of one family.
  void search(Search& search, std::string_view family) const;

 private:
  /// The newest text, which may still grow.
  struct Newest {
    std::string path;
    std::string text;  ///< `before` bytes, then the text itself; empty: there is none
    std::size_t before = 0;
    std::size_t begin = 0;  ///< of the text in its document, as it was
    Source source = Source::kDeleted;
  };
  void keep(Newest newest);
  /// Puts the newest text to the others.
  void settle();
  bool join(std::string_view path, std::string_view text, std::size_t begin, std::size_t removed);
  std::size_t count() const;
  void drop_oldest();

  Newest newest_;
  std::map<std::string, Scroll, std::less<>> settled_;  ///< by family; none is empty
  std::uint64_t last_number_ = 0;
};

}  // namespace efimd::recall
