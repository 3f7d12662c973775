#include "net/get/transport.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string>

#include "daemon/config/version.h"
#include "net/curl/environment.h"

namespace efimd::get {

std::atomic<bool> interrupted = false;

namespace {

constexpr long kConnectSeconds = 15;

struct CurlFree {
  void operator()(char* text) const { curl_free(text); }
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Text = std::unique_ptr<char, CurlFree>;
using Url = std::unique_ptr<CURLU, CurlFree>;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Url parsed(const std::string& url) {
  Url handle(curl_url());
  if (handle == nullptr || curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    return nullptr;
  return handle;
}

std::string part(const Url& url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), which, &text, flags) != CURLUE_OK) return "";
  return Text(text).get();
}

bool is_redirect(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Whether no proxy is asked for the host, or a domain that it is in. Networks in it (10.0.0.0/8) are left to
/// libcurl: only messages would be wrong.
bool is_spared(const std::string& url) {
  const Url handle = parsed(url);
  if (handle == nullptr) return false;
  std::string host = lower(part(handle, CURLUPART_HOST));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const std::string list = lower(net::hosts_without_proxy());
  if (list == "*") return true;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find_first_of(", \t", at), list.size());
    std::string_view name = std::string_view(list).substr(at, end - at);
    at = end + 1;
    if (name.starts_with('.')) name.remove_prefix(1);
    if (name.empty() || !host.ends_with(name)) continue;
    if (host.size() == name.size() || host[host.size() - name.size() - 1] == '.') return true;
  }
  return false;
}

std::string host_text(const std::string& url) {
  const std::string proxy = proxy_host(url);
  const std::string origin = origin_of(url);
  return proxy.empty() ? origin : origin + " through the proxy " + proxy;
}

}  // namespace

std::string origin_of(std::string_view url) {
  const Url handle = parsed(std::string(url));
  if (handle == nullptr) return "";
  const std::string scheme = lower(part(handle, CURLUPART_SCHEME));
  if (scheme != "https" && scheme != "http") return "";
  const std::string port = part(handle, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
  const std::string host = lower(part(handle, CURLUPART_HOST));
  return scheme + "://" + host + (port.empty() ? "" : ":" + port);
}

std::optional<std::string> redirected(const std::string& url, const std::string& location) {
  const Url handle = parsed(url);
  // Set on an address that is there, a relative one is resolved against it.
  if (handle == nullptr ||
      curl_url_set(handle.get(), CURLUPART_URL, location.c_str(), 0) != CURLUE_OK)
    return std::nullopt;
  std::string next = part(handle, CURLUPART_URL);
  if (origin_of(next).empty()) return std::nullopt;
  return next;
}

std::string proxy_host(const std::string& url) {
  // http_proxy in lower case only, as libcurl has it.
  const bool secure = origin_of(url).starts_with("https:");
  const std::array<const char*, 4> names = {secure ? "https_proxy" : "http_proxy",
                                            secure ? "HTTPS_PROXY" : "http_proxy", "all_proxy",
                                            "ALL_PROXY"};
  if (is_spared(url)) return "";
  for (const char* name : names) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    // Its user and password are nobody's business.
    Url handle(curl_url());
    if (curl_url_set(handle.get(), CURLUPART_URL, value,
                     CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK)
      return part(handle, CURLUPART_HOST);
    return name;
  }
  return "";
}

struct Transport::Curl {
  CURL* handle = nullptr;
};

/// One request on its way.
struct Transport::Exchange {
  CURL* handle = nullptr;
  const BodyTaker* taker = nullptr;
  HttpAnswer answer;
  std::size_t header_bytes = 0;
  bool begun = false;
  std::optional<HttpFailure> failure;

  void fail_with(HttpFailure::Kind kind, Error error) {
    failure = HttpFailure{kind, std::move(error)};
  }

  bool header(std::string_view line) {
    header_bytes += line.size();
    if (header_bytes > kHeaderBytesMax) {
      fail_with(HttpFailure::Kind::kOther,
                {Fault::kBadInput, "the server's headers are too long", "try another server"});
      return false;
    }
    if (line.starts_with("HTTP/")) answer.headers.clear();  // an interim answer came before
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos)
      answer.headers[lower(trimmed(line.substr(0, colon)))] = trimmed(line.substr(colon + 1));
    return true;
  }

  /// Whether the body goes to the taker.
  bool taken() const { return taker != nullptr && (answer.status == 200 || answer.status == 206); }

  bool body(std::span<const char> piece) {
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
    if (is_redirect(answer.status)) return true;
    if (!taken()) {
      const std::size_t room = kBodyMax - std::min(kBodyMax, answer.body.size());
      answer.body.append(piece.data(), std::min(room, piece.size()));
      return true;
    }
    if (!begin()) return false;
    auto done = taker->take(piece);
    if (!done) fail_with(HttpFailure::Kind::kTaker, done.error());
    return done.has_value();
  }

  bool begin() {
    if (begun) return true;
    begun = true;
    auto done = taker->begin(answer);
    if (!done) fail_with(HttpFailure::Kind::kTaker, done.error());
    return done.has_value();
  }

  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
    const std::size_t bytes = size * count;
    return static_cast<Exchange*>(self)->header({data, bytes}) ? bytes : 0;
  }
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) {
    const std::size_t bytes = size * count;
    return static_cast<Exchange*>(self)->body({data, bytes}) ? bytes : 0;
  }
  static int on_progress(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return interrupted.load() ? 1 : 0;
  }
};

