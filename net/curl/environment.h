#pragma once

#include <curl/curl.h>

#include <string>

// What the user's environment says, and libcurl alone does not read as these programs need it.
namespace efimd::net {

/// NO_PROXY with this machine's own names: a proxy is another machine, and would be sent in clear what
/// is meant for this one.
std::string hosts_without_proxy();

/// Sets these hosts, and the certificates that the user trusts (CURL_CA_BUNDLE, SSL_CERT_FILE,
/// SSL_CERT_DIR), which only curl's own program looks at.
void take_environment(CURL* handle);

}  // namespace efimd::net
