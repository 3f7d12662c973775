#include "net/remote/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::remote;
using service::UniqueFd;

namespace {

/// False once the other end is closed.
bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 64 * 1024> bytes;
  for (ssize_t got; (got = ::recv(fd, bytes.data(), bytes.size(), 0)) > 0;)
    text.append(bytes.data(), static_cast<std::size_t>(got));
  return text;
}

/// A server elsewhere, which takes one request after the other.
class Elsewhere {
 public:
  Elsewhere() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener_.get(), any, size) == 0);
    REQUIRE(::listen(listener_.get(), 4) == 0);
    REQUIRE(::getsockname(listener_.get(), any, &size) == 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  const std::string& url() const { return url_; }

  /// The next connection, with the head of a stream on it.
  UniqueFd streaming() const {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::string head;
    std::array<char, 4096> bytes;
    while (head.find("\r\n\r\n") == head.npos) {
      const ssize_t got = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
      REQUIRE(got > 0);
      head.append(bytes.data(), static_cast<std::size_t>(got));
    }
    REQUIRE(send_all(fd.get(),
                     "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                     "Connection: close\r\n\r\n"));
    return fd;
  }

 private:
  UniqueFd listener_;
  std::string url_;
};

/// A Server that runs until its end.
class Running {
 public:
  explicit Running(const std::string& url) {
    auto listener = service::listen_at(socket());
    REQUIRE(listener);
    thread_ = std::thread([this, url, fd = listener->release()] {
      Server::Settings settings;
      settings.url = url;
      settings.ends = [this] { return ends_.load(); };
      Server(std::move(settings), UniqueFd(fd)).run();
    });
  }
  ~Running() {
    ends_ = true;
    thread_.join();
  }
  /// A client that has asked.
  UniqueFd ask() const {
    auto client = service::connect_to(socket());
    REQUIRE(client);
    REQUIRE(send_all(client->get(), R"({"ask":{"prompt":"x","firstTextMs":100000,"allMs":100000}})"
                                    "\n"));
    return std::move(*client);
  }

 private:
  std::filesystem::path socket() const { return folder_ / "remote.sock"; }

  test::TempDir folder_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

std::string event(const std::string& text) {
  return "data: " + nlohmann::json{{"choices", {{{"text", text}}}}}.dump() + "\n\n";
}

}  // namespace

TEST_CASE("a client that does not read gets whole lines up to the limit, and others are served") {
  Elsewhere elsewhere;
  Running server(elsewhere.url());
  const UniqueFd deaf = server.ask();
  {
    const UniqueFd stream = elsewhere.streaming();
    // As JSON these bytes become six times as many: the text's own limit is farther away.
    const std::string much = event(std::string(64 * 1024, '\1'));
    while (send_all(stream.get(), much)) {
    }
  }
  const std::string got = read_to_end(deaf.get());
  CHECK(got.size() > Server::kQueuedBytesMax / 2);
  CHECK(got.size() < Server::kQueuedBytesMax * 3 / 2);
  REQUIRE(got.ends_with("\n"));
  const auto last = nlohmann::json::parse(got.substr(got.rfind('\n', got.size() - 2) + 1));
  CHECK(last.contains("text"));

  const UniqueFd other = server.ask();
  {
    const UniqueFd stream = elsewhere.streaming();
    REQUIRE(send_all(stream.get(), event("a") + "data: [DONE]\n\n"));
  }
  CHECK(read_to_end(other.get()).find("\"done\"") != std::string::npos);
}
