#pragma once

#include <curl/curl.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace efimd::remote {

/// All transfers of this process: libcurl's connections, which stay open for the next one.
///
/// TLS is OpenSSL's, with the system's certificates. No redirect is followed, because the text must
/// reach no other server than the one that the user named. Thread: one.
class Connections {
 public:
  static constexpr long kConnectMs = 5'000;
  static constexpr long kConnectionsMax = 8;

  Connections();
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  CURLM* handle() { return multi_; }
  /// Moves bytes, and ends transfers that are over.
  void perform();

 private:
  CURLM* multi_;
};

/// One request to the server. Its destructor cancels it: the connection is closed, which is how a
/// server learns that nobody waits.
class Transfer {
 public:
  struct Ask {
    std::string url;
    std::string key;   ///< empty: none is sent
    std::string body;  ///< empty: a GET
    long time_max_ms = 0;
  };
  struct Ends {
    /// Bytes of a good answer's body; false ends the transfer.
    std::function<bool(std::string_view bytes)> take;
    /// Called once, from Connections::perform(), unless the transfer was cancelled. `status` is 0 if
    /// there was no answer, and then `why` says so; for a bad status `body` is the answer's.
    std::function<void(long status, const std::string& why, const std::string& body)> done;
  };
  static constexpr std::size_t kFailureBytesMax = std::size_t{64} << 10;

  /// kNoMemory if libcurl cannot start it.
  static Result<std::unique_ptr<Transfer>> start(Connections& connections, Ask ask, Ends ends);
  ~Transfer();
  /// Whether it made a connection, because none was open or the server had closed it.
  bool has_connected() const;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

 private:
  friend class Connections;
  Transfer(Connections& connections, Ask ask, Ends ends);
  void ended(CURLcode code);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);

  Connections& connections_;
  Ask ask_;
  Ends ends_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  std::string failure_;  ///< of a bad answer
  char detail_[CURL_ERROR_SIZE] = "";
};

}  // namespace efimd::remote
