#include "net/remote/transfer.h"

#include <algorithm>
#include <utility>

#include "daemon/config/version.h"
#include "net/curl/environment.h"

namespace efimd::remote {

Connections::Connections() {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  multi_ = curl_multi_init();
  curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, kConnectionsMax);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kConnectionsMax);
}

Connections::~Connections() { curl_multi_cleanup(multi_); }

void Connections::perform() {
  int running = 0;
  curl_multi_perform(multi_, &running);
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    char* owner = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
    const CURLcode code = message->data.result;
    // The owner may be gone when this returns.
    reinterpret_cast<Transfer*>(owner)->ended(code);
  }
}

Transfer::Transfer(Connections& connections, Ask ask, Ends ends)
    : connections_(connections),
      ask_(std::move(ask)),
      ends_(std::move(ends)),
      easy_(curl_easy_init()) {}

Result<std::unique_ptr<Transfer>> Transfer::start(Connections& connections, Ask ask, Ends ends) {
  std::unique_ptr<Transfer> self(new Transfer(connections, std::move(ask), std::move(ends)));
  CURL* const easy = self->easy_;
  if (easy == nullptr) return fail(Fault::kNoMemory, "libcurl cannot start a transfer");
  const auto add_header = [&](const std::string& line) {
    self->headers_ = curl_slist_append(self->headers_, line.c_str());
  };
  add_header("Accept: text/event-stream, application/json");
  if (!self->ask_.key.empty()) add_header("Authorization: Bearer " + self->ask_.key);
  if (!self->ask_.body.empty()) {
    add_header("Content-Type: application/json");
    add_header("Expect:");  // a server's go-ahead for a body of some kilobytes costs a round trip
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(self->ask_.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, self->ask_.body.data());
  }
  const std::string agent = std::string("efimd/") + service::version();
  curl_easy_setopt(easy, CURLOPT_URL, self->ask_.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  net::take_environment(easy);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, Connections::kConnectMs);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, self->ask_.time_max_ms);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, agent.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, self->headers_);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, self->detail_);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, self.get());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, self.get());
  if (curl_multi_add_handle(connections.handle(), easy) != CURLM_OK)
    return fail(Fault::kNoMemory, "libcurl cannot start a transfer");
  return self;
}

Transfer::~Transfer() {
  if (easy_ == nullptr) return;
  curl_multi_remove_handle(connections_.handle(), easy_);
  curl_easy_cleanup(easy_);
  curl_slist_free_all(headers_);
}

bool Transfer::has_connected() const {
  long connections = 0;
  curl_easy_getinfo(easy_, CURLINFO_NUM_CONNECTS, &connections);
  return connections > 0;
}

void Transfer::ended(CURLcode code) {
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  std::string why;
  if (code != CURLE_OK) {
    why = detail_[0] != '\0' ? detail_ : curl_easy_strerror(code);
    status = 0;
  }
  const auto done = std::exchange(ends_.done, nullptr);
  const std::string body = std::move(failure_);
  if (done) done(status, why, body);
}

std::size_t Transfer::on_body(char* data, std::size_t size, std::size_t count, void* self_pointer) {
  auto& self = *static_cast<Transfer*>(self_pointer);
  const std::string_view bytes(data, size * count);
  long status = 0;
  curl_easy_getinfo(self.easy_, CURLINFO_RESPONSE_CODE, &status);
  if (status == 200) return self.ends_.take(bytes) ? bytes.size() : 0;
  const std::size_t room = kFailureBytesMax - std::min(kFailureBytesMax, self.failure_.size());
  self.failure_ += bytes.substr(0, room);
  return bytes.size();
}

}  // namespace efimd::remote
