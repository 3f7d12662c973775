#include "net/remote/server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/config/this_system.h"

namespace efimd::remote {

using Json = nlohmann::json;
using Clock = Health::Clock;

namespace {

/// The pace of looking at clocks and at the daemon's lock.
constexpr int kTurnMs = 250;
constexpr long kAllMsMax = 120'000;

std::string line_of(const Json& message) {
  return message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Values of a request, which the daemon made: what is missing or strange gets its default.
template <class T>
T value_or(const Json& object, const char* name, T otherwise) {
  const auto found = object.find(name);
  if (found == object.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>)
    return found->is_string() ? found->get<std::string>() : otherwise;
  else
    return found->is_number() ? found->get<T>() : otherwise;
}

Json count_json(const std::optional<int>& count) { return count ? Json(*count) : Json(nullptr); }

}  // namespace

struct Server::Client {
  explicit Client(service::UniqueFd fd_) : fd(std::move(fd_)) {}
  service::UniqueFd fd;
  std::string input, output;
  Json request;  ///< null until it was read
  StreamReader reader;
  bool has_text = false;
  /// The answer is whole, or too much for who does not read: it is closed when it has been written.
  bool ends = false;
  Clock::time_point first_text_by = Clock::time_point::max();
  std::string model;  ///< of a look
  std::string looked;
  std::unique_ptr<Transfer> transfer;  ///< last: it calls into the rest
};

Server::Server(Settings settings, service::UniqueFd listener)
    : settings_(std::move(settings)), listener_(std::move(listener)) {
  ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
}

Server::~Server() = default;

void Server::run() {
  auto used = Clock::now();
  while (!settings_.ends()) {
    std::vector<curl_waitfd> waits = {{listener_.get(), CURL_WAIT_POLLIN, 0}};
    for (const auto& client : clients_) {
      const short wanted =
          client->output.empty() ? CURL_WAIT_POLLIN : CURL_WAIT_POLLIN | CURL_WAIT_POLLOUT;
      waits.push_back({client->fd.get(), wanted, 0});
    }
    auto next = Clock::now() + std::chrono::milliseconds(kTurnMs);
    for (const auto& client : clients_) next = std::min(next, client->first_text_by);
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    int ready = 0;
    curl_multi_poll(connections_.handle(), waits.data(), static_cast<unsigned>(waits.size()),
                    static_cast<int>(std::max<long>(0, wait.count())), &ready);
    accept_clients();
    // What the server says comes first: a client may be closed because its answer is whole.
    connections_.perform();
    for (const auto& client : clients_)
      if (client->ends) client->transfer.reset();
    end_late();
    look_at_closed();
    if (std::exchange(check_ended_, false)) check_.reset();
    if (std::exchange(has_connected_, false)) check_model();
    std::erase_if(clients_,
                  [this](const auto& client) { return !read(*client) || !write(*client); });
    if (!clients_.empty()) used = Clock::now();
    if (settings_.daemon_lock.empty() || Clock::now() - used <= settings_.alone_max) continue;
    if (!service::LockFile::is_held(settings_.daemon_lock)) return;
    used = Clock::now();
  }
}

void Server::accept_clients() {
  for (;;) {
    service::UniqueFd fd(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    if (!service::peer_is_this_user(fd.get()) || clients_.size() >= kClientsMax) continue;
    clients_.push_back(std::make_unique<Client>(std::move(fd)));
  }
}

bool Server::read(Client& client) {
  char bytes[16 * 1024];
  for (;;) {
    const ssize_t got = ::recv(client.fd.get(), bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (got == 0) return false;
    if (!client.request.is_null()) continue;  // nothing more is expected
    client.input.append(bytes, static_cast<std::size_t>(got));
    if (client.input.size() > kRequestBytesMax) return false;
    if (client.input.back() == '\n') take_request(client);
  }
}

bool Server::write(Client& client) {
  while (!client.output.empty()) {
    const ssize_t sent =
        ::send(client.fd.get(), client.output.data(), client.output.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (sent <= 0) return false;
    client.output.erase(0, static_cast<std::size_t>(sent));
  }
  return !client.ends;
}

/// The transfer may be calling this, so run() lets go of it later.
void Server::say(Client& client, const std::string& line) {
  if (client.ends) return;  // what follows text that was dropped would leave a gap
  client.ends = client.output.size() + line.size() > kQueuedBytesMax;
  if (!client.ends) client.output += line;
}

void Server::take_request(Client& client) {
  client.request = Json::parse(client.input, nullptr, false);
  client.input.clear();
  if (!client.request.is_object()) return give_up(client, "no request");
  if (!health_.is_open()) return give_up(client, health_.trouble());
  if (client.request.contains("ask"))
    return model_changed_ ? give_up(client, "it has another model now") : ask(client);
  look(client);
}

void Server::ask(Client& client) {
  const Json& asked = client.request["ask"];
  if (!asked.is_object()) return give_up(client, "no request");
  Wish wish;
  wish.prompt = value_or<std::string>(asked, "prompt", "");
  if (const auto tokens = asked.find("tokens"); tokens != asked.end() && tokens->is_array())
    for (const Json& token : *tokens)
      wish.tokens.push_back(token.is_number_integer() ? token.get<std::int32_t>() : 0);
  wish.model = value_or<std::string>(asked, "model", "");
  wish.tokens_max = value_or(asked, "maxTokens", wish.tokens_max);
  wish.temperature = value_or(asked, "temperature", wish.temperature);
  wish.top_p = value_or(asked, "topP", wish.top_p);
  wish.top_k = value_or(asked, "topK", wish.top_k);
  wish.seed = value_or(asked, "seed", wish.seed);
  wish.with_chances = with_chances_;
  wish.slot = settings_.slot;
  const auto first_ms = std::chrono::milliseconds(value_or(asked, "firstTextMs", 1'500L));
  client.first_text_by = Clock::now() + first_ms;
  client.reader = {};
  Transfer::Ends ends;
  ends.take = [this, &client](std::string_view bytes) {
    const auto pieces = client.reader.feed(bytes);
    if (pieces) take_text(client, *pieces);
    return pieces.has_value() && !client.ends;
  };
  ends.done = [this, &client](long status, const std::string& why, const std::string& body) {
    ended(client, status, why, body);
  };
  auto started = Transfer::start(
      connections_,
      {endpoint(settings_.url, "/v1/completions"), settings_.key, request_body(wish),
       std::min(kAllMsMax, first_ms.count() + value_or(asked, "allMs", 30'000L))},
      std::move(ends));
  if (!started) return give_up(client, started.error().message());
  client.transfer = std::move(*started);
}

void Server::take_text(Client& client, const std::vector<Piece>& pieces) {
  if (!pieces.empty() && !client.has_text && client.transfer)
    has_connected_ |= client.transfer->has_connected();
  for (const Piece& piece : pieces) {
    client.has_text = true;
    client.first_text_by = Clock::time_point::max();
    say(client, line_of({{"text", piece.text},
                         {"chances", piece.chances},
                         {"promptTokens", count_json(piece.usage.prompt_tokens)},
                         {"cachedTokens", count_json(piece.usage.cached_tokens)}}));
  }
  if (!pieces.empty()) health_.completed();
}

void Server::ended(Client& client, long status, const std::string& why, const std::string& body) {
  // Some servers take no wish for probabilities; they are asked again without it.
  if ((status == 400 || status == 422) && with_chances_ &&
      body.find("logprobs") != std::string::npos) {
    with_chances_ = false;
    return ask(client);
  }
  if (status != 200 && status != 0)
    return give_up(client, "it answers " + std::to_string(status) + ": " + failure_text(body));
  const auto rest = client.reader.finish();
  if (status == 0 && !(client.reader.has_ended() && rest)) {
    // The reader knows better why bytes were refused; without bytes the transfer does.
    return give_up(client, client.reader.has_failed() ? rest.error().what : why);
  }
  if (!rest) return give_up(client, rest.error().what);
  take_text(client, *rest);
  health_.completed();
  const Usage& usage = client.reader.usage();
  say(client, line_of({{"done",
                        {{"promptTokens", count_json(usage.prompt_tokens)},
                         {"cachedTokens", count_json(usage.cached_tokens)},
                         {"cut", client.reader.was_cut()}}}}));
  client.ends = true;
}

void Server::look(Client& client) {
  if (!client.request.contains("look") || !client.request["look"].is_object())
    return give_up(client, "no request");
  client.first_text_by = Clock::now() + std::chrono::milliseconds(value_or(client.request["look"],
                                                                           "firstTextMs", 1'500L));
  const auto step = [this, &client](const std::string& url, std::string body,
                                    std::function<void(long, const std::string&)> next) {
    client.looked.clear();
    Transfer::Ends ends;
    ends.take = [&client](std::string_view bytes) {
      client.looked += bytes;
      return client.looked.size() <= StreamReader::kTextBytesMax;
    };
    ends.done = [next = std::move(next)](long status, const std::string& why, const std::string&) {
      next(status, why);
    };
    auto started = Transfer::start(
        connections_, {url, settings_.key, std::move(body), static_cast<long>(kLookMax.count())},
        std::move(ends));
    if (!started) return give_up(client, started.error().message());
    client.transfer = std::move(*started);
  };
  const auto answer = [this, &client](const Json& tokens) {
    say(client, line_of({{"look", {{"model", client.model}, {"tokens", tokens}}}}));
    client.ends = true;
  };
  const auto tokens_asked = [&client, answer](long status, const std::string&) {
    const auto ids = status == 200 ? token_ids(client.looked) : std::nullopt;
    answer(ids ? Json(*ids) : Json(nullptr));
  };
  const auto named = [this, &client, step, tokens_asked](long status, const std::string& why) {
    if (status != 200)
      return give_up(client,
                     status == 0 ? why : "it answers " + std::to_string(status) + " to /v1/models");
    model_ = first_model(client.looked);
    model_changed_ = false;
    client.model = settings_.model.empty() ? model_ : settings_.model;
    const std::string text = value_or<std::string>(client.request["look"], "text", "");
    // vLLM calls the text prompt, llama-server content.
    step(endpoint(settings_.url, "/tokenize"),
         line_of({{"content", text},
                  {"prompt", text},
                  {"model", client.model},
                  {"add_special", false},
                  {"add_special_tokens", false},
                  {"parse_special", true}}),
         tokens_asked);
  };
  step(endpoint(settings_.url, "/v1/models"), "", named);
}

void Server::give_up(Client& client, const std::string& why) {
  if (health_.is_open() && !client.has_text && why != "no request")
    health_.failed(why, Clock::now());
  say(client, line_of({{"error", why}}));
  client.ends = true;
}

void Server::end_late() {
  for (const auto& client : clients_) {
    if (Clock::now() < client->first_text_by || client->ends) continue;
    client->transfer.reset();
    give_up(*client, "it does not answer in time");
  }
}

void Server::look_at_closed() {
  if (std::exchange(probe_ended_, false) || health_.is_open()) probe_.reset();
  if (health_.is_open() || probe_ || Clock::now() < health_.look_at()) return;
  Transfer::Ends ends;
  ends.take = [](std::string_view) { return true; };
  ends.done = [this](long status, const std::string& why, const std::string& body) {
    probe_ended_ = true;  // it is let go of in the next turn, not while it calls
    if (status == 200) return health_.answered_look();
    health_.failed(
        status == 0 ? why : "it answers " + std::to_string(status) + ": " + failure_text(body),
        Clock::now());
  };
  auto started = Transfer::start(connections_,
                                 {endpoint(settings_.url, "/v1/models"), settings_.key, "",
                                  static_cast<long>(kLookMax.count())},
                                 std::move(ends));
  if (started) probe_ = std::move(*started);
}

void Server::check_model() {
  if (check_ || model_.empty() || Clock::now() < check_at_) return;
  check_at_ = Clock::now() + kCheckPause;
  const auto body = std::make_shared<std::string>();
  Transfer::Ends ends;
  ends.take = [body](std::string_view bytes) {
    *body += bytes;
    return body->size() <= StreamReader::kTextBytesMax;
  };
  ends.done = [this, body](long status, const std::string&, const std::string&) {
    check_ended_ = true;  // it is let go of in the next turn, not while it calls
    const std::string now = status == 200 ? first_model(*body) : "";
    if (!now.empty() && now != model_) model_changed_ = true;
  };
  auto started = Transfer::start(connections_,
                                 {endpoint(settings_.url, "/v1/models"), settings_.key, "",
                                  static_cast<long>(kLookMax.count())},
                                 std::move(ends));
  if (started) check_ = std::move(*started);
}

}  // namespace efimd::remote
