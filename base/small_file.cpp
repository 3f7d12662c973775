#include "base/small_file.h"

#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <system_error>

namespace efimd {

namespace fs = std::filesystem;

std::string read_small_file(const fs::path& file, std::size_t bytes_max) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return {};
  std::ifstream stream(file, std::ios::binary);
  std::string text(bytes_max, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

Result<void> replace_small_file(const fs::path& file, std::string_view text) {
  if (file.empty()) return fail(Fault::kIo, "no file to keep this in");
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const fs::path next = fs::path(file).concat(".next");
  fs::remove(next, error);  // a pipe would wait for its reader
  {
    std::ofstream stream(next, std::ios::binary | std::ios::trunc);
    fs::permissions(next, fs::perms::owner_read | fs::perms::owner_write, error);
    stream << text;
    if (!stream.flush())
      return fail(Fault::kIo, next.string() + " cannot be written", "free some space");
  }
  fs::rename(next, file, error);
  if (error) return fail(Fault::kIo, file.string() + " cannot be replaced: " + error.message());
  return {};
}

std::string state_of_file(const std::filesystem::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return {};
  std::string state;
  for (const auto number :
       {static_cast<std::int64_t>(info.st_dev), static_cast<std::int64_t>(info.st_ino),
        static_cast<std::int64_t>(info.st_size), static_cast<std::int64_t>(info.st_mtim.tv_sec),
        static_cast<std::int64_t>(info.st_mtim.tv_nsec)})
    state += std::to_string(number) + ' ';
  return state;
}

}  // namespace efimd
