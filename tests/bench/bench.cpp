// The measurements of scripts/bench, one a command; tables in Markdown.
//   efimd_bench [mapped] memory | operations [TYPE...] | steps MODEL... | forms MODEL |
//   speed MODEL | write TYPE MODEL
// Weights are panels where they have them; behind "mapped" they stay in the file.
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/worker_pool.h"
#include "tests/bench/bandwidth.h"
#include "tests/bench/bench_model.h"
#include "tests/bench/tables.h"

namespace {

using namespace efimd;

int run(std::string command, std::vector<std::string> operands) {
  auto weights = engine::WeightsForm::kPanels;
  if (command == "mapped" && !operands.empty()) {
    weights = engine::WeightsForm::kMapped;
    command = operands.front();
    operands.erase(operands.begin());
  }
  const int threads = engine::cpu::physical_cores();
  if (command == "memory" && operands.empty()) {
    std::printf("%s, %d cores\n\n", engine::cpu::processor_name().c_str(), threads);
    bench::print_bandwidth();
  } else if (command == "operations") {
    bench::print_operations(operands, threads);
  } else if (command == "steps" && !operands.empty()) {
    bench::print_steps({operands.begin(), operands.end()}, {threads, weights});
  } else if (command == "forms" && operands.size() == 1) {
    bench::print_forms(operands[0], threads);
  } else if (command == "speed" && operands.size() == 1) {
    const bench::Speed speed = bench::measure_speed(operands[0], {threads, weights});
    std::printf("%.1f %.1f\n", speed.prompt, speed.generation);
    std::fprintf(stderr, "weights: %s, after %.2f s\n", speed.weights.c_str(), speed.made_s);
  } else if (command == "write" && operands.size() == 2) {
    bench::write_bench_model(operands[0], operands[1]);
  } else {
    std::fprintf(stderr,
                 "usage: efimd_bench [mapped] memory | operations [TYPE...] | steps MODEL... | "
                 "forms MODEL | speed MODEL | write TYPE MODEL\n");
    return 2;
  }
  return 0;
}

}  // namespace

int main(int count, char** values) {
  try {
    return run(count > 1 ? values[1] : "", {values + std::min(count, 2), values + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "efimd_bench: %s\n", error.what());
    return 1;
  }
}
