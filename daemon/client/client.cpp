#include "daemon/client/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <thread>

#include "daemon/client/spawn.h"

extern char** environ;

namespace efimd::service {

namespace fs = std::filesystem;
using lsp::Json;

namespace {

/// Between attempts while another process's daemon is coming up or going down.
constexpr auto kConnectRetry = std::chrono::milliseconds(5);

/// `value` of EFIMD_MODEL: made absolute if it names a file, not if it is a model's name.
std::string absolute_if_path(const std::string& value) {
  std::error_code error;
  if (value.find('/') == std::string::npos && !fs::exists(value, error)) return value;
  if (value.starts_with("~")) return value;
  const fs::path path = fs::absolute(value, error);
  return error ? value : path.string();
}

/// What a daemon reads from its environment: its own keys, folders, the language, drivers' settings
/// (some systems have their drivers in LD_LIBRARY_PATH), and for the engine elsewhere the ways out.
/// All else is the editor's own, which may hold its user's tokens.
constexpr std::string_view kKept =
    " HOME USER LOGNAME PATH LANG LANGUAGE TZ TMPDIR LD_LIBRARY_PATH DRI_PRIME"
    " LLAMA_CACHE OLLAMA_MODELS HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE"
    " http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY"
    " SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE"
    " ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS LSAN_OPTIONS ";
constexpr auto kKeptFamilies = std::to_array<std::string_view>(
    {"EFIMD_", "XDG_", "LC_", "CUDA_", "NVIDIA_", "__NV_", "VK_", "MESA_", "RADV_", "AMD_"});

bool is_kept(std::string_view name) {
  return kKept.find(" " + std::string(name) + " ") != kKept.npos ||
         std::ranges::any_of(kKeptFamilies, [&](auto each) { return name.starts_with(each); });
}

std::vector<std::string> daemon_environment(const Paths& paths) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos && is_kept(text.substr(0, equals)))
      variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  variables["EFIMD_RUNTIME_DIR"] = paths.runtime_dir.string();
  variables["EFIMD_CONFIG"] = paths.config_file.string();
  variables["EFIMD_CACHE_DIR"] = paths.cache_dir.string();
  variables["EFIMD_STATE_DIR"] = paths.state_dir.string();
  if (const auto model = variables.find("EFIMD_MODEL"); model != variables.end())
    model->second = absolute_if_path(model->second);
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.emplace_back(name).append("=").append(value);
  return entries;
}

/// Waits for `events` on `fd`; false past the deadline.
bool wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{fd, events, 0};
    const int ready =
        ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

tl::unexpected<Error> too_late() {
  return fail(Fault::kNotReady, "the daemon did not answer in time", "end it with 'efimd stop'");
}

}  // namespace

Result<SpawnPlan> SpawnPlan::this_program(const Paths& paths) {
  const auto self = own_executable();
  if (!self) return tl::unexpected(self.error());
  return SpawnPlan{{self->string()}, daemon_environment(paths), paths.log_file()}.serving();
}

Result<SpawnPlan> SpawnPlan::beside(const Paths& paths, std::string_view name) {
  const auto self = own_executable();
  if (!self) return tl::unexpected(self.error());
  const std::filesystem::path program = self->parent_path() / name;
  if (::access(program.c_str(), X_OK) != 0)
    return fail(Fault::kNotFound, program.string() + ": not there",
                "install efimd and efimd-http into one folder");
  return SpawnPlan{{program.string()}, daemon_environment(paths), paths.log_file()};
}

SpawnPlan& SpawnPlan::serving() {
  command.insert(command.end(), {"serve", "--background"});
  return *this;
}

Result<UniqueFd> connect_to_daemon(const Paths& paths) {
  auto socket = connect_to(paths.socket());
  if (socket && !peer_is_this_user(socket->get()))
    return fail(Fault::kBadInput, paths.socket().string() + ": another user's process listens here",
                "set EFIMD_RUNTIME_DIR to a folder of your own");
  return socket;
}

