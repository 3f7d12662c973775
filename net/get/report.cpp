#include "net/get/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "daemon/config/amounts.h"
#include "daemon/config/printable.h"

namespace efimd::get {

using Json = nlohmann::json;

namespace {

std::string shown(double bytes) { return service::bytes_text(bytes); }

}  // namespace

Report::Report(Form form)
    : form_(form), on_terminal_(form == Form::kText && ::isatty(STDERR_FILENO) == 1) {}

void Report::line(const Json& event) {
  fmt::print("{}\n", event.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::fflush(stdout);
}

void Report::end_progress_line() {
  if (line_is_open_) std::fputs("\n", stderr);
  line_is_open_ = false;
}

void Report::offer(const Offer& offer) {
  if (form_ == Form::kJson) return line(offer_json(offer));
  std::fputs(service::printable(offer_text(offer)).c_str(), stderr);
}

void Report::note(const std::string& text) {
  if (form_ == Form::kJson) return line({{"event", "note"}, {"text", text}});
  end_progress_line();
  fmt::print(stderr, "{}\n", service::printable(text));
}

void Report::progress(const std::string& file, std::uint64_t bytes, std::uint64_t total) {
  const Clock::time_point now = Clock::now();
  if (file != file_) {
    file_ = file;
    began_ = now;
    began_bytes_ = bytes;
    told_ = {};
  }
  const bool last = bytes == total;
  if (!last && now - told_ < std::chrono::milliseconds(1000 / kPerS)) return;
  told_ = now;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const double rate =
      seconds > 0.1 ? static_cast<double>(bytes - std::min(bytes, began_bytes_)) / seconds : 0;
  if (form_ == Form::kJson)
    return line({{"event", "progress"},
                 {"file", file},
                 {"bytes", bytes},
                 {"totalBytes", total},
                 {"bytesPerS", rate}});
  if (!on_terminal_) return;  // a log wants no hundred lines
  const double share =
      total > 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(total) : 0;
  const std::string left =
      rate > 0 && total > bytes
          ? ", " + service::duration_text(static_cast<double>(total - bytes) / rate) + " left"
          : "";
  fmt::print(stderr, "\r\x1b[K{:3.0f} %  {} of {}, {}/s{}", share,
             shown(static_cast<double>(bytes)), shown(static_cast<double>(total)), shown(rate),
             left);
  std::fflush(stderr);
  line_is_open_ = true;
}

void Report::done(const std::string& path, bool was_here) {
  if (form_ == Form::kJson) return line({{"event", "done"}, {"path", path}, {"wasHere", was_here}});
  end_progress_line();
  if (was_here) fmt::print(stderr, "is here already:\n");
  fmt::print("{}\n", path);
  std::fflush(stdout);
}

int Report::failed(const Error& error) {
  if (form_ == Form::kJson)
    line({{"event", "failed"}, {"reason", error.what}, {"remedy", error.remedy}});
  end_progress_line();
  fmt::print(stderr, "efimd-get: {}\n", service::printable(error.message()));
  return 1;
}

}  // namespace efimd::get
