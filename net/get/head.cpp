#include "net/get/head.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace efimd::get {

namespace {

/// The file as if it were whole, with zeros for what is not here: the reader wants every offset to
/// lie in it. Takes addresses, no memory.
class Whole {
 public:
  explicit Whole(const Head& head) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    here_ = head.here / page * page;
    if (here_ == 0 || head.whole < head.here) return;
    const int fd = ::open(head.file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return;
    void* const zeros =
        ::mmap(nullptr, head.whole, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(zeros), head.whole};
    const bool mapped = !bytes_.empty() && ::mmap(zeros, here_, PROT_READ, MAP_PRIVATE | MAP_FIXED,
                                                  fd, 0) != MAP_FAILED;
    ::close(fd);
    if (!mapped) unmap();
  }
  ~Whole() { unmap(); }
  Whole(const Whole&) = delete;
  Whole& operator=(const Whole&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Whether the list of tensors ends in what is here: behind it come the tensors themselves.
  bool has_list_of(const engine::GgufFile& file) const {
    return std::ranges::any_of(file.tensors(), [&](const auto& each) {
      return each.second.data <= bytes_.data() + here_;
    });
  }

 private:
  void unmap() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    bytes_ = {};
  }
  std::span<const std::byte> bytes_;
  std::uint64_t here_ = 0;
};

}  // namespace

Result<void> check_head(const Head& head, const engine::FimOverride& fim) {
  const Whole whole(head);
  if (whole.bytes().empty()) return {};
  auto file = engine::GgufFile::parse(whole.bytes(), head.name);
  if (!file || !whole.has_list_of(*file)) return {};
  const auto model = engine::Model::from(std::move(*file), head.file, fim);
  if (model || model.error().fault != Fault::kUnsupported) return {};
  return fail(Fault::kUnsupported,
              "efimd cannot run it, so the rest is not loaded: " + model.error().what,
              model.error().remedy);
}

}  // namespace efimd::get