Transport::Transport(int silence_s) : curl_(std::make_unique<Curl>()), silence_s_(silence_s) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  curl_->handle = curl_easy_init();
}

Transport::~Transport() {
  if (curl_->handle != nullptr) curl_easy_cleanup(curl_->handle);
}

namespace {

HttpFailure failure_of(CURLcode code, const std::string& url, const char* detail) {
  using Kind = HttpFailure::Kind;
  if (code == CURLE_ABORTED_BY_CALLBACK)
    return {Kind::kOther, {Fault::kStopped, "interrupted", ""}};
  const std::string what =
      fmt::format("{}: {}", host_text(url), *detail != '\0' ? detail : curl_easy_strerror(code));
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return {
          Kind::kOther,
          {Fault::kIo, what,
           "check the clock, ca-certificates and the proxy's certificate, or name one to trust in "
           "SSL_CERT_FILE"}};
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return {Kind::kOther, {Fault::kBadInput, what, "give an https address"}};
    default:
      return {Kind::kConnection,
              {Fault::kIo, what, "check the network and the proxy, then run the command again"}};
  }
}

}  // namespace

tl::expected<HttpAnswer, HttpFailure> Transport::once(const HttpRequest& request, bool with_token,
                                                      const BodyTaker* taker) {
  CURL* const handle = curl_->handle;
  if (handle == nullptr)
    return tl::unexpected(
        HttpFailure{HttpFailure::Kind::kOther, {Fault::kNoMemory, "libcurl cannot start", ""}});
  Exchange exchange;
  exchange.handle = handle;
  exchange.taker = taker;
  exchange.answer.url = request.url;
  curl_easy_reset(handle);  // keeps connections
  char detail[CURL_ERROR_SIZE] = "";
  std::unique_ptr<curl_slist, CurlFree> headers;
  const auto add_header = [&](const std::string& line) {
    headers.reset(curl_slist_append(headers.release(), line.c_str()));
  };
  if (with_token && !request.token.empty()) add_header("Authorization: Bearer " + request.token);
  const std::string range = std::to_string(request.from_byte) + "-";
  if (request.from_byte > 0 && !request.if_range.empty())
    add_header("If-Range: " + request.if_range);
  if (request.from_byte > 0) curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
  const std::string agent = std::string("efimd/") + service::version();
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  net::take_environment(handle);
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, agent.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(silence_s_));
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, &Exchange::on_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &Exchange::on_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, &Exchange::on_progress);
  const CURLcode code = curl_easy_perform(handle);
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &exchange.answer.status);
  if (code == CURLE_OK && exchange.taken()) exchange.begin();  // a body of nothing
  if (exchange.failure) return tl::unexpected(std::move(*exchange.failure));
  if (code != CURLE_OK) return tl::unexpected(failure_of(code, request.url, detail));
  return std::move(exchange.answer);
}

tl::expected<HttpAnswer, HttpFailure> Transport::get(const HttpRequest& request,
                                                     const BodyTaker* taker) {
  const auto bad = [](std::string what) {
    return tl::unexpected(HttpFailure{HttpFailure::Kind::kOther,
                                      {Fault::kBadInput, std::move(what), "try another address"}});
  };
  const std::string home = origin_of(request.url);
  if (home.empty()) return bad(request.url + ": is no http or https address");
  HttpRequest next = request;
  HttpHeaders first;
  for (int hops = 0; hops <= kRedirectsMax; ++hops) {
    auto answer = once(next, origin_of(next.url) == home, taker);
    if (!answer) return answer;
    if (hops == 0) first = answer->headers;
    if (!is_redirect(answer->status)) {
      answer->first = std::move(first);
      return answer;
    }
    const auto target = redirected(next.url, answer->headers["location"]);
    if (!target) return bad(home + ": leads to no address that can be loaded from");
    if (next.url.starts_with("https:") && !target->starts_with("https:"))
      return bad(home + ": leads from https to " + origin_of(*target) + ", which is not encrypted");
    next.url = *target;
  }
  return bad(home + ": leads from address to address without end");
}

}  // namespace efimd::get
