#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace efimd::completion {

/// What is kept longest follows how this user returns to files. After Continuum (arXiv 2511.02230),
/// which keeps KV for a time to live that follows the gaps between the turns of a conversation.
///
/// Time is counted in visits: one begins when the user turns to a file from another. A file counts 1
/// for each visit, and half of that for each half-life that passed since. With a count of n it is
/// kept log2(n) half-lives longer than a file that was visited once. So 20 files that are looked
/// into once do not push out the three that one works in.
///
///   longer' = half_life * log2(1 + 2^((longer - gap) / half_life))
///
/// The half-life is the gap within which the user comes back, three times of four. It is learned:
/// each later return moves it up, each sooner one down by a third as much.
///
/// Knows names of files and numbers, no text.
/// Thread: engine.  Limits: kDocumentsMax, those that are kept least are forgotten.
class Returns {
 public:
  static constexpr std::size_t kDocumentsMax = 8192;
  static constexpr double kHalfLifeMin = 4, kHalfLifeStart = 64, kHalfLifeMax = 4096;  ///< visits

  struct Document {
    std::uint64_t last = 0;  ///< number of its last visit
    int longer = 0;
  };

  /// The user turned to this document: how many visits longer than others it is kept from now on. It
  /// is no visit if it is the one that was visited last, in another editor.
  int visit(const std::string& uri);
  /// Forgets the document, or all that lie in that folder. If it is empty, forgets everything.
  void forget(const std::string& uri);

  /// What was known before; numbers out of their range are taken as the nearest that is not.
  void load(std::uint64_t visits, std::int64_t half_life_milli,
            std::map<std::string, Document> documents);
  std::int64_t half_life_milli() const { return static_cast<std::int64_t>(half_life_ * 1000); }
  const std::map<std::string, Document>& documents() const { return documents_; }

 private:
  void learn(double gap);
  void limit();

  std::map<std::string, Document> documents_;
  std::string newest_;  ///< visited last; empty: not known
  std::uint64_t visits_ = 0;
  double half_life_ = kHalfLifeStart;
};

}  // namespace efimd::completion
