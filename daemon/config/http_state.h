#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "daemon/config/config.h"
#include "daemon/config/paths.h"

namespace efimd::service {

/// What efimd-http last noted of its serving clients by HTTP, and whether it runs now. It writes the
/// note while it holds http.lock; any process reads it.
struct HttpState {
  bool runs = false;        ///< not one that has told its trouble and ends
  std::optional<int> port;  ///< on which it listens; unset: it starts, or does not run
  std::string trouble;      ///< why it does not run; empty: unknown, or it was ended
};

HttpState http_state(const Paths& paths);

/// "listening on 127.0.0.1:8012"; "not running: port 8012 cannot be used: ...".
std::string http_text(const HttpState& state, const HttpConfig& config);

/// Notes the port on which it listens, or why it cannot; nullopt: it has only begun. What cannot be
/// written is not known to others, and no reason not to serve.
void note_http(const Paths& paths, const std::optional<Result<int>>& listens);

}  // namespace efimd::service
