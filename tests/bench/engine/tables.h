#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/backend/weights_form.h"

namespace efimd::bench {

/// How the CPU device is opened.
struct Form {
  int threads;
  engine::WeightsForm weights;
  int behind;  ///< tokens in KV before a step
};

/// Prints GB/s of matrix products by type, length of rows, instruction set and tokens; of all types
/// where none is named.
void print_operations(const std::vector<std::string>& types, int threads);

/// Prints what steps of 1 .. 256 tokens after `behind` tokens of KV cost, a row for each model file.
void print_steps(const std::vector<std::filesystem::path>& models, const Form& form);

/// Prints what steps cost from mapped weights and from panels, run in turn.
void print_forms(const std::filesystem::path& model, int threads);

/// Tokens/s of a model file: a prompt of 512 tokens from nothing, and 64 greedy tokens after it.
struct Speed {
  double prompt;
  double generation;
  std::string weights;  ///< what the device said of them
  double made_s;        ///< until it said so
};
Speed measure_speed(const std::filesystem::path& model, const Form& form);

}  // namespace efimd::bench
