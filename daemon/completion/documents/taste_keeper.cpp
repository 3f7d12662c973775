#include "daemon/completion/documents/taste_keeper.h"

#include <fstream>
#include <string>

namespace efimd::completion {

namespace fs = std::filesystem;

Result<void> TasteKeeper::load(Taste& taste) const {
  std::error_code error;
  if (!fs::is_regular_file(file_, error)) return {};
  std::ifstream stream(file_, std::ios::binary);
  std::string text(Taste::kFileBytesMax + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  auto read = taste.read(text);
  if (read) return {};
  Error damaged = read.error();
  damaged.what = file_.string() + " is passed over: " + damaged.what;
  return tl::unexpected(std::move(damaged));
}

Result<void> TasteKeeper::save(const Taste& taste) const {
  std::error_code error;
  if (taste.rows().empty()) {
    fs::remove(file_, error);
    if (error)
      return fail(Fault::kIo, file_.string() + ": " + error.message(), "remove the file yourself");
    return {};
  }
  const fs::path next = fs::path(file_).concat(".next");
  fs::remove(next, error);  // a pipe would wait for its reader
  {
    std::ofstream stream(next, std::ios::binary | std::ios::trunc);
    fs::permissions(next, fs::perms::owner_read | fs::perms::owner_write, error);
    stream << taste.to_text();
    if (!stream.flush())
      return fail(Fault::kIo, next.string() + " cannot be written", "free some space");
  }
  fs::rename(next, file_, error);
  if (!error) return {};
  return fail(Fault::kIo, file_.string() + " cannot be replaced: " + error.message(), "");
}

}  // namespace efimd::completion
