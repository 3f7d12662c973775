#include "tests/bench/completion/replay.h"

#include <functional>
#include <thread>
#include <utility>

#include "lsp/uri.h"

namespace efimd::bench {

namespace {

using Ask = std::function<Result<completion::Receipt>(completion::Request)>;

Result<std::vector<Answered>> replay_to(const Ask& ask, std::span<const TraceEvent> trace,
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
    auto receipt = ask(std::move(request));
    if (!receipt) return tl::unexpected(receipt.error());
    answers.push_back({event.kind, std::move(*receipt)});
  }
  return answers;
}

}  // namespace

Result<std::vector<Answered>> replay(BenchService& bench, std::span<const TraceEvent> trace,
                                     const ReplayOptions& options) {
  completion::Options wanted = bench.options();
  wanted.tokens_max = options.tokens_max;
  wanted.stop = completion::StopRule::kNone;
  wanted.temperature = 0;
  const auto ask = [&](completion::Request request) -> Result<completion::Receipt> {
    request.options = wanted;
    return bench.ask(std::move(request)).receipt;
  };
  return replay_to(ask, trace, options);
}

Result<std::vector<Answered>> replay(Baseline& baseline, std::span<const TraceEvent> trace,
                                     const ReplayOptions& options) {
  const auto ask = [&](completion::Request request) {
    request.options.tokens_max = options.tokens_max;
    request.arrived = std::chrono::steady_clock::now();
    return baseline.ask(request);
  };
  return replay_to(ask, trace, options);
}

}  // namespace efimd::bench
