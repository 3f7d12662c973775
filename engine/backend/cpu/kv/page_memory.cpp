#include "engine/backend/cpu/kv/page_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "base/limits.h"
#include "engine/backend/size.h"

namespace efimd::engine::cpu {

namespace {

tl::unexpected<Error> no_memory(int page_count, std::size_t page_bytes) {
  return fail(Fault::kNoMemory,
              "KV pages: cannot reserve " + std::to_string(page_count) + " pages of " +
                  std::to_string(page_bytes) + " bytes",
              "lower the KV budget (cache.memory_mb); or " + remedy_for_no_memory());
}

}  // namespace

PageMemory::PageMemory(PageMemory&& other) noexcept
    : page_count_(other.page_count_),
      page_bytes_(other.page_bytes_),
      data_(std::exchange(other.data_, nullptr)),
      touched_(std::move(other.touched_)),
      touched_count_(other.touched_count_) {}

PageMemory::~PageMemory() {
  if (data_ != nullptr) ::munmap(data_, size(page_count_) * page_bytes_);
}

Result<PageMemory> PageMemory::open(int page_count, std::size_t page_bytes) {
  PageMemory memory(page_count, page_bytes);
  if (page_count < 1)
    return fail(Fault::kBadInput, "KV pages: at least one is needed", "raise the KV budget");
  if (size(page_count) > (static_cast<std::size_t>(-1) >> 1U) / page_bytes)
    return no_memory(page_count, page_bytes);
  void* start = ::mmap(nullptr, size(page_count) * page_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return no_memory(page_count, page_bytes);
#if defined(MADV_HUGEPAGE)
  // Attention walks all pages of a layer; a refusal only costs speed.
  ::madvise(start, size(page_count) * page_bytes, MADV_HUGEPAGE);
#endif
  memory.data_ = static_cast<std::byte*>(start);
  memory.touched_.resize(size(page_count));
  return memory;
}

void PageMemory::touch(PageIndex page) {
  assert(page >= 0 && page < page_count_);
  if (touched_[size(page)]) return;
  touched_[size(page)] = true;
  ++touched_count_;
}

void PageMemory::give_back(PageIndex page) {
  if (!touched_[size(page)]) return;
  touched_[size(page)] = false;
  --touched_count_;
  // The system's pages at both ends may be the neighbours', too.
  static const auto kSystemPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = offset(page);
  const std::size_t end = begin + page_bytes_;
  const std::size_t whole_begin = (begin + kSystemPage - 1) / kSystemPage * kSystemPage;
  const std::size_t whole_end = end / kSystemPage * kSystemPage;
  const bool given = whole_begin < whole_end &&
                     ::madvise(data_ + whole_begin, whole_end - whole_begin, MADV_DONTNEED) == 0;
  std::memset(data_ + begin, 0, (given ? whole_begin : end) - begin);
  if (given) std::memset(data_ + whole_end, 0, end - whole_end);
}

std::size_t PageMemory::offset(PageIndex page) const {
  assert(page >= 0 && page < page_count_);
  return size(page) * page_bytes_;
}

std::span<const std::byte> PageMemory::page(PageIndex page) const {
  return {data_ + offset(page), page_bytes_};
}

std::span<std::byte> PageMemory::page_to_write(PageIndex page) {
  touch(page);
  return {data_ + offset(page), page_bytes_};
}

}  // namespace efimd::engine::cpu
