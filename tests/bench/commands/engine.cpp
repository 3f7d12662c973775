// What the engine's parts cost, and models to measure: one function for each command.
#include <cstdio>
#include <string>

#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/worker_pool.h"
#include "tests/bench/commands/commands.h"
#include "tests/bench/completion/warming.h"
#include "tests/bench/engine/bandwidth.h"
#include "tests/bench/engine/bench_model.h"
#include "tests/bench/engine/tables.h"
#include "tests/bench/engine/tokenizer.h"

namespace efimd::bench {

using engine::cpu::physical_cores;

namespace {

Form form_of(const CommandLine& options) {
  return {physical_cores(),
          options.mapped ? engine::WeightsForm::kMapped : engine::WeightsForm::kPanels,
          options.behind};
}

}  // namespace

int run_memory() {
  std::printf("%s, %d cores\n\n", engine::cpu::processor_name().c_str(), physical_cores());
  print_bandwidth();
  return 0;
}

int run_operations(const CommandLine& options) {
  print_operations(options.types, physical_cores());
  return 0;
}

int run_steps(const CommandLine& options) {
  print_steps(options.files, form_of(options));
  return 0;
}

int run_forms(const CommandLine& options) {
  print_forms(options.files.front(), physical_cores());
  return 0;
}

int run_speed(const CommandLine& options) {
  const Speed speed = measure_speed(options.files.front(), form_of(options));
  std::printf("%.1f %.1f\n", speed.prompt, speed.generation);
  std::fprintf(stderr, "weights: %s, after %.2f s\n", speed.weights.c_str(), speed.made_s);
  return 0;
}

int run_warming(const CommandLine& options) {
  print_warming(options.files.front(), physical_cores());
  return 0;
}

int run_tokenizer(const CommandLine& options) {
  const auto printed = print_tokenizing(options.files, options.vocabularies);
  return printed ? 0 : failed(printed.error());
}

int run_write(const CommandLine& options) {
  write_bench_model(options.type, options.files.front());
  return 0;
}

int run_healing(const CommandLine& options) {
  HealingSetup setup = options.healing;
  setup.sources = options.files;
  const int broken = measure_healing(setup);
  return broken == 0 ? 0
                     : failed({Fault::kBadInput,
                               "typed bytes changed " + std::to_string(broken) + " times", ""});
}

}  // namespace efimd::bench
