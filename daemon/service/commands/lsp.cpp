#include <unistd.h>

#include <cstdio>

#include "daemon/service/bridge.h"
#include "daemon/service/build.h"
#include "daemon/service/client.h"
#include "daemon/service/commands/commands.h"

namespace efimd::service {

int run_lsp(const Paths& paths) {
  const auto plan = SpawnPlan::this_program(paths);
  if (!plan) return failed(plan.error());
  BridgeEnds ends;
  ends.build = this_build();
  ends.editor_in = STDIN_FILENO;
  ends.editor_out = STDOUT_FILENO;
  ends.connect = [&](Deadline deadline) { return connect_or_spawn(paths, *plan, deadline); };
  ends.log = [](const std::string& line) { std::fprintf(stderr, "efimd: %s\n", line.c_str()); };
  return Bridge(std::move(ends)).run();
}

}  // namespace efimd::service
