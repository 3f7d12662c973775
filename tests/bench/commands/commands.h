#pragma once

#include "base/error.h"
#include "daemon/config/paths.h"
#include "tests/bench/options.h"

namespace efimd::bench {

// The commands of efimd-bench. Each prints what it measured on stdout and returns the process's exit
// code: 0, or 1 with a reason on stderr. All run in this process; a daemon is neither needed nor asked.

int run_replay(const service::Paths& paths, const CommandLine& options);
int run_rounds(const service::Paths& paths, const CommandLine& options);
int run_type(const service::Paths& paths, const CommandLine& options);
int run_places(const service::Paths& paths, const CommandLine& options);
int run_heads(const service::Paths& paths, const CommandLine& options);
int run_opening(const service::Paths& paths, const CommandLine& options);
int run_fill(const service::Paths& paths, const CommandLine& options);
int run_store(const service::Paths& paths, const CommandLine& options);
int run_returns(const CommandLine& options);
int run_parsing(const CommandLine& options);
int run_healing(const CommandLine& options);
// These throw std::exception where a model cannot be read or evaluated.
int run_memory();
int run_operations(const CommandLine& options);
int run_steps(const CommandLine& options);
int run_forms(const CommandLine& options);
int run_speed(const CommandLine& options);
int run_warming(const CommandLine& options);
int run_tokenizer(const CommandLine& options);
int run_write(const CommandLine& options);

/// "efimd-bench: message" on stderr; 1.
int failed(const Error& error);

}  // namespace efimd::bench
