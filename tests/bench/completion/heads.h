#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "base/error.h"
#include "daemon/config/paths.h"
#include "tests/recall/projects.h"

namespace efimd::bench {

/// Cursors at which the same was asked with a head of other files and without one.
struct HeadTally {
  std::size_t cursors = 0;
  std::size_t with_head = 0;  ///< at the others nothing would be shown, so both are one
  std::size_t exact_with = 0, exact_without = 0;
  std::size_t only_with = 0, only_without = 0;  ///< exact in one of both
  std::size_t saved_with = 0, saved_without = 0, chars = 0;
  HeadTally& operator+=(const HeadTally& other);
};

/// What the missing text names.
enum class Naming : unsigned char {
  kAny,        ///< all cursors
  kElsewhere,  ///< something that a file declares which this one uses
  kNew         ///< something of these that stands nowhere else in this file
};
inline constexpr std::size_t kNamings = 3;
using HeadTallies = std::array<HeadTally, kNamings>;

/// Asks at cursors inside of lines and at line starts, without recall, after idle time has made the
/// whole window ready with the head, and without it.
class HeadBench {
 public:
  /// Fails where there is no model, or it cannot be loaded.
  static Result<std::unique_ptr<HeadBench>> open(const service::Paths& paths);
  ~HeadBench();
  HeadBench(const HeadBench&) = delete;
  HeadBench& operator=(const HeadBench&) = delete;

  std::string description() const;
  HeadTallies measure(const recall_places::Project& project, std::size_t count, std::size_t seed);

 private:
  HeadBench();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace efimd::bench
