#include "daemon/config/http_state.h"

#include <charconv>
#include <string_view>
#include <system_error>

#include "base/small_file.h"
#include "daemon/config/local_socket.h"

// The note is a line: "port 8012", or "trouble " and the reason.

namespace efimd::service {

namespace {

constexpr std::size_t kNoteBytesMax = 4096;
constexpr std::string_view kPort = "port ", kTrouble = "trouble ";

}  // namespace

HttpState http_state(const Paths& paths) {
  HttpState state;
  const std::string note = read_small_file(paths.http_state(), kNoteBytesMax);
  const std::string_view line = std::string_view(note).substr(0, note.find('\n'));
  if (line.starts_with(kTrouble)) state.trouble = line.substr(kTrouble.size());
  state.runs = state.trouble.empty() && LockFile::is_held(paths.http_lock());
  int port = 0;
  if (state.runs && line.starts_with(kPort) &&
      std::from_chars(line.data() + kPort.size(), line.data() + line.size(), port).ec ==
          std::errc())
    state.port = port;
  return state;
}

std::string http_text(const HttpState& state, const HttpConfig& config) {
  if (state.port) return "listening on 127.0.0.1:" + std::to_string(*state.port);
  if (state.runs) return "starting";
  if (!config.enable) return "not running (http.enable = false)";
  if (!state.trouble.empty()) return "not running: " + state.trouble;
  return "not running; it starts with the daemon, or by 'efimd http --background'";
}

void note_http(const Paths& paths, const std::optional<Result<int>>& listens) {
  std::string note;
  if (listens && *listens)
    note = std::string(kPort) + std::to_string(**listens);
  else if (listens)
    note = std::string(kTrouble) + listens->error().message();
  static_cast<void>(replace_small_file(paths.http_state(), note + "\n"));
}

}  // namespace efimd::service
