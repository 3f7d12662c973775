#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/backend/cpu/worker_pool.h"
#include "engine/model/model.h"

namespace efimd::bench {

/// GB/s of some rounds.
struct Rate {
  double median;
  double best;  ///< others on the machine only lower it
};

/// The bound of a step of one token: loops that only read memory of the model's size, with the same
/// threads and the same ends of loops. Run it in turn with steps: the level of a shared machine
/// moves within seconds.
class StepFloor {
 public:
  StepFloor(const engine::Model& model, int threads);
  ~StepFloor();
  /// Reads it all, as one step does.
  void read();
  std::size_t bytes() const { return bytes_; }

 private:
  class Memory;
  std::vector<std::size_t> loops_;  ///< bytes of each loop of a step
  std::size_t bytes_ = 0;
  std::unique_ptr<Memory> memory_;
  engine::cpu::WorkerPool pool_;
};

/// Prints the table of bandwidth by threads, page size and how threads share memory; or that the
/// probe itself is too slow here for its numbers to mean anything.
void print_bandwidth();

}  // namespace efimd::bench
