#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache_store/store.h"

namespace efimd::test {

/// A folder that is gone at the end of the test.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path store() const { return path_ / "kv"; }

 private:
  std::filesystem::path path_;
};

inline const std::string kA = "file:///a.py", kB = "file:///b.py";
inline constexpr std::size_t kPageBytes = 3 * 4096 - 100;  ///< a slot has a rest

inline constexpr std::size_t kSlotBytes = 3 * 4096;

/// Room for so many pages, the arena's head and the database.
constexpr std::size_t budget_for(std::size_t pages) {
  return store::Store::kMetadataBytes + (pages + 1) * kSlotBytes;
}

store::ArenaKey test_arena(std::uint64_t model = 7);

/// A page with bytes that no other number has.
struct TestPage {
  Digest digest;
  std::optional<Digest> parent;
  std::vector<std::byte> bytes;
  store::NewPage of(const std::string& uri) const;
};
TestPage test_page(int number, std::optional<int> parent = std::nullopt);

/// A store whose messages are kept.
struct OpenStore {
  std::unique_ptr<store::Store> store;
  Error error;
  std::shared_ptr<std::vector<std::string>> told;
  store::Store* operator->() const { return store.get(); }
  explicit operator bool() const { return store != nullptr; }
};
OpenStore open_store(const std::filesystem::path& folder,
                     std::size_t budget_bytes = std::size_t{1} << 30);

/// Keeps pages [first, end) as one chain of `uri`; how many were kept.
std::size_t keep_chain(store::Store& store, const std::string& uri, int first, int end);

enum class Found { kRight, kMissing, kDamaged, kWrong };
Found look_up(const store::Store& store, int number);

/// Runs `work` in a child process; its exit code, or -1 when a signal ended it.
int in_child(const std::function<int()>& work);

std::vector<std::byte> file_bytes(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, const std::vector<std::byte>& bytes);

}  // namespace efimd::test
