#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "net/get/transport.h"

namespace efimd::get {

/// A file to load, and where it is put.
struct FetchWish {
  std::string url;
  std::string token;           ///< see HttpRequest
  std::filesystem::path file;  ///< its folder exists
  std::filesystem::path lock;  ///< its folder exists
  std::uint64_t bytes = 0;     ///< 0: not known before the server says it
  /// 64 or 40 hexadecimal digits (ContentHash). Empty: an address of no hub; then what is there is
  /// continued only if the server says that it is the same content (ETag).
  std::string hash;
  /// Looks at the whole file before it gets its name; an error removes it.
  std::function<Result<void>(const std::filesystem::path& file)> check = {};
  /// Looks at the first `here` of `whole` bytes, each time that twice as many are here; an error ends
  /// the loading, and removes them.
  std::function<Result<void>(const std::filesystem::path& file, std::uint64_t here,
                             std::uint64_t whole)>
      look = {};
  /// What is said if the server lets only users load it who have accepted its owner's terms.
  std::optional<Error> gated = std::nullopt;
};

struct FetchWatch {
  std::function<void(std::uint64_t bytes, std::uint64_t total)> progress;
  std::function<void(const std::string& text)> note;
};

enum class Fetched { kNow, kWasHere };

/// Loads the file, going on where an earlier try ended. Afterwards either the whole, checked file
/// has its name, or nothing has it. If the network or the server ended it, what came stays as a
/// partial file for the next call, also if it sent a page in the file's place. If what came is wrong,
/// or the disk is full, nothing stays.
///
/// Limits: kTriesMax tries in a row without a byte, kTriesInAllMax; waits of a server that are longer
/// than kServerWaitMaxS are told, not waited for. One process at a time loads a file; others wait.
Result<Fetched> fetch(Transport& transport, const FetchWish& wish, const FetchWatch& watch);
inline constexpr int kTriesMax = 5;
inline constexpr int kTriesInAllMax = 200;

}  // namespace efimd::get
