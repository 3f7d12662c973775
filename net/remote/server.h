#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "daemon/config/local_socket.h"
#include "net/remote/health.h"
#include "net/remote/stream.h"
#include "net/remote/transfer.h"

namespace efimd::remote {

/// Takes the daemon's requests from a local socket to the server elsewhere, and its text back.
///
/// A connection has one request, a line of JSON, and then lines of JSON as answer. Closing it
/// cancels the request.
///
///   {"ask": {"prompt" | "tokens", "maxTokens", …, "firstTextMs", "allMs"}}
///       {"text": …, "chances": […]} as it comes, then
///       {"done": {"promptTokens", "cachedTokens", "cut"}}
///   {"look": {"text": …}}   {"look": {"model": …, "tokens": … | null}}: the model's name, and the
///       text as the server's vocabulary has it, if the server tells
///   Instead of these at any time: {"error": …}
///
/// A server that was started again may have another model, with other tokens. So behind the first text
/// of a new connection it is asked for its model, at most each kCheckPause. If that is another one,
/// requests are refused until the next look.
///
/// Thread: one. Limits: kClientsMax, kRequestBytesMax, kQueuedBytesMax to a client that does not
/// read.
class Server {
 public:
  static constexpr std::size_t kClientsMax = 16;
  static constexpr std::size_t kRequestBytesMax = std::size_t{16} << 20;
  static constexpr std::size_t kQueuedBytesMax = std::size_t{8} << 20;
  static constexpr auto kLookMax = std::chrono::milliseconds(2'000);
  static constexpr auto kCheckPause = std::chrono::milliseconds(5'000);

  struct Settings {
    std::string url, model, key;
    /// The daemon's lock: while it is free, nobody is left to serve. Empty: it is not looked at.
    std::filesystem::path daemon_lock;
    std::chrono::milliseconds alone_max{30'000};
    int slot = -1;               ///< of a llama-server, to which all requests go; -1: it chooses
    std::function<bool()> ends;  ///< asked a few times a second: whether to end
  };
  Server(Settings settings, service::UniqueFd listener);
  ~Server();

  /// Until `ends` says so, or some time after the last client if the daemon has ended.
  void run();

 private:
  struct Client;
  using Clients = std::list<std::unique_ptr<Client>>;

  void accept_clients();
  /// False: the client is gone.
  bool read(Client& client);
  bool write(Client& client);
  void take_request(Client& client);
  void ask(Client& client);
  void look(Client& client);
  void take_text(Client& client, const std::vector<Piece>& pieces);
  void ended(Client& client, long status, const std::string& why, const std::string& body);
  void give_up(Client& client, const std::string& why);
  void say(Client& client, const std::string& line);
  void end_late();
  void look_at_closed();
  void check_model();

  Settings settings_;
  service::UniqueFd listener_;
  Connections connections_;
  Health health_;
  std::unique_ptr<Transfer> probe_;
  bool probe_ended_ = false;
  std::string model_;  ///< the server's first one, at the last look
  bool model_changed_ = false;
  bool has_connected_ = false;  ///< the text of a new connection came in this turn
  std::unique_ptr<Transfer> check_;
  bool check_ended_ = false;
  Health::Clock::time_point check_at_;
  Clients clients_;
  bool with_chances_ = true;  ///< until a server refuses them
};

}  // namespace efimd::remote
