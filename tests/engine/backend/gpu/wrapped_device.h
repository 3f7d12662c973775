#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "engine/backend/gpu/gpu_device.h"

namespace efimd::test {

/// A device that does what another does.
class WrappedDevice : public engine::gpu::GpuDevice {
 public:
  explicit WrappedDevice(std::unique_ptr<engine::gpu::GpuDevice> device)
      : device_(std::move(device)) {}

  std::string kind() const override { return device_->kind(); }
  std::string name() const override { return device_->name(); }
  engine::gpu::DeviceLimits limits() const override { return device_->limits(); }
  Result<engine::gpu::BufferId> allocate(std::size_t bytes, engine::gpu::Memory where) override {
    return device_->allocate(bytes, where);
  }
  std::span<std::byte> mapped(engine::gpu::BufferId buffer) override {
    return device_->mapped(buffer);
  }
  Result<void> run(std::span<const engine::gpu::Operation> operations) override {
    return device_->run(operations);
  }
  Result<engine::gpu::CopyTicket> begin_copies(
      std::span<const engine::gpu::Operation> copies) override {
    return device_->begin_copies(copies);
  }
  Result<void> finish(engine::gpu::CopyTicket copies) override { return device_->finish(copies); }

 private:
  std::unique_ptr<engine::gpu::GpuDevice> device_;
};

}  // namespace efimd::test
