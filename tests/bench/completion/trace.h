#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "daemon/text/document.h"

namespace efimd::bench {

/// A trace has no more events; the rest of a longer file is refused, not left out.
inline constexpr std::size_t kTraceEventsMax = 1'000'000;
/// Different kinds of events, one row of the table each.
inline constexpr std::size_t kTraceKindsMax = 32;
inline constexpr std::size_t kTraceKindBytesMax = 32;

/// One line of an editing trace. Positions count code points of the text just before the event,
/// `cursor` those of the text after it.
struct TraceEvent {
  enum class Op : std::uint8_t { kOpen, kEdit, kMove };
  Op op = Op::kOpen;
  std::size_t line = 0;  ///< of the trace file, from 1: for messages
  std::string path;      ///< names the document; no file of that name is read
  std::string text;      ///< the document's, or what is inserted
  std::size_t position = 0;
  std::size_t removed = 0;
  std::size_t cursor = 0;
  std::string kind;  ///< the row that it is counted in
  bool ask = false;  ///< a completion is wanted at the cursor
};

/// Reads JSON lines:
///
///   {"op":"open","path":P,"text":T}
///   {"op":"edit","path":P,"pos":N,"del":N,"ins":S,"cursor":N,"kind":K,"ask":BOOL}
///   {"op":"move","path":P,"cursor":N,"kind":K,"ask":BOOL}
///
/// Blank lines and other members are passed over. kBadInput names the line and the member; positions
/// are checked against the documents, so that a trace that was read can be replayed to its end.
Result<std::vector<TraceEvent>> parse_trace(std::string_view jsonl);

/// The documents of a trace as they are after the events that were applied.
class TraceDocuments {
 public:
  /// Where a completion is wanted after the event; nullopt where none is.
  struct Place {
    text::SnapshotPtr snapshot;
    std::size_t cursor = 0;  ///< byte
  };
  /// kBadInput, naming the event's line, for a path that was not opened, a second opening, a
  /// position outside of the text or a document that grows too large.
  Result<std::optional<Place>> apply(const TraceEvent& event);

 private:
  std::map<std::string, text::Document> documents_;
};

}  // namespace efimd::bench
