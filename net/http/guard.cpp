#include "net/http/guard.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "daemon/config/local_socket.h"

namespace efimd::http {

namespace {

using service::UniqueFd;

constexpr std::size_t kTokenBytes = 32;
/// Of a token that the user wrote.
constexpr std::size_t kTokenCharsMin = 16;
constexpr std::size_t kTokenCharsMax = 256;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20U) : static_cast<char>(c);
  });
  return out;
}

/// G-1.
bool is_our_host(const std::optional<std::string>& host, int port) {
  if (!host) return false;
  std::string name = lower(*host);
  const std::string suffix = ":" + std::to_string(port);
  if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

/// Takes as long wherever they differ.
bool same(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    difference |= static_cast<unsigned char>(wanted[i]) ^
                  static_cast<unsigned char>(i < given.size() ? given[i] : 0);
  return difference == 0;
}

bool has_token(const Head& head, const std::string& token) {
  if (head.api_key && same(*head.api_key, token)) return true;
  if (!head.authorization) return false;
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view value = *head.authorization;
  return lower(value.substr(0, kScheme.size())) == kScheme &&
         same(value.substr(kScheme.size()), token);
}

std::string hexadecimal(const std::array<unsigned char, kTokenBytes>& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

tl::unexpected<Error> no_file(const std::string& file, const char* what) {
  return fail(Fault::kIo, file + ": " + what + ": " + std::strerror(errno),
              "see to it that you may write there");
}

/// Whole or not at all, also if two processes do it at once.
Result<void> make_token(const std::string& file) {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return no_file(file, "no random bytes");
  const std::string text = hexadecimal(bytes) + "\n";
  service::make_private_folder(std::filesystem::path(file).parent_path());
  const std::string draft = file + "." + std::to_string(::getpid());
  const UniqueFd out(
      ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!out) return no_file(file, "cannot be made");
  const bool written =
      ::write(out.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(out.get()) == 0;
  const bool placed = written && (::link(draft.c_str(), file.c_str()) == 0 || errno == EEXIST);
  const int why = errno;
  ::unlink(draft.c_str());
  errno = why;
  if (!placed) return no_file(file, "cannot be written");
  return {};
}

Result<std::string> read_token(const std::string& file, const UniqueFd& in) {
  struct stat of_file {};
  if (::fstat(in.get(), &of_file) != 0) return no_file(file, "cannot be read");
  const auto wrong = [&](const char* what) {
    return fail(Fault::kBadInput, file + ": " + what,
                "remove the file: a new one is made, and clients need its token");
  };
  if (!S_ISREG(of_file.st_mode) || of_file.st_uid != ::getuid())
    return wrong("not a file of yours");
  if ((of_file.st_mode & 077U) != 0) return wrong("others may read it, so the token is no secret");
  std::string text(kTokenCharsMax + 2, '\0');
  const ssize_t size = ::read(in.get(), text.data(), text.size());
  if (size < 0) return no_file(file, "cannot be read");
  text.resize(static_cast<std::size_t>(size));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  const bool plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7F; });
  if (!plain || text.size() < kTokenCharsMin || text.size() > kTokenCharsMax)
    return wrong("no token of 16 to 256 characters");
  return text;
}

}  // namespace

void take_target(Head& head) {
  constexpr std::string_view kScheme = "http://";
  const std::string_view target = head.target;
  if (lower(target.substr(0, kScheme.size())) != kScheme) return;
  const std::string_view rest = target.substr(kScheme.size());
  const std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
  head.host = std::string(rest.substr(0, path));
  head.target = (rest.substr(path).starts_with('/') ? "" : "/") + std::string(rest.substr(path));
}

std::optional<Refusal> refused(const Head& head, const GuardRules& rules) {
  if (!is_our_host(head.host, rules.port))
    return Refusal{403, "the Host field must be 127.0.0.1:" + std::to_string(rules.port)};
  if (head.origin) return Refusal{403, "requests of web pages are refused (Origin)"};
  if (head.fetch_site && *head.fetch_site != "none")
    return Refusal{403, "requests of web pages are refused (Sec-Fetch-Site)"};
  const std::string_view path = std::string_view(head.target).substr(0, head.target.find('?'));
  const bool is_health = path == "/health" || path == "/v1/health";
  if (rules.token && !is_health && !has_token(head, *rules.token))
    return Refusal{401,
                   "the token is missing or wrong; send \"Authorization: Bearer TOKEN\", and "
                   "'efimd http --print-token' prints it"};
  if (head.method != "POST") return std::nullopt;
  const std::string type = lower(head.content_type.value_or(""));
  if (std::string_view(type).substr(0, type.find(';')).starts_with("application/json"))
    return std::nullopt;
  return Refusal{415, "a POST must have the Content-Type application/json"};
}

Result<std::string> token_in(const std::string& file) {
  for (bool made = false;; made = true) {
    const UniqueFd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (in) return read_token(file, in);
    if (errno == ELOOP)
      return fail(Fault::kBadInput, file + ": a symbolic link, which is not followed",
                  "remove it: a new file is made");
    if (errno != ENOENT || made) return no_file(file, "cannot be opened");
    if (auto done = make_token(file); !done) return tl::unexpected(done.error());
  }
}

}  // namespace efimd::http
