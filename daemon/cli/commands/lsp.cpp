#include <unistd.h>

#include <cstdio>

#include "daemon/cli/commands/commands.h"
#include "daemon/client/bridge.h"
#include "daemon/client/client.h"
#include "daemon/client/end_watch.h"
#include "daemon/config/build.h"

namespace efimd::service {

int run_lsp(const Paths& paths) {
  const auto plan = SpawnPlan::this_program(paths);
  if (!plan) return failed(plan.error());
  if (::isatty(STDIN_FILENO) == 1)
    std::fputs("efimd: efimd lsp is for editors: it waits for LSP on stdin; Ctrl-C ends it\n",
               stderr);
  BridgeEnds ends;
  ends.build = this_build();
  ends.editor_in = STDIN_FILENO;
  ends.editor_out = STDOUT_FILENO;
  ends.connect = [&](Deadline deadline) { return connect_or_spawn(paths, *plan, deadline); };
  ends.log = [](const std::string& line) { std::fprintf(stderr, "efimd: %s\n", line.c_str()); };
  EndWatch watch({.editor_in = STDIN_FILENO, .end = [] { ::_exit(0); }});
  ends.editor_is = [&watch](long process) { watch.watch_editor(process); };
  return Bridge(std::move(ends)).run();
}

}  // namespace efimd::service
