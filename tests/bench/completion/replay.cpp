#include "tests/bench/completion/replay.h"

#include <thread>
#include <utility>

#include "lsp/uri.h"

namespace efimd::bench {

Result<std::vector<Answered>> replay(BenchService& bench, std::span<const TraceEvent> trace,
                                     const ReplayOptions& options) {
  TraceDocuments documents;
  std::vector<Answered> answers;
  for (const TraceEvent& event : trace) {
    if (options.pause.count() > 0) std::this_thread::sleep_for(options.pause);
    const auto place = documents.apply(event);
    if (!place) return tl::unexpected(place.error());
    if (!*place) continue;
    completion::Request request;
    request.document = {1, lsp::file_uri("/trace/" + event.path)};
    request.snapshot = (*place)->snapshot;
    request.cursor = (*place)->cursor;
    request.options = bench.options();
    request.options.tokens_max = options.tokens_max;
    request.options.stop = completion::StopRule::kNone;
    request.options.temperature = 0;
    answers.push_back({event.kind, bench.ask(std::move(request)).receipt});
  }
  return answers;
}

}  // namespace efimd::bench
