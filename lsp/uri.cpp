#include "lsp/uri.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "lsp/excerpt.h"

namespace efimd::lsp {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// RFC 3986: ALPHA *( ALPHA / DIGIT / "+" / "-" / "." ). One letter is a Windows drive, not a
/// scheme.
std::size_t scheme_length(std::string_view uri) {
  if (uri.empty() || !is_letter(uri[0])) return 0;
  std::size_t length = 1;
  while (length < uri.size() && (is_letter(uri[length]) || is_digit(uri[length]) ||
                                 uri[length] == '+' || uri[length] == '-' || uri[length] == '.'))
    ++length;
  return length > 1 && length < uri.size() && uri[length] == ':' ? length : 0;
}

std::optional<int> hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// The byte that "%XX" at `at` stands for.
std::optional<char> escaped_byte_at(std::string_view text, std::size_t at) {
  if (at + 2 >= text.size() || text[at] != '%') return std::nullopt;
  const auto high = hex_value(text[at + 1]);
  const auto low = hex_value(text[at + 2]);
  if (!high || !low) return std::nullopt;
  return static_cast<char>(*high * 16 + *low);
}

/// Decodes what can be decoded; a broken escape stays as it stands.
std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::optional<char> byte = escaped_byte_at(text, at);
    out += byte.value_or(text[at]);
    if (byte) at += 2;
  }
  return out;
}

Result<void> check_escapes(std::string_view uri) {
  for (std::size_t at = uri.find('%'); at != std::string_view::npos; at = uri.find('%', at + 1)) {
    const std::optional<char> byte = escaped_byte_at(uri, at);
    if (!byte)
      return fail(Fault::kBadInput, "URI " + excerpt(uri) + ": broken escape " +
                                        excerpt(uri.substr(at, 3)) + " at byte " +
                                        std::to_string(at));
  }
  return {};
}

bool is_drive(std::string_view path) {
  return path.size() >= 2 && is_letter(path[0]) && path[1] == ':';
}

/// The text after "scheme:", without an authority's slashes, query and fragment.
std::string_view opaque_part(std::string_view uri) {
  const std::size_t scheme = scheme_length(uri);
  std::string_view rest = scheme == 0 ? uri : uri.substr(scheme + 1);
  if (scheme == 0) return rest;
  return rest.substr(0, rest.find_first_of("?#"));
}

/// The drive letter in lower case: editors write the same file as c%3A and as C:.
std::string with_drive(std::string path) {
  if (is_drive(path) && path[0] < 'a') path[0] = static_cast<char>(path[0] - 'A' + 'a');
  return path;
}

std::string without_controls(std::string_view text) {
  std::string out = utf8::sanitized(text);
  for (std::size_t at = 0; at < out.size(); ++at) {
    const auto byte = static_cast<unsigned char>(out[at]);
    if (byte < 0x20 || byte == 0x7F) out[at] = '?';
    // U+0080..U+009F are C2 80..C2 9F; some terminals obey them too.
    const bool c1 = byte == 0xC2 && static_cast<unsigned char>(out[at + 1]) < 0xA0;
    if (c1) out.replace(at, 2, "?");
  }
  return out;
}

}  // namespace

std::string scheme_of(std::string_view uri) {
  std::string scheme(uri.substr(0, scheme_length(uri)));
  for (char& c : scheme) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return scheme;
}

Result<std::string> path_of(std::string_view uri) {
  const std::string scheme = scheme_of(uri);
  if (scheme != "file")
    return fail(Fault::kUnsupported, "URI " + excerpt(uri) + " names no file of this machine");
  std::string_view rest = opaque_part(uri);
  if (Result<void> escapes = check_escapes(rest); !escapes)
    return tl::unexpected(std::move(escapes).error());
  std::string host;
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    host = decoded(rest.substr(0, slash));
    rest.remove_prefix(slash);
  }
  std::string path = decoded(rest);
  // RFC 8089, E.3.2: with four slashes the path begins with the host.
  for (;;) {
    if (host == "localhost") host.clear();
    if (!host.empty() || !path.starts_with("//")) break;
    const std::size_t slash = path.find('/', 2);
    if (slash != std::string::npos) host = path.substr(2, slash - 2);
    path.erase(0, host.empty() ? std::min(path.find_first_not_of('/'), path.size()) - 1 : slash);
  }
  if (host.find('/') != std::string::npos)
    return fail(Fault::kBadInput, "URI " + excerpt(uri) + ": a slash in the host");
  if ((host + path).find('\0') != std::string::npos)
    return fail(Fault::kBadInput, "URI " + excerpt(uri) + ": NUL in the path");
  if (path.empty() || path[0] != '/')
    return fail(Fault::kBadInput, "URI " + excerpt(uri) + ": the path must be absolute");
  if (!host.empty()) return "//" + host + path;
  return with_drive(is_drive(path.substr(1)) ? path.substr(1) : std::move(path));
}

Result<std::string> text_path_of(std::string_view uri) {
  Result<std::string> path = path_of(uri);
  const std::string_view ending = uri.substr(std::min(uri.rfind('#'), uri.size()));
  const bool names_part =
      ending.starts_with("#.") && ending.size() > 2 && ending.size() <= kPartEndingBytesMax + 2 &&
      std::ranges::all_of(ending.substr(2), [](char c) { return is_letter(c) || is_digit(c); });
  if (path && names_part) *path += ending.substr(1);
  return path;
}

std::string file_uri(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-._~/";
  std::string plain = with_drive(std::string(path));
  const bool drive = is_drive(plain);
  std::string out = drive ? "file:///" : plain.starts_with("//") ? "file:" : "file://";
  for (const char c : plain) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_letter(c) || is_digit(c) || kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else if (drive && c == '\\') {
      out += '/';
    } else {
      out += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return out;
}

std::string base_name(std::string_view uri) {
  std::string name = decoded(opaque_part(uri));
  while (!name.empty() && name.back() == '/') name.pop_back();
  return name.substr(name.find_last_of("/\\") + 1);
}

std::string display(std::string_view uri) {
  const Result<std::string> path = path_of(uri);
  return without_controls(path ? *path : decoded(uri));
}

}  // namespace efimd::lsp
