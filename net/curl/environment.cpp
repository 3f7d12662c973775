#include "net/curl/environment.h"

#include <cstdlib>

namespace efimd::net {

namespace {

/// The value of the first of these that is set and not empty; nullptr: none is.
const char* first_set(const char* name, const char* other) {
  for (const char* const each : {name, other}) {
    const char* const value = std::getenv(each);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

}  // namespace

std::string hosts_without_proxy() {
  const char* const value = first_set("no_proxy", "NO_PROXY");
  const std::string named = value == nullptr ? "" : value;
  return named == "*" ? named : named + ",localhost,127.0.0.1,127.0.0.0/8,::1";
}

void take_environment(CURL* handle) {
  // libcurl copies all these texts.
  curl_easy_setopt(handle, CURLOPT_NOPROXY, hosts_without_proxy().c_str());
  if (const char* const file = first_set("CURL_CA_BUNDLE", "SSL_CERT_FILE"))
    curl_easy_setopt(handle, CURLOPT_CAINFO, file);
  if (const char* const folder = std::getenv("SSL_CERT_DIR"); folder != nullptr && *folder != '\0')
    curl_easy_setopt(handle, CURLOPT_CAPATH, folder);
}

}  // namespace efimd::net
