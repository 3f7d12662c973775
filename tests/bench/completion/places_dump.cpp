#include <algorithm>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/completion/answer/draft_chance.h"
#include "daemon/completion/answer/judged_chance.h"
#include "daemon/completion/answer/worker.h"
#include "daemon/completion/pace.h"
#include "daemon/models/chosen_model.h"
#include "daemon/models/engine_host.h"
#include "daemon/recall/match.h"
#include "tests/bench/completion/configured_model.h"
#include "tests/bench/completion/places.h"

namespace efimd::bench {

namespace {

using completion::JudgedBoundary;

/// A worker of its own, because what the model judged is not part of an answer.
struct Setup {
  recall::Index index;
  std::unique_ptr<completion::Worker> worker;
  completion::Options options;
};

Result<std::unique_ptr<Setup>> open(const service::Paths& paths) {
  const service::Config config = service::config_in_force(paths);
  auto engine = configured_engine(config);
  if (!engine) return tl::unexpected(engine.error());
  auto made = service::make_engine_factory(
      std::move(*engine), std::make_shared<service::OpenedModel>())([](double) {}, {});
  if (!made) return tl::unexpected(made.error());
  completion::Budgets budgets;
  auto costs = completion::measure_step_costs(**made, {});
  if (!costs) return tl::unexpected(costs.error());
  budgets.costs = std::move(*costs);
  budgets.are_fixed = false;
  completion::set_pace(budgets, **made, config.window_tokens);
  auto setup = std::make_unique<Setup>();
  setup->options = config.completion;
  setup->worker = std::make_unique<completion::Worker>(
      std::move(*made), completion::Worker::Settings{.budgets = budgets, .index = &setup->index});
  return setup;
}

/// "D features... accepted" for each token of each draft that recall would have proposed after each
/// token that the model wrote, up to the first that the model did not choose; "P features...
/// accepted" for those of the best candidate in the prompt's step.
class DraftDump {
 public:
  DraftDump(std::ostream& out, const Setup& setup, const completion::Request& request,
            const completion::Generated& written)
      : out_(out), setup_(setup), request_(request) {
    // Those before them spell the typed end again.
    for (const auto& token :
         std::span(written.tokens).last(static_cast<std::size_t>(written.new_tokens)))
      tokens_.push_back(token.id);
  }

  void dump(const std::vector<recall::Candidate>& candidates) const {
    if (!candidates.empty()) {
      const double chance = candidates.front().boundaries.front().chance;
      compare('P', candidates.front().text, 0,
              [&](std::size_t at) { return completion::draft_features(chance, at); });
    }
    const std::string_view text = request_.snapshot->bytes();
    std::string seen(text.substr(0, request_.cursor));
    for (std::size_t from = 1; from < tokens_.size(); ++from) {
      seen += setup_.worker->engine().tokenizer().bytes(tokens_[from - 1]);
      const std::string all = seen + std::string(text.substr(request_.cursor));
      const recall::Continuation found = setup_.index.draft(
          {{request_.home.project, request_.home.path}, all, seen.size()}, kDraftBytes);
      if (found.text.empty()) continue;
      const completion::DraftEvidence evidence{found.agreed, found.votes, found.share};
      compare('D', found.text, from,
              [&](std::size_t at) { return completion::draft_features(evidence, at); });
    }
  }

 private:
  static constexpr std::size_t kDraftBytes = 160, kDraftTokens = 16;

  template <class Features>
  void compare(char name, std::string_view draft, std::size_t from,
               const Features& features) const {
    const auto drafted =
        setup_.worker->engine().tokenizer().encode(draft, engine::Fragment::kInside);
    bool accepted = true;
    for (std::size_t at = 0;
         accepted && at < std::min(drafted.size(), kDraftTokens) && from + at < tokens_.size();
         ++at) {
      accepted = drafted[at] == tokens_[from + at];
      out_ << name;
      for (const float feature : features(at)) out_ << ' ' << feature;
      out_ << ' ' << (accepted ? 1 : 0) << '\n';
    }
  }

