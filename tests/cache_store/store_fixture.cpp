#include "tests/cache_store/store_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <span>

namespace efimd::test {

namespace fs = std::filesystem;

namespace {

Digest digest_of_number(int number) {
  return digest_of(std::as_bytes(std::span(&number, 1)), Digest{1, 2});
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "efimd-store-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::permissions(store(), fs::perms::owner_all, ignored);
  fs::remove_all(path_, ignored);
}

store::ArenaKey test_arena(std::uint64_t model) {
  return {Digest{model, 1}, "model-" + std::to_string(model), "f16 test", kPageBytes};
}

store::NewPage TestPage::of(const std::string& uri) const { return {digest, parent, {uri}, bytes}; }

TestPage test_page(int number, std::optional<int> parent) {
  TestPage page{digest_of_number(number), std::nullopt, std::vector<std::byte>(kPageBytes)};
  if (parent) page.parent = digest_of_number(*parent);
  std::mt19937_64 random(static_cast<std::uint64_t>(number) + 1);
  for (std::size_t at = 0; at + 8 <= page.bytes.size(); at += 8) {
    const std::uint64_t word = random();
    std::memcpy(page.bytes.data() + at, &word, 8);
  }
  return page;
}

OpenStore open_store(const fs::path& folder, std::size_t budget_bytes) {
  OpenStore open;
  open.told = std::make_shared<std::vector<std::string>>();
  auto made =
      store::Store::open({folder, budget_bytes,
                          [told = open.told](const std::string& text) { told->push_back(text); }});
  if (made) {
    open.store = std::move(*made);
  } else {
    open.error = made.error();
  }
  return open;
}

std::size_t keep_chain(store::Store& store, const std::string& uri, int first, int end) {
  const auto arena = store.use_arena(test_arena());
  if (!arena) return 0;
  std::size_t kept = 0;
  for (int number = first; number < end; ++number) {
    const TestPage page =
        test_page(number, number > first ? std::optional(number - 1) : std::nullopt);
    const store::NewPage fresh = page.of(uri);
    kept += store.keep(*arena, {&fresh, 1}).value_or(0);
  }
  return kept;
}

Found look_up(const store::Store& store, int number) {
  const TestPage page = test_page(number);
  std::vector<std::byte> bytes(kPageBytes);
  switch (store.read(page.digest, bytes)) {
    case store::Store::Read::kMissing:
      return Found::kMissing;
    case store::Store::Read::kDamaged:
      return Found::kDamaged;
    case store::Store::Read::kDone:
      break;
  }
  return bytes == page.bytes ? Found::kRight : Found::kWrong;
}

int in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) ::_exit(work());
  int status = 0;
  if (::waitpid(child, &status, 0) != child) std::abort();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::byte> file_bytes(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

void write_file(const fs::path& file, const std::vector<std::byte>& bytes) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

}  // namespace efimd::test
