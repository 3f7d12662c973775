#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace efimd::get {

/// Set by SIGINT and SIGTERM: what waits or transfers ends soon, with Fault::kStopped.
extern std::atomic<bool> interrupted;

/// Names are in lower case.
using HttpHeaders = std::map<std::string, std::string, std::less<>>;

struct HttpRequest {
  std::string url;
  /// Sent as `Authorization: Bearer` to the host, port and scheme of `url` and to nobody else,
  /// however the answer redirects.
  std::string token;
  std::uint64_t from_byte = 0;  ///< more than 0: asks for a range
  std::string if_range;         ///< an ETag or date: the range only if it is the same content
};

struct HttpAnswer {
  long status = 0;
  std::string url;      ///< after redirects
  HttpHeaders first;    ///< of the first answer, where the hub says what it links to
  HttpHeaders headers;  ///< of the last one
  std::string body;     ///< kBodyMax bytes at most, unless they were taken
};

/// Takes the body of a good answer (200, 206) in pieces; `begin` sees status and headers first.
struct BodyTaker {
  std::function<Result<void>(const HttpAnswer& answer)> begin;
  std::function<Result<void>(std::span<const char> piece)> take;
};

/// Why there is no whole answer.
struct HttpFailure {
  enum class Kind {
    kConnection,  ///< not reached, cut off or silent: another try may help
    kTaker,       ///< the taker's own error
    kOther,       ///< a certificate, an address, an interruption: another try does not help
  };
  Kind kind = Kind::kConnection;
  Error error;
};

/// HTTP by libcurl, which reads the proxy from the environment (HTTPS_PROXY, ALL_PROXY, NO_PROXY).
///
/// Redirects are followed here, not by libcurl: kRedirectsMax, never from https to http, the token
/// stays with its host. Thread: one.
/// Limits: 15 s to connect; a transfer of less than a byte in silence_s is cut off.
class Transport {
 public:
  static constexpr int kRedirectsMax = 10;
  static constexpr std::size_t kBodyMax = std::size_t{16} << 20;
  static constexpr std::size_t kHeaderBytesMax = std::size_t{64} << 10;

  explicit Transport(int silence_s);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Without a taker the body is kept in the answer.
  tl::expected<HttpAnswer, HttpFailure> get(const HttpRequest& request,
                                            const BodyTaker* taker = nullptr);

 private:
  struct Curl;
  struct Exchange;
  tl::expected<HttpAnswer, HttpFailure> once(const HttpRequest& request, bool with_token,
                                             const BodyTaker* taker);
  std::unique_ptr<Curl> curl_;
  int silence_s_;
};

/// "https://host:port" of an address, without its default port; empty if it is no http(s) address.
std::string origin_of(std::string_view url);
/// What `url`'s redirect to `location`, which may be relative, leads to; nullopt if it is no address.
std::optional<std::string> redirected(const std::string& url, const std::string& location);
/// The host of the proxy that libcurl takes from the environment for `url`; empty: none.
std::string proxy_host(const std::string& url);

}  // namespace efimd::get