Result<UniqueFd> connect_or_spawn(const Paths& paths, const SpawnPlan& plan, Deadline deadline) {
  if (auto folder = ensure_private_directory(paths.runtime_dir); !folder)
    return tl::unexpected(folder.error());
  auto socket = connect_to_daemon(paths);
  if (socket || socket.error().fault != Fault::kNotFound) return socket;
  const auto turn = LockFile::lock(paths.spawn_lock(), deadline);
  if (!turn) return tl::unexpected(turn.error());
  for (;;) {
    socket = connect_to_daemon(paths);
    if (socket || socket.error().fault != Fault::kNotFound) return socket;
    const auto spawned = spawn_daemon(plan, deadline);
    socket = connect_to_daemon(paths);
    if (socket || socket.error().fault != Fault::kNotFound) return socket;
    // A daemon that someone started by hand may hold the lock and listen in a moment; one that said
    // why it cannot start is believed.
    if (!spawned) return tl::unexpected(spawned.error());
    if (std::chrono::steady_clock::now() >= deadline) return too_late();
    std::this_thread::sleep_for(kConnectRetry);
  }
}

Result<Json> RpcClient::request(std::string_view method, Json params, Deadline deadline) {
  const lsp::Id id = ++last_id_;
  if (auto sent = send(lsp::request_body(id, method, std::move(params)), deadline); !sent)
    return tl::unexpected(sent.error());
  for (;;) {
    auto message = receive(deadline);
    if (!message) return tl::unexpected(message.error());
    if (message->kind == lsp::Message::Kind::kResponse && message->id == id) {
      if (!message->error) return std::move(message->result);
      const bool unknown =
          message->error->code == static_cast<int>(lsp::ErrorCode::kMethodNotFound);
      if (!unknown) return fail(Fault::kBadInput, message->error->message);
      return fail(Fault::kUnsupported, std::string(method) + ": " + message->error->message);
    }
    if (auto taken = take_aside(*message, deadline); !taken) return tl::unexpected(taken.error());
  }
}

Result<void> RpcClient::notify(std::string_view method, Json params, Deadline deadline) {
  return send(lsp::notification_body(method, std::move(params)), deadline);
}

Result<void> RpcClient::listen(const std::function<bool()>& enough, Deadline deadline) {
  while (!enough()) {
    const auto message = receive(deadline);
    if (!message) return tl::unexpected(message.error());
    if (auto taken = take_aside(*message, deadline); !taken) return taken;
  }
  return {};
}

Result<void> RpcClient::take_aside(const lsp::Message& message, Deadline deadline) {
  if (message.kind == lsp::Message::Kind::kRequest)
    return send(lsp::response_body(message.id, nullptr), deadline);
  if (message.kind == lsp::Message::Kind::kNotification && on_notification)
    on_notification(message.method, message.params);
  return {};
}

Result<void> RpcClient::send(std::string_view body, Deadline deadline) {
  const std::string frame = lsp::framed(body);
  std::string_view rest = frame;
  while (!rest.empty()) {
    const ssize_t size = ::send(socket_.get(), rest.data(), rest.size(), MSG_DONTWAIT);
    if (size >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(size));
    } else if (errno == EAGAIN) {
      if (!wait_for(socket_.get(), POLLOUT, deadline)) return too_late();
    } else if (errno != EINTR) {
      return fail(Fault::kIo, std::string("the daemon ended: ") + std::strerror(errno),
                  "try again");
    }
  }
  return {};
}

Result<lsp::Message> RpcClient::receive(Deadline deadline) {
  for (;;) {
    auto body = frames_.next();
    if (!body) return tl::unexpected(body.error());
    if (*body) {
      auto message = lsp::parse_message(**body);
      if (!message) return tl::unexpected(message.error().error);
      return std::move(*message);
    }
    if (!wait_for(socket_.get(), POLLIN, deadline)) return too_late();
    std::array<char, 16384> bytes{};
    const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size > 0)
      frames_.feed({bytes.data(), static_cast<std::size_t>(size)});
    else if (size == 0 || (errno != EAGAIN && errno != EINTR))
      return fail(Fault::kIo, "the daemon closed the connection", "try again");
  }
}

}  // namespace efimd::service
