#include "daemon/completion/generate/generate.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "daemon/completion/generate/generation.h"

namespace efimd::completion {

namespace {

using engine::TokenId;

/// Evaluates the items in one step; false where no KV memory is left for them.
Result<bool> step(const GenerationSetting& setting, std::span<const engine::BatchItem> items) {
  for (;;) {
    const Result<void> stepped = setting.engine.step(items);
    if (stepped) return true;
    if (stepped.error().fault != Fault::kWindowFull) return tl::unexpected(stepped.error());
    if (!setting.make_room()) return false;
  }
}

/// One generation of several, on a sequence of its own but for the first.
struct Course {
  Course(const GenerationSetting& setting, engine::SequenceId sequence_, const Options& options,
         StopRules& rules)
      : sequence(sequence_), generation(setting, sequence_, options, rules) {}
  engine::SequenceId sequence;
  Generation generation;
};

/// The forks, closed at the end.
class Courses {
 public:
  Courses(const GenerationSetting& setting, const Options& options, StopRules& rules)
      : setting_(setting), options_(options), unfed_(rules) {
    courses_.emplace_back(setting, setting.sequence, options, rules);
  }
  ~Courses() {
    for (std::size_t i = 1; i < courses_.size(); ++i)
      setting_.engine.close_sequence(courses_[i].sequence);
  }
  Courses(const Courses&) = delete;
  Courses& operator=(const Courses&) = delete;

  /// The likeliest, and beside it what else could be begun with; fewer where there is no KV memory.
  Result<void> begin(int count) {
    Generation& first = courses_.front().generation;
    if (count > 1) first.keep_alternatives();
    if (auto begun = first.begin(); !begun) return begun;
    for (const Generation::Choice& choice : first.alternatives(count - 1)) {
      const auto fork = setting_.engine.fork(setting_.sequence);
      if (!fork) break;
      courses_.emplace_back(setting_, *fork, options_, rules_.emplace_back(unfed_));
      courses_.back().generation.begin_beside(first, choice);
    }
    return {};
  }

  /// One token for each that has not ended; false when all have.
  Result<bool> go_on() {
    std::vector<engine::BatchItem> items;
    std::vector<Course*> going;
    for (Course& course : courses_) {
      const std::span<const TokenId> tokens = course.generation.pending();
      if (tokens.empty()) continue;
      items.push_back({.sequence = course.sequence,
                       .tokens = tokens,
                       .logits_rows = static_cast<int>(tokens.size())});
      going.push_back(&course);
    }
    if (items.empty()) return false;
    const auto begin = std::chrono::steady_clock::now();
    const Result<bool> stepped =
        items[0].tokens.size() > 1 ? step_with_draft(items[0]) : step_with_passenger(items);
    if (!stepped) return tl::unexpected(stepped.error());
    for (Course* course : going) {
      if (!*stepped) {
        course->generation.end_for(End::kNoRoom);
      } else if (auto gone = course->generation.go_on(); !gone) {
        return tl::unexpected(gone.error());
      }
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    if (*stepped && going.size() == 1) going.front()->generation.stepped(took.count());
    return true;
  }

  std::vector<Generated> finish() {
    std::vector<Generated> all;
    for (Course& course : courses_) all.push_back(course.generation.finish());
    return all;
  }

 private:
  /// Only the first generation has drafts, and only if it is alone. A draft that finds no room, or
  /// fails, is left out.
  Result<bool> step_with_draft(engine::BatchItem item) {
    if (setting_.engine.step({&item, 1})) return true;
    courses_.front().generation.drop_draft();
    item.tokens = item.tokens.first(1);
    item.logits_rows = 1;
    return step(setting_, {&item, 1});
  }

  /// A passenger that finds no room, or fails, is left out.
  Result<bool> step_with_passenger(std::vector<engine::BatchItem>& items) {
    if (setting_.passenger && items.size() == 1)
      if (const engine::BatchItem passenger = setting_.passenger(); !passenger.tokens.empty()) {
        items.push_back(passenger);
        if (setting_.engine.step(items)) return true;
        items.pop_back();
      }
    return step(setting_, items);
  }

  const GenerationSetting& setting_;
  const Options& options_;
  const StopRules unfed_;
  std::deque<StopRules> rules_;  ///< of the forks; generations refer to them: they must not move
  std::deque<Course> courses_;
};

}  // namespace

Result<Generated> generate(const GenerationSetting& setting, const Options& options,
                           StopRules& rules) {
  auto all = generate_several(setting, options, rules, 1);
  if (!all) return tl::unexpected(std::move(all).error());
  return std::move(all->front());
}

Result<std::vector<Generated>> generate_several(const GenerationSetting& setting,
                                                const Options& options, StopRules& rules,
                                                int count) {
  Courses courses(setting, options, rules);
  if (auto begun = courses.begin(count); !begun) return tl::unexpected(begun.error());
  for (Result<bool> going = true; *going;) {
    going = courses.go_on();
    if (!going) return tl::unexpected(going.error());
  }
  return courses.finish();
}

}  // namespace efimd::completion
