#include "tests/server/daemon_fixture.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <condition_variable>
#include <mutex>

#include "tests/support/json_of.h"

namespace efimd::test {

class LogLines::Sink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  bool wait_for(const std::string& text, std::chrono::milliseconds patience) {
    std::unique_lock lock(lines_mutex_);
    return arrived_.wait_for(lock, patience, [&] { return count_of(text) > 0; });
  }
  std::ptrdiff_t count(const std::string& text) {
    const std::lock_guard lock(lines_mutex_);
    return count_of(text);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    {
      const std::lock_guard lock(lines_mutex_);
      lines_.emplace_back(message.payload.data(), message.payload.size());
    }
    arrived_.notify_all();
  }
  void flush_() override {}

 private:
  std::ptrdiff_t count_of(const std::string& text) const {
    return std::count_if(lines_.begin(), lines_.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }

  std::mutex lines_mutex_;
  std::condition_variable arrived_;
  std::vector<std::string> lines_;
};

LogLines::LogLines()
    : sink_(std::make_shared<Sink>()), logger_(std::make_shared<spdlog::logger>("test", sink_)) {
  logger_->set_level(spdlog::level::debug);
}

void LogLines::wait_for(const std::string& text) const {
  INFO("waiting for a line with: " << text);
  REQUIRE(sink_->wait_for(text, kPatience));
}

std::ptrdiff_t LogLines::count(const std::string& text) const { return sink_->count(text); }
bool LogLines::holds(const std::string& text) const { return count(text) > 0; }

RunningDaemon::RunningDaemon(const Change& change, Model model,
                             const std::function<void()>& begin) {
  if (model == Model::kHeld) loading.close();
  service::Daemon::Settings settings;
  settings.socket = socket();
  settings.lock = lock();
  settings.log = log.logger();
  settings.opened_model = std::make_shared<service::OpenedModel>();
  settings.engine = [this](const std::function<void(double)>& progress,
                           std::stop_token) -> Result<std::unique_ptr<engine::Engine>> {
    progress(0.5);
    loading.pass();
    return std::make_unique<ScriptedEngine>(script);
  };
  if (change) change(settings);
  auto daemon = service::Daemon::open(std::move(settings));
  if (!daemon) throw std::runtime_error(daemon.error().message());
  daemon_ = std::move(*daemon);
  thread_ = std::thread([this, begin] {
    if (begin) begin();
    daemon_->run();
  });
}

RunningDaemon::~RunningDaemon() {
  for (Gate* gate : {&loading, &script->hold_gate, &script->append_gate}) gate->open();
  if (daemon_) daemon_->stop();
  join();
}

void RunningDaemon::join() {
  if (thread_.joinable()) thread_.join();
  daemon_.reset();
}

SocketEditor::SocketEditor(const std::filesystem::path& socket)
    : SocketEditor([&] {
        auto connected = service::connect_to(socket);
        if (!connected) throw std::runtime_error(connected.error().message());
        return std::move(*connected);
      }()) {}

SocketEditor::SocketEditor(service::UniqueFd connected) : socket_(std::move(connected)) {
  const timeval patience{std::chrono::duration_cast<std::chrono::seconds>(kPatience).count(), 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

void SocketEditor::send_bytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the daemon has closed; what the test waits for tells
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void SocketEditor::send(const Json& message) { send_bytes(lsp::framed(message.dump())); }

void SocketEditor::request(const Json& id, const std::string& method, const Json& params) {
  send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
}

void SocketEditor::notify(const std::string& method, const Json& params) {
  send({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}});
}

namespace {

Json initialize_params(Json capabilities) {
  return {{"processId", nullptr},
          {"rootUri", nullptr},
          {"capabilities", std::move(capabilities)},
          {"initializationOptions", {{"efim", {{"receipts", true}, {"stop", "none"}}}}}};
}

Json open_params(const std::string& uri, const std::string& text) {
  return {{"textDocument", {{"uri", uri}, {"languageId", "cpp"}, {"version", 1}, {"text", text}}}};
}

Json completion_params(const std::string& uri, int line, int character) {
  return {{"textDocument", {{"uri", uri}}},
          {"position", {{"line", line}, {"character", character}}},
          {"context", {{"triggerKind", 2}}}};
}

}  // namespace

void SocketEditor::initialize(Json capabilities) {
  request(0, "initialize", initialize_params(std::move(capabilities)));
  answer(0);
  notify("initialized", Json::object());
}

void SocketEditor::open(const std::string& uri, const std::string& text) {
  notify("textDocument/didOpen", open_params(uri, text));
}

void SocketEditor::complete(const Json& id, const std::string& uri, int line, int character) {
  request(id, "textDocument/inlineCompletion", completion_params(uri, line, character));
}

Json SocketEditor::answer(const Json& id) {
  INFO("waiting for the answer to " << id);
  return take([&](const Json& message) {
    return !message.contains("method") && message.value("id", Json()) == id;
  });
}

Json SocketEditor::next(const std::string& method) {
  INFO("waiting for " << method);
  return take([&](const Json& message) { return message.value("method", "") == method; })
      .at("params");
}

std::string SocketEditor::suggestion(const Json& id) {
  const Json items = answer(id).at("result").at("items");
  return items.empty() ? "" : items[0].at("insertText").get<std::string>();
}

void SocketEditor::wait_for_end() {
  while (read()) {
  }
}

Json SocketEditor::take(const std::function<bool(const Json&)>& wanted) {
  for (;;) {
    const auto found = std::find_if(messages_.begin(), messages_.end(), wanted);
    if (found != messages_.end()) {
      Json message = std::move(*found);
      messages_.erase(found);
      return message;
    }
    REQUIRE(read());
  }
}

bool SocketEditor::read() {
  std::array<char, 65536> bytes;
  const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (size == 0 || (size < 0 && errno == ECONNRESET)) return false;
  REQUIRE(size > 0);  // kPatience is over
  reader_.feed({bytes.data(), static_cast<std::size_t>(size)});
  for (;;) {
    auto body = reader_.next();
    REQUIRE(body);
    if (!*body) return true;
    messages_.push_back(test::json_of(**body));
  }
}

std::string whole_conversation(const std::string& uri, const std::string& text) {
  const auto message = [](Json body) {
    body["jsonrpc"] = "2.0";
    return lsp::framed(body.dump());
  };
  return message(
             {{"id", 0}, {"method", "initialize"}, {"params", initialize_params(Json::object())}}) +
         message({{"method", "initialized"}, {"params", Json::object()}}) +
         message({{"method", "textDocument/didOpen"}, {"params", open_params(uri, text)}}) +
         message({{"id", 1},
                  {"method", "textDocument/inlineCompletion"},
                  {"params", completion_params(uri, 99, 0)}});
}

}  // namespace efimd::test
