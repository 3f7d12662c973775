#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace efimd::get {

/// What efimd-get is asked to do; `efimd model get` hands its own options on.
struct Options {
  std::string name;
  bool json = false, dry_run = false, yes = false, use = false, no_speed = false;
};

/// The command line's grammar, which fills `options`.
void add_options(CLI::App& program, Options& options);

}  // namespace efimd::get
