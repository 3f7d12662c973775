#include "report.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ostream>

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result + '"';
}

/// JSON knows no infinity.
std::string number(double value) { return std::isfinite(value) ? std::to_string(value) : "null"; }

const char* word_of(Target::Bound bound) {
  return bound == Target::Bound::kAtLeast ? "at least" : "at most";
}

/// Each on a line of its own.
template <class Items, class Print>
void list(std::ostream& out, const char* name, const Items& items, const Print& print) {
  out << ",\n" << quoted(name) << ": [";
  const char* between = "\n  ";
  for (const auto& item : items) {
    out << between;
    print(item);
    between = ",\n  ";
  }
  out << "]";
}

}  // namespace

void Report::line(const std::string& what, double ms, double rate, const char* unit, Share share) {
  lines_.push_back({what, ms, rate, unit, share});
  std::printf("%-56s %10.4f ms %12.1f %-9s", what.c_str(), ms, rate, unit);
  if (share.of != nullptr) std::printf(" %5.1f %% of %s", 100 * share.value, share.of);
  std::printf("\n");
  std::fflush(stdout);
  write();
}

void Report::target(Target target) {
  targets_.push_back(std::move(target));
  write();
}

void Report::failure(const std::string& what) {
  failures_.push_back(what);
  std::printf("FAILED   %s\n", what.c_str());
  std::fflush(stdout);
  write();
}

void Report::print_targets() const {
  if (!targets_.empty()) std::printf("\ntargets\n");
  for (const Target& target : targets_) {
    const char* state = !target.value ? "unknown" : target.reached() ? "reached" : "MISSED";
    std::printf("%-8s %-60s", state, target.what.c_str());
    if (target.value) std::printf(" %6.2f,", *target.value);
    std::printf(" wanted %s %.2f\n", word_of(target.bound), target.wanted);
  }
}

void Report::write() const {
  const std::string part = path_ + ".part";
  {
    std::ofstream out(part);
    out << "{\"device\": " << quoted(device_);
    list(out, "lines", lines_, [&](const Line& line) {
      out << "{\"what\": " << quoted(line.what) << ", \"ms\": " << number(line.ms)
          << ", \"rate\": " << number(line.rate) << ", \"unit\": " << quoted(line.unit);
      if (line.share.of != nullptr)
        out << ", \"share\": " << number(line.share.value) << ", \"of\": " << quoted(line.share.of);
      out << "}";
    });
    list(out, "targets", targets_, [&](const Target& target) {
      out << "{\"what\": " << quoted(target.what)
          << ", \"value\": " << (target.value ? number(*target.value) : "null")
          << ", \"bound\": " << quoted(word_of(target.bound))
          << ", \"wanted\": " << number(target.wanted)
          << ", \"reached\": " << (target.reached() ? "true" : "false") << "}";
    });
    list(out, "failures", failures_, [&](const std::string& what) { out << quoted(what); });
    out << "}\n";
  }
  std::error_code error;
  std::filesystem::rename(part, path_, error);
  if (error) std::fprintf(stderr, "gpu bench: %s: %s\n", path_.c_str(), error.message().c_str());
}
