#include "engine/backend/cpu/panel_store.h"

#include <algorithm>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "base/huge_pages.h"
#include "engine/backend/cpu/kernels/panels.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace efimd::engine::cpu {

namespace {

/// Parts of a step of few tokens begin more often than this.
constexpr std::chrono::milliseconds kGap{1};
/// Nobody waits longer for a step: an engine that never rests gets panels, too.
constexpr std::chrono::milliseconds kPatience{20};

std::string size_text(std::size_t bytes) {
  return std::to_string((bytes + 999'999) / 1'000'000) + " MB";
}

std::size_t bytes_of(const Weights& matrix) {
  return static_cast<std::size_t>(panel_count(matrix)) * panel_bytes(matrix);
}

/// Runs this thread when nobody else wants the core. A refusal only costs others some speed.
void run_when_idle() {
#if defined(__linux__)
  const sched_param none{};
  static_cast<void>(::sched_setscheduler(0, SCHED_IDLE, &none));
#endif
}

}  // namespace

std::size_t panels_bytes_max(WeightsForm form, std::optional<std::size_t> available_bytes) {
  switch (form) {
    case WeightsForm::kMapped:
      return 0;
    case WeightsForm::kPanels:
      return available_bytes.value_or(std::numeric_limits<std::size_t>::max());
    case WeightsForm::kAuto:
      return available_bytes.value_or(0) / 2;
  }
  return 0;
}

PanelStore::~PanelStore() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
  if (memory_ != nullptr) deallocate_for_random_access(memory_, bytes_);
}

void PanelStore::tell(std::string text) const {
  if (options_.told) options_.told(std::move(text));
}

std::string PanelStore::refusal(std::size_t bytes) const {
  if (options_.form == WeightsForm::kMapped) return "device.weights";
  if (bytes == 0) return "no matrix of the model has panels here";
  const bool by_itself = options_.form == WeightsForm::kAuto;
  if (bytes <= panels_bytes_max(options_.form, options_.available_bytes)) return {};
  if (!options_.available_bytes) return "the system does not say how much memory is available";
  return "panels take " + size_text(bytes) + ", and " + size_text(*options_.available_bytes) +
         " are available" + (by_itself ? "; panels may take at most half" : "");
}

bool PanelStore::reserve(std::size_t bytes) {
  // Not less than a page of its own: panels begin at a line of the cache.
  bytes_ = std::max(bytes, kHugePageBytes);
  try {
    memory_ = static_cast<unsigned char*>(allocate_for_random_access(bytes_));
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void PanelStore::start(std::vector<Weights*> matrices, Options options) {
  options_ = std::move(options);
  std::size_t bytes = 0;
  for (const Weights* matrix : matrices) bytes += bytes_of(*matrix);
  if (const std::string why = refusal(bytes); !why.empty()) return tell("mapped: " + why);
  if (!reserve(bytes))
    return tell("mapped: the system refused " + size_text(bytes) + " for panels");
  unsigned char* at = memory_;
  for (Weights* matrix : matrices) {
    if (bytes_of(*matrix) == 0) continue;
    parts_.push_back({matrix, at});
    at += bytes_of(*matrix);
  }
  if (options_.at_once) return convert();
  tell("mapped, while panels of " + size_text(bytes) + " are made");
  try {
    thread_ = std::thread([this] {
      run_when_idle();
      convert();
    });
  } catch (const std::system_error& error) {
    tell(std::string("mapped: no thread to make panels: ") + error.what());
  }
}

void PanelStore::convert() {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (!convert(part)) return;
    finished_.store(i + 1, std::memory_order_release);
    const Weights& matrix = *part.matrix;
    const auto rows = static_cast<std::size_t>(panel_count(matrix) * kPanelRows);
    if (options_.give_back)
      options_.give_back(std::as_bytes(std::span(matrix.data, rows * matrix.row_bytes)));
    bytes += bytes_of(matrix);
  }
  tell("panels of " + size_text(bytes));
}

bool PanelStore::convert(const Part& part) const {
  const std::size_t bytes = panel_bytes(*part.matrix);
  for (int panel = 0; panel < panel_count(*part.matrix); ++panel) {
    wait_for_work();
    if (stop_.load(std::memory_order_relaxed)) return false;
    write_panel(*part.matrix, panel, part.panels + static_cast<std::size_t>(panel) * bytes);
  }
  return true;
}

void PanelStore::wait_for_work() const {
  if (bytes_ < options_.pausing_bytes) return;
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point now = begin;
       now - worked_.load(std::memory_order_relaxed) < kGap && now - begin < kPatience;
       now = Clock::now())
    std::this_thread::sleep_for(kGap / 2);
}

void PanelStore::note_work() {
  if (adopted_ < parts_.size()) worked_.store(Clock::now(), std::memory_order_relaxed);
}

void PanelStore::adopt() {
  if (adopted_ == parts_.size()) return;
  for (const std::size_t ready = finished_.load(std::memory_order_acquire); adopted_ < ready;
       ++adopted_)
    parts_[adopted_].matrix->panels = parts_[adopted_].panels;
}

}  // namespace efimd::engine::cpu
