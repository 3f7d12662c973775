#include "daemon/completion/documents/taste_keeper.h"

#include <string>

#include "base/small_file.h"

namespace efimd::completion {

namespace fs = std::filesystem;

Result<void> TasteKeeper::load(Taste& taste) const {
  const std::string text = read_small_file(file_, Taste::kFileBytesMax + 1);
  if (text.empty()) return {};
  auto read = taste.read(text);
  if (read) return {};
  Error damaged = read.error();
  damaged.what = file_.string() + " is passed over: " + damaged.what;
  return tl::unexpected(std::move(damaged));
}

Result<void> TasteKeeper::save(const Taste& taste) const {
  if (!taste.rows().empty()) return replace_small_file(file_, taste.to_text());
  std::error_code error;
  fs::remove(file_, error);
  if (error)
    return fail(Fault::kIo, file_.string() + ": " + error.message(), "remove the file yourself");
  return {};
}

}  // namespace efimd::completion
