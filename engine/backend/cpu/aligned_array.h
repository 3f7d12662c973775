#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "base/wipe.h"

namespace efimd::engine::cpu {

/// A 64-byte aligned array of plain values, not initialized; grows without keeping its contents.
template <class T>
class AlignedArray {
 public:
  /// False when there is no memory; the array is then empty.
  [[nodiscard]] bool reserve(std::size_t count) {
    if (count <= size_) return true;
    data_.reset();
    size_ = 0;
    if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) return false;
    data_.reset(static_cast<T*>(::operator new(count * sizeof(T), kAlignment, std::nothrow)));
    if (data_ != nullptr) size_ = count;
    return data_ != nullptr;
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  void overwrite() { wipe(std::as_writable_bytes(std::span(data_.get(), size_))); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace efimd::engine::cpu
