#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/config/local_socket.h"
#include "daemon/server/daemon.h"
#include "lsp/framing.h"
#include "tests/support/scripted_engine.h"
#include "tests/support/temp_dir.h"

namespace efimd::test {

using Json = nlohmann::json;

/// Lines of a log that a test can wait for.
class LogLines {
 public:
  LogLines();
  std::shared_ptr<spdlog::logger> logger() const { return logger_; }
  /// Fails the test when no line holds `text` within kPatience.
  void wait_for(const std::string& text) const;
  bool holds(const std::string& text) const;
  std::ptrdiff_t count(const std::string& text) const;  ///< lines that hold it

 private:
  class Sink;
  std::shared_ptr<Sink> sink_;
  std::shared_ptr<spdlog::logger> logger_;
};

/// After this long a wait has failed; it decides no passing test.
inline constexpr auto kPatience = std::chrono::seconds(120);

/// A daemon with a scripted engine, running in a thread of its own in a folder of its own.
class RunningDaemon {
 public:
  using Change = std::function<void(service::Daemon::Settings&)>;
  enum class Model { kLoads, kHeld };  ///< kHeld: until the test opens `loading`
  /// `begin` runs first in the daemon's thread.
  explicit RunningDaemon(const Change& change = {}, Model model = Model::kLoads,
                         const std::function<void()>& begin = {});
  /// Opens the gates and stops it.
  ~RunningDaemon();

  std::filesystem::path socket() const { return folder_ / "s"; }
  std::filesystem::path lock() const { return folder_ / "l"; }
  /// Waits until run() has returned and everything is destroyed.
  void join();
  void stop() { daemon_->stop(); }

  std::shared_ptr<EngineScript> script = std::make_shared<EngineScript>();
  Gate loading;
  LogLines log;

 private:
  TempDir folder_;
  std::unique_ptr<service::Daemon> daemon_;
  std::thread thread_;
};

/// An editor behind a real socket.  Waits fail the test after kPatience.
class SocketEditor {
 public:
  explicit SocketEditor(const std::filesystem::path& socket);
  explicit SocketEditor(service::UniqueFd connected);

  void send_bytes(std::string_view bytes);
  void send(const Json& message);
  void request(const Json& id, const std::string& method, const Json& params = Json::object());
  void notify(const std::string& method, const Json& params);
  void initialize(Json capabilities = Json::object());
  void open(const std::string& uri, const std::string& text);
  void complete(const Json& id, const std::string& uri, int line, int character);

  /// Reads until the answer to `id` is there; other messages are kept.
  Json answer(const Json& id);
  /// Reads until a message of this method is there: its params.
  Json next(const std::string& method);
  /// The first item's text of the answer to `id`; "" when it is empty.
  std::string suggestion(const Json& id);
  /// Reads until the daemon closes the connection.
  void wait_for_end();
  void hang_up() { socket_.reset(); }

 private:
  Json take(const std::function<bool(const Json&)>& wanted);
  /// False at the end of the stream.
  bool read();

  service::UniqueFd socket_;
  lsp::FrameReader reader_;
  std::vector<Json> messages_;
};

/// Everything that an editor sends for one suggestion at the end of `text`, as bytes.
std::string whole_conversation(const std::string& uri, const std::string& text);

}  // namespace efimd::test
