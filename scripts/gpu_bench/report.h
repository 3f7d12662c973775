#pragma once

#include <optional>
#include <string>
#include <vector>

/// Of what a card reaches in what bounds the work; of nothing where that is not known.
struct Share {
  const char* of = nullptr;
  double value = 0;
};

/// The limit of a measured number: at least, or at most, `wanted`.
struct Target {
  enum class Bound { kAtLeast, kAtMost };
  std::string what;
  std::optional<double> value;  ///< none: what it is a share of is not known
  Bound bound;
  double wanted;

  bool reached() const {
    return value && (bound == Bound::kAtLeast ? *value >= wanted : *value <= wanted);
  }
};

/// The measurements: on the screen line by line and, as JSON, in a file that is whole after each
/// line, because a lent machine may be taken away.
class Report {
 public:
  Report(std::string path, std::string device)
      : path_(std::move(path)), device_(std::move(device)) {}

  void line(const std::string& what, double ms, double rate, const char* unit, Share share = {});
  void target(Target target);
  void failure(const std::string& what);
  /// The targets, one a line, each reached or not.
  void print_targets() const;
  bool failed() const { return !failures_.empty(); }

 private:
  struct Line {
    std::string what;
    double ms;
    double rate;
    const char* unit;
    Share share;
  };
  void write() const;

  const std::string path_;
  const std::string device_;
  std::vector<Line> lines_;
  std::vector<Target> targets_;
  std::vector<std::string> failures_;
};
