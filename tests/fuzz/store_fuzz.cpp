// Bytes of a store's files are overwritten: it opens, and every page that it gives is the page that was kept.
//
// The input is a list of changes of five bytes: which file, where (three bytes), what.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "cache_store/store.h"
#include "tests/cache_store/store_fixture.h"

using namespace efimd;
using namespace efimd::test;

namespace {

constexpr int kPages = 3;
constexpr const char* kFiles[] = {"store.db", "1.kv"};

/// The files of a sound store.
const std::vector<std::vector<std::byte>>& sound() {
  static const std::vector<std::vector<std::byte>> files = [] {
    const ScratchFolder scratch;
    {
      const OpenStore store = open_store(scratch.store());
      if (!store || keep_chain(*store.store, "file:///a.py", 0, kPages) != kPages) std::abort();
    }
    std::vector<std::vector<std::byte>> read;
    for (const char* const name : kFiles) read.push_back(file_bytes(scratch.store() / name));
    return read;
  }();
  return files;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::vector<std::byte>> files = sound();
  for (std::size_t at = 0; at + 5 <= size; at += 5) {
    std::vector<std::byte>& file = files[data[at] % files.size()];
    const std::size_t place = data[at + 1] + data[at + 2] * 256U + data[at + 3] * 65536U;
    file[place % file.size()] = std::byte{data[at + 4]};
  }
  const ScratchFolder scratch;
  { const OpenStore made = open_store(scratch.store()); }
  for (std::size_t i = 0; i < files.size(); ++i) write_file(scratch.store() / kFiles[i], files[i]);
  const OpenStore store = open_store(scratch.store());
  if (!store) std::abort();
  for (int number = 0; number < kPages; ++number)
    if (look_up(*store.store, number) == Found::kWrong) std::abort();
  if (!store->verify()) std::abort();
  return 0;
}
