// A program to be started as the daemon is, by tests: fake_daemon MODE --ready-fd N
//
//   listen    listens at $EFIMD_RUNTIME_DIR, adds a line to "starts" there, answers every request with {"pid": ...}
//   complain  reports a failure
//   die       ends without a word
//   silent    neither listens nor says anything, and ends when nobody waits for it any more
//
// Ends when its last connection does, and after kLifeMax in any case.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/config/local_socket.h"
#include "lsp/framing.h"
#include "lsp/json_rpc.h"

using namespace efimd;
using namespace efimd::service;

namespace {

constexpr unsigned kLifeMaxS = 600;

struct Client {
  UniqueFd socket;
  lsp::FrameReader frames;
};

/// False when the client has gone.
bool serve(Client& client) {
  std::array<char, 4096> bytes{};
  const ssize_t size = ::read(client.socket.get(), bytes.data(), bytes.size());
  if (size <= 0) return false;
  client.frames.feed({bytes.data(), static_cast<std::size_t>(size)});
  while (auto body = client.frames.next().value_or(std::nullopt)) {
    const auto message = lsp::parse_message(*body);
    if (!message || message->kind != lsp::Message::Kind::kRequest) continue;
    const std::string answer =
        lsp::framed(lsp::response_body(message->id, {{"pid", static_cast<int>(::getpid())}}));
    if (::write(client.socket.get(), answer.data(), answer.size()) < 0) return false;
  }
  return true;
}

int listen_until_alone(const std::filesystem::path& folder, UniqueFd ready) {
  const auto lock = LockFile::try_lock(folder / "daemon.lock");
  if (!lock || !*lock) {
    report_ready(std::move(ready), fail(Fault::kNotReady, "another daemon is running"));
    return 1;
  }
  const auto listening = listen_at(folder / "daemon.sock");
  std::ofstream(folder / "starts", std::ios::app) << ::getpid() << "\n";
  report_ready(std::move(ready), {});
  std::vector<Client> clients;
  for (bool had_one = false; !had_one || !clients.empty();) {
    std::vector<pollfd> waiting = {{listening->get(), POLLIN, 0}};
    for (const Client& client : clients) waiting.push_back({client.socket.get(), POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), -1);
    for (std::size_t i = clients.size(); i > 0; --i)
      if (waiting[i].revents != 0 && !serve(clients[i - 1]))
        clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(i - 1));
    if (waiting[0].revents != 0)
      clients.push_back({UniqueFd(::accept(listening->get(), nullptr, nullptr)), {}});
    had_one |= !clients.empty();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  ::alarm(kLifeMaxS);
  if (argc != 4 || std::string(argv[2]) != "--ready-fd") return 2;
  const std::string mode = argv[1];
  UniqueFd ready(std::atoi(argv[3]));
  if (mode == "die") return 1;
  if (mode == "complain") {
    report_ready(std::move(ready), fail(Fault::kIo, "the disk is full", "make room"));
    return 1;
  }
  if (mode == "silent") {
    pollfd reader{ready.get(), 0, 0};
    ::poll(&reader, 1, -1);  // until its other end is closed
    return 0;
  }
  return listen_until_alone(std::getenv("EFIMD_RUNTIME_DIR"), std::move(ready));
}
