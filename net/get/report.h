#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"
#include "net/get/fetch.h"
#include "net/get/offer.h"

namespace efimd::get {

/// Reports the events: on a terminal or in a log on stderr, with the path of the loaded file on
/// stdout. For editors, each event is a line of JSON on stdout.
class Report {
 public:
  enum class Form { kText, kJson };
  explicit Report(Form form);

  void offer(const Offer& offer);
  void note(const std::string& text);
  /// At most kPerS a second, and the last of a file.
  void progress(const std::string& file, std::uint64_t bytes, std::uint64_t total);
  /// The file is whole, checked and under its name.
  void done(const std::string& path, bool was_here);
  /// 1, the exit code.
  int failed(const Error& error);
  bool is_json() const { return form_ == Form::kJson; }

  static constexpr int kPerS = 4;

 private:
  using Clock = std::chrono::steady_clock;
  void line(const nlohmann::json& event);
  void end_progress_line();
  Form form_;
  bool on_terminal_;
  bool line_is_open_ = false;
  std::string file_;  ///< of the last progress
  Clock::time_point told_, began_;
  std::uint64_t began_bytes_ = 0;
};

}  // namespace efimd::get