  std::ostream& out_;
  const Setup& setup_;
  const completion::Request& request_;
  std::vector<engine::TokenId> tokens_;
};

/// A candidate's cursor and number.
struct Asked {
  const recall_places::Cursor& cursor;
  std::size_t id = 0, candidate = 0;
};

/// A line for each boundary; those that the model judged have features.
void dump_candidate(std::ostream& out, const Asked& asked, const recall::Candidate& candidate,
                    std::span<const completion::JudgedToken> judged) {
  const std::string& truth = asked.cursor.truth;
  const std::vector<JudgedBoundary> heard = completion::judged_boundaries(candidate, judged);
  for (std::size_t at = 0; at < candidate.boundaries.size(); ++at) {
    const recall::Boundary& boundary = candidate.boundaries[at];
    out << "B " << static_cast<int>(candidate.evidence.place) << ' '
        << static_cast<int>(asked.cursor.kind) << ' ' << asked.id << ' ' << truth.size() << ' '
        << asked.candidate << ' ' << candidate.text.size() << ' '
        << recall::common_prefix(candidate.text, truth) << ' ' << boundary.bytes << ' '
        << boundary.chance;
    if (at < heard.size())
      for (const float feature : heard[at].features) out << ' ' << feature;
    out << '\n';
  }
}

/// "Q kind cursor truth" for the cursor, "B place kind cursor truth candidate text right bytes chance
/// [features...]" for each boundary of a candidate, "W place kind cursor truth bytes right features..."
/// for what the model wrote.
void dump(std::ostream& out, Setup& setup, std::size_t id, const completion::Request& request,
          const recall_places::Cursor& cursor) {
  // The open document stands for its file, where the line is not taken away.
  setup.index.set_document({request.home.project, request.home.path}, request.snapshot);
  const std::vector<recall::Candidate> candidates =
      setup.index.find({{request.home.project, request.home.path}, cursor.text, cursor.at});
  const completion::Job job(request, [](const completion::Outcome&) {});
  static_cast<void>(setup.worker->serve(job));
  const completion::DocumentState* document = setup.worker->documents().find(request.document);
  const auto kind = static_cast<int>(cursor.kind);
  out << "Q " << kind << ' ' << id << ' ' << cursor.truth.size() << '\n';
  if (document != nullptr && !document->suggestions.empty()) {
    const completion::Generated& written = document->suggestions.front().generated;
    DraftDump(out, setup, request, written).dump(candidates);
    const std::string_view line = std::string_view(written.text).substr(0, written.text.find('\n'));
    const auto place = recall::place_at(cursor.text, cursor.at);
    if (!line.empty()) {
      out << "W " << static_cast<int>(place) << ' ' << kind << ' ' << id << ' '
          << cursor.truth.size() << ' ' << line.size() << ' '
          << recall::common_prefix(line, cursor.truth);
      for (const float feature : completion::written_features(written.confidence, line.size()))
        out << ' ' << feature;
      out << '\n';
    }
    for (std::size_t i = 0; i < std::min(candidates.size(), written.judged.size()); ++i)
      dump_candidate(out, {cursor, id, i}, candidates[i], written.judged[i]);
  }
  setup.worker->close(request.document);
}

}  // namespace

Result<void> dump_places(const service::Paths& paths,
                         const std::vector<recall_places::Project>& projects,
                         const PlacesSetup& places) {
  auto setup = open(paths);
  if (!setup) return tl::unexpected(setup.error());
  std::ofstream out(places.dump);
  std::size_t id = 0;
  for (const recall_places::Project& project : projects) {
    for (const recall::BatchPtr& batch : recall_places::batches_of(project))
      (*setup)->index.add_files(project.name, batch);
    for (const recall_places::Cursor& cursor :
         recall_places::draw_cursors(project, places.count, places.seed)) {
      const completion::TextHome home{project.name, project.files[cursor.file].path};
      completion::Request request;
      request.document = {1, "file://" + home.path};
      request.snapshot = text::Document(cursor.text).snapshot();
      request.cursor = cursor.at;
      request.home = home;
      request.options = (*setup)->options;
      request.arrived = std::chrono::steady_clock::now();
      dump(out, **setup, id++, request, cursor);
    }
    (*setup)->index.remove_project(project.name);
  }
  if (out.flush()) return {};
  return fail(Fault::kIo, places.dump + " cannot be written", "free some space, or name another");
}

}  // namespace efimd::bench
