#include "net/get/server_wait.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <thread>

namespace efimd::get {

namespace {

/// Of `"api";r=0;t=55`, as the hub says it: the seconds until it answers again.
std::string until_next_window(std::string_view limit) {
  constexpr std::string_view kNoneLeft = ";r=0;t=";
  const std::size_t at = limit.find(kNoneLeft);
  if (at == std::string_view::npos) return "";
  limit.remove_prefix(at + kNoneLeft.size());
  return std::string(limit.substr(0, limit.find_first_not_of("0123456789")));
}

}  // namespace

bool wait_ms(int milliseconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  while (!interrupted && Clock::now() < end)
    std::this_thread::sleep_for(
        std::min<Clock::duration>(end - Clock::now(), std::chrono::milliseconds(50)));
  return !interrupted;
}

int asked_wait_s(const HttpHeaders& headers) {
  const auto asked = headers.find("retry-after");
  const auto limit = headers.find("ratelimit");
  std::string text = asked == headers.end() ? "" : asked->second;
  if (text.empty() && limit != headers.end()) text = until_next_window(limit->second);
  if (text.empty()) return -1;
  std::uint64_t seconds = 0;
  const char* const end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, seconds);
      read.ec == std::errc() && read.ptr == end)
    return static_cast<int>(std::min<std::uint64_t>(seconds, 1'000'000));
  const std::time_t until = curl_getdate(text.c_str(), nullptr);
  if (until < 0) return -1;
  const std::time_t now = std::time(nullptr);
  return static_cast<int>(std::clamp<std::time_t>(until - now, 0, 1'000'000));
}

}  // namespace efimd::get
