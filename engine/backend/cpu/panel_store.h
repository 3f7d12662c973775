#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/weights_form.h"

namespace efimd::engine::cpu {

/// Most bytes of panels that are made with so much memory; nothing: it is not known.
std::size_t panels_bytes_max(WeightsForm form, std::optional<std::size_t> available_bytes);

/// A model's matrices as panels (panels.h) in private memory, made beside serving.
///
/// A thread that runs only if a core is idle writes them matrix by matrix, and pauses while a step
/// of some tokens is evaluated. adopt() hands over those that are done. Panels give the same bits, so it does not matter at which step that happens. The
/// file's pages of a matrix are given back as soon as it has panels.
///
/// Thread: all by the engine's; the thread of its own reads the matrices and writes panels.  Owns: the
/// memory of panels, and that thread; the destructor stops it within a panel's time.  Fails: without
/// memory or a thread nothing happens, and `told` says so.
class PanelStore {
 public:
  /// Called with bytes of the file that are no longer needed in memory.
  using GiveBack = std::function<void(std::span<const std::byte>)>;

  struct Options {
    WeightsForm form = WeightsForm::kMapped;
    std::optional<std::size_t> available_bytes = {};  ///< of memory; nothing: unknown
    WeightsTold told = {};                            ///< may be empty
    GiveBack give_back = {};                          ///< empty: nothing is given back
    bool at_once = false;                             ///< start() makes them itself
    /// Less than this is made without pauses, before the first key comes.
    std::size_t pausing_bytes = std::size_t{64} << 20U;
  };

  PanelStore() = default;
  ~PanelStore();
  PanelStore(const PanelStore&) = delete;
  PanelStore& operator=(const PanelStore&) = delete;

  /// Begins to make panels of `matrices`, if the options and the memory allow it, or makes them.
  /// The matrices outlive this.
  void start(std::vector<Weights*> matrices, Options options);
  /// Sets Weights::panels of matrices that were finished; between steps.
  void adopt();
  /// A part of a step begins: the thread waits until none has begun for a while, 20 ms at most.
  void note_work();

 private:
  using Clock = std::chrono::steady_clock;

  struct Part {
    Weights* matrix;
    unsigned char* panels;
  };

  /// The reason for no panels of so many bytes; empty: they are made.
  std::string refusal(std::size_t bytes) const;
  bool reserve(std::size_t bytes);
  void tell(std::string text) const;
  void convert();
  bool convert(const Part& part) const;
  void wait_for_work() const;

  Options options_;
  std::vector<Part> parts_;
  unsigned char* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::atomic<std::size_t> finished_{0};     ///< of parts_
  std::size_t adopted_ = 0;                  ///< the engine thread's
  std::atomic<Clock::time_point> worked_{};  ///< when the last part of a step began
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace efimd::engine::cpu
