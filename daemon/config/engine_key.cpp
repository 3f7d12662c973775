#include "daemon/config/engine_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "daemon/config/local_socket.h"

namespace efimd::service {

namespace {

constexpr std::size_t kKeyBytesMax = 4096;

std::string expanded(const std::string& path) {
  const char* const home = std::getenv("HOME");
  if (!path.starts_with("~/") || home == nullptr) return path;
  return home + path.substr(1);
}

Result<std::string> checked(std::string key, const std::string& place) {
  while (!key.empty() && std::strchr(" \t\r\n", key.back()) != nullptr) key.pop_back();
  const bool is_plain = std::ranges::all_of(key, [](char c) { return c > 0x20 && c < 0x7F; });
  if (is_plain && !key.empty()) return key;
  return fail(Fault::kBadInput, place + " holds no key", "a key is one line of plain characters");
}

}  // namespace

Result<std::string> find_engine_key(const std::string& file, const char* variable) {
  if (file.empty()) {
    if (variable == nullptr || *variable == '\0') return std::string();
    return checked(variable, "EFIMD_ENGINE_KEY");
  }
  const std::string path = expanded(file);
  const UniqueFd in(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!in || ::fstat(in.get(), &facts) != 0)
    return fail(Fault::kNotFound, path + ": " + std::strerror(errno),
                "write the key into it, and chmod 600 " + path);
  if (!S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid() || (facts.st_mode & 077) != 0)
    return fail(Fault::kBadInput, path + ": others may read the key", "chmod 600 " + path);
  std::array<char, kKeyBytesMax> bytes{};
  const ssize_t got = ::read(in.get(), bytes.data(), bytes.size());
  std::string key(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  key.resize(std::min(key.size(), key.find('\n')));
  return checked(std::move(key), path);
}

}  // namespace efimd::service
