#include "daemon/models/remote_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/config/local_socket.h"

namespace efimd::service {

using Json = nlohmann::json;

namespace {

using Clock = completion::RemoteEngine::Clock;

constexpr std::size_t kLineBytesMax = std::size_t{8} << 20;
constexpr auto kConnectMax = std::chrono::milliseconds(200);
/// efimd-http keeps the limits; this is for one that hangs itself.
constexpr auto kGrace = std::chrono::milliseconds(500);

tl::unexpected<Error> silent(const char* what) {
  return fail(Fault::kNotReady, what, "see efimd doctor");
}

/// One request to efimd-http. Its end is the connection's, which cancels it.
class Conversation {
 public:
  static Result<Conversation> begin(const std::filesystem::path& socket, const Json& request) {
    auto fd = connect_to(socket, Clock::now() + kConnectMax);
    if (!fd) return silent("efimd-http does not run");
    const std::string line = request.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::size_t done = 0;
    while (done < line.size()) {
      const ssize_t sent = ::send(fd->get(), line.data() + done, line.size() - done, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return silent("efimd-http has hung up");
      done += static_cast<std::size_t>(sent);
    }
    return Conversation(std::move(*fd));
  }

  /// The next message; kStopped if `stop` fired, the message's own error if it is one.
  Result<Json> next(const std::stop_token& stop, Clock::time_point deadline) {
    for (;;) {
      const std::size_t end = input_.find('\n');
      if (end != std::string::npos) {
        Json message = Json::parse(
            input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
        input_.erase(0, end + 1);
        if (!message.is_object()) return silent("efimd-http sent nonsense");
        if (const auto error = message.find("error"); error != message.end() && error->is_string())
          return fail(Fault::kIo, error->get<std::string>());
        return message;
      }
      if (auto got = receive(stop, deadline); !got) return tl::unexpected(got.error());
    }
  }

 private:
  explicit Conversation(UniqueFd fd) : fd_(std::move(fd)) {}

  Result<void> receive(const std::stop_token& stop, Clock::time_point deadline) {
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0) return fail(Fault::kIo, "no descriptor is free");
    const UniqueFd wake(ends[0]), bell(ends[1]);
    const std::stop_callback rung(stop,
                                  [&bell] { static_cast<void>(::write(bell.get(), "!", 1) == 1); });
    std::array<pollfd, 2> waits{pollfd{fd_.get(), POLLIN, 0}, pollfd{wake.get(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready = ::poll(waits.data(), waits.size(), static_cast<int>(std::max<long>(0, left)));
    if (stop.stop_requested()) return fail(Fault::kStopped, "stopped");
    if (ready == 0) return silent("efimd-http does not answer");
    if (ready < 0) return {};
    std::array<char, 16 * 1024> bytes;
    const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return {};
    if (got <= 0) return silent("efimd-http has hung up");
    input_.append(bytes.data(), static_cast<std::size_t>(got));
    if (input_.size() > kLineBytesMax) return silent("efimd-http sent nonsense");
    return {};
  }

  UniqueFd fd_;
  std::string input_;
};

std::optional<int> count_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? std::optional(found->get<int>())
                                                             : std::nullopt;
}

completion::RemoteUsage usage_in(const Json& object) {
  return {count_in(object, "promptTokens"), count_in(object, "cachedTokens")};
}

/// The numbers of a list; none if there is no list.
template <class T>
std::vector<T> numbers_in(const Json& object, const char* name) {
  std::vector<T> numbers;
  const auto list = object.find(name);
  if (list == object.end() || !list->is_array()) return numbers;
  for (const Json& number : *list)
    if (number.is_number()) numbers.push_back(number.get<T>());
  return numbers;
}

class RemoteLink : public completion::RemoteEngine {
 public:
  RemoteLink(std::filesystem::path socket, RemoteConfig config)
      : socket_(std::move(socket)), config_(std::move(config)) {}

  Result<Look> look(std::string_view text, std::stop_token stop) override {
    const std::chrono::milliseconds limit(config_.time_limit_ms);
    auto conversation =
        Conversation::begin(socket_, {{"look", {{"text", text}, {"firstTextMs", limit.count()}}}});
    if (!conversation) return tl::unexpected(conversation.error());
    const auto message = conversation->next(stop, Clock::now() + limit + kGrace);
    if (!message) return tl::unexpected(message.error());
    const auto found = message->find("look");
    if (found == message->end() || !found->is_object()) return silent("efimd-http sent nonsense");
    Look seen;
    if (const auto name = found->find("model"); name != found->end() && name->is_string())
      seen.model = model_ = name->get<std::string>();
    if (auto tokens = numbers_in<engine::TokenId>(*found, "tokens"); !tokens.empty())
      seen.tokens = std::move(tokens);
    return seen;
  }

  Result<completion::RemoteEnd> ask(const completion::RemoteWish& wish, const Take& take,
                                    std::stop_token stop) override {
    const completion::Options& options = wish.options;
    Json asked = {{"maxTokens", options.tokens_max},
                  {"temperature", options.temperature},
                  {"topP", options.top_p},
                  {"topK", options.top_k},
                  {"seed", options.seed},
                  {"model", model_},
                  {"firstTextMs", config_.time_limit_ms},
                  {"allMs", options.time_max_ms}};
    if (wish.tokens.empty())
      asked["prompt"] = wish.prompt;
    else
      asked["tokens"] = wish.tokens;
    auto conversation = Conversation::begin(socket_, {{"ask", std::move(asked)}});
    if (!conversation) return tl::unexpected(conversation.error());
    auto deadline = Clock::now() + std::chrono::milliseconds(config_.time_limit_ms) + kGrace;
    for (bool begun = false;;) {
      const auto message = conversation->next(stop, deadline);
      if (!message) return tl::unexpected(message.error());
      if (const auto done = message->find("done"); done != message->end() && done->is_object())
        return completion::RemoteEnd{usage_in(*done),
                                     done->contains("cut") && (*done)["cut"] == true};
      const auto text = message->find("text");
      if (text == message->end() || !text->is_string()) return silent("efimd-http sent nonsense");
      if (!std::exchange(begun, true))
        deadline = Clock::now() + std::chrono::milliseconds(options.time_max_ms);
      if (!take({text->get<std::string>(), numbers_in<double>(*message, "chances"),
                 usage_in(*message)}))
        return completion::RemoteEnd{};
    }
  }

 private:
  const std::filesystem::path socket_;
  const RemoteConfig config_;
  std::string model_;
};

}  // namespace

std::shared_ptr<completion::RemoteEngine> make_remote_link(const std::filesystem::path& socket,
                                                           const RemoteConfig& config) {
  return std::make_shared<RemoteLink>(socket, config);
}

}  // namespace efimd::service
