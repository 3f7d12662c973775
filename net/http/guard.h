#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace efimd::http {

/// What a request's head says that decides whether its body is read. Absent fields are nullopt.
struct Head {
  std::string method;
  std::string target;
  std::optional<std::string> host;
  std::optional<std::string> origin;
  std::optional<std::string> fetch_site;  ///< Sec-Fetch-Site
  std::optional<std::string> authorization;
  std::optional<std::string> api_key;  ///< X-Api-Key
  std::optional<std::string> content_type;
};

struct GuardRules {
  int port = 0;
  std::optional<std::string> token;  ///< nullopt: none is asked for
};

struct Refusal {
  unsigned status = 403;
  std::string why;
};

/// A target that is a whole URL, as clients write it to a proxy, becomes its path, and Host what it names
/// (RFC 9112, 3.2.2).
void take_target(Head& head);

/// Why a request is refused; nullopt if it is not. Against programs of other users and against web
/// pages in the user's own browser:
///
///   G-1  Host names this server on loopback. A page whose name was bound to 127.0.0.1 (DNS
///        rebinding) sends its own name.
///   G-2  No Origin, and no Sec-Fetch-Site of a page: only browsers send them. No answer has CORS
///        fields, either.
///   G-3  A POST says that it is JSON, which a page cannot without asking first (CORS preflight).
///   G-4  The token, as "Authorization: Bearer TOKEN" or X-Api-Key, compared in constant time; not
///        for /health, which says only whether the model is loaded.
std::optional<Refusal> refused(const Head& head, const GuardRules& rules);

/// The token in `file`; makes file and folder if there are none (0600 and 0700, 32 random bytes in
/// hexadecimal). kBadInput if the file is a link, another user's, readable by others or malformed.
Result<std::string> token_in(const std::string& file);

}  // namespace efimd::http
