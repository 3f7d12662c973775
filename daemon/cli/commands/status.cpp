#include <fmt/format.h>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/commands/status_text.h"
#include "daemon/client/client.h"

namespace efimd::service {

int run_status(const Paths& paths, const CommandLine& line) {
  auto socket = connect_to_daemon(paths);
  if (!socket && socket.error().fault == Fault::kNotFound) return failed(none_listens(paths));
  if (!socket) return failed(socket.error());
  RpcClient client(std::move(*socket));
  const auto status =
      client.request("efim/status", nullptr, std::chrono::steady_clock::now() + kStatusAnswerMax);
  if (!status) return failed(status.error());
  if (line.json)
    fmt::print("{}\n", lsp::json_text(*status));
  else
    fmt::print("{}", line.why ? plans_text(*status) : status_text(*status));
  return 0;
}

}  // namespace efimd::service
