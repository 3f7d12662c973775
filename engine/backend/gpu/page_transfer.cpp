#include "engine/backend/gpu/page_transfer.h"

#include <algorithm>
#include <utility>

namespace efimd::engine::gpu {

Result<void> PageTransfer::allocate() {
  const std::pair<Staging*, Memory> both[] = {{&in_, Memory::kHostWrites},
                                              {&out_, Memory::kHostReads}};
  for (const auto& [staging, where] : both) {
    auto memory = device_->allocate(kInFlight * page_bytes(), where);
    if (!memory) return tl::unexpected(std::move(memory).error());
    staging->memory = *memory;
  }
  return {};
}

void PageTransfer::expect(PageIndex page) {
  if (std::ranges::find(expected_, page, &Expected::page) != expected_.end()) return;
  // If it cannot begin now, read() tries again and says why not.
  if (const auto slot = begin_read(page)) expected_.push_back({page, *slot});
}

void PageTransfer::changed(PageIndex page) {
  std::erase_if(expected_, [&](const Expected& each) { return each.page == page; });
}

Result<void> PageTransfer::read(PageIndex page, std::span<std::byte> bytes) {
  const auto expected = std::ranges::find(expected_, page, &Expected::page);
  const auto slot = expected != expected_.end() ? expected->slot : begin_read(page);
  if (!slot) return tl::unexpected(slot.error());
  changed(page);
  auto done = device_->finish(std::exchange(out_.copies[*slot], 0));
  if (done) std::ranges::copy(mapped(out_, *slot), bytes.begin());
  return done;
}

Result<void> PageTransfer::write(PageIndex page, std::span<const std::byte> bytes) {
  changed(page);
  const auto slot = free_slot(in_);
  if (!slot) return tl::unexpected(slot.error());
  std::ranges::copy(bytes, mapped(in_, *slot).begin());
  return begin(in_, *slot, page_copies(in_, *slot, page, Towards::kDevice));
}

Result<void> PageTransfer::send(const Range& to, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += page_bytes()) {
    const auto piece = bytes.subspan(at, std::min(page_bytes(), bytes.size() - at));
    const auto slot = free_slot(in_);
    if (!slot) return tl::unexpected(slot.error());
    std::ranges::copy(piece, mapped(in_, *slot).begin());
    Operation copy;
    copy.operands[0] = {in_.memory, *slot * page_bytes(), piece.size()};
    copy.operands[1] = {to.buffer, to.offset + at, piece.size()};
    if (auto begun = begin(in_, *slot, {&copy, 1}); !begun) return begun;
  }
  return {};
}

Result<std::size_t> PageTransfer::begin_read(PageIndex page) {
  auto slot = free_slot(out_);
  if (!slot) return slot;
  std::erase_if(expected_, [&](const Expected& each) { return each.slot == *slot; });
  if (auto begun = begin(out_, *slot, page_copies(out_, *slot, page, Towards::kHost)); !begun)
    return tl::unexpected(std::move(begun).error());
  return slot;
}

Result<std::size_t> PageTransfer::free_slot(Staging& staging) {
  const std::size_t slot = staging.next++ % kInFlight;
  const CopyTicket copies = std::exchange(staging.copies[slot], 0);
  if (copies == 0) return slot;
  if (auto done = device_->finish(copies); !done) return tl::unexpected(std::move(done).error());
  return slot;
}

std::span<std::byte> PageTransfer::mapped(const Staging& staging, std::size_t slot) const {
  return device_->mapped(staging.memory).subspan(slot * page_bytes(), page_bytes());
}

std::vector<Operation> PageTransfer::page_copies(const Staging& staging, std::size_t slot,
                                                 PageIndex page, Towards towards) const {
  std::vector<Operation> copies(layers_.size());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const Range here = range(layer, page);
    const Range there = {staging.memory, slot * page_bytes() + layer * here.bytes, here.bytes};
    copies[layer].operands[0] = towards == Towards::kHost ? here : there;
    copies[layer].operands[1] = towards == Towards::kHost ? there : here;
  }
  return copies;
}

Result<void> PageTransfer::begin(Staging& staging, std::size_t slot,
                                 std::span<const Operation> copies) {
  auto begun = device_->begin_copies(copies);
  if (!begun) return tl::unexpected(std::move(begun).error());
  staging.copies[slot] = *begun;
  return {};
}

}  // namespace efimd::engine::gpu
