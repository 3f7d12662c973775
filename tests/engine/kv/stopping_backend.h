#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "engine/backend/backend.h"

namespace efimd::test {

/// A device whose steps are stopped at an operation that is named beforehand.
class StoppingBackend final : public engine::Backend {
 public:
  explicit StoppingBackend(std::unique_ptr<engine::Backend> device) : device_(std::move(device)) {}

  static constexpr int kOperationsOfLayer = 5;

  /// The token of the next step, which fires when this operation of the step's layers begins.
  std::stop_token stop_at(int operation) {
    left_ = operation;
    stop_ = {};
    return stop_.get_token();
  }

  std::string kind() const override { return device_->kind(); }
  std::string name() const override { return device_->name(); }
  int step_tokens_max() const override { return device_->step_tokens_max(); }
  int page_count() const override { return device_->page_count(); }
  std::size_t page_bytes() const override { return device_->page_bytes(); }
  std::size_t resident_bytes() const override { return device_->resident_bytes(); }
  Result<void> begin(const engine::Step& step) override { return device_->begin(step); }
  Result<void> begin_behind(const engine::Step& step, std::span<const float> x) override {
    ++gone_on;
    return device_->begin_behind(step, x);
  }
  Result<void> attention_input(int layer) override {
    count();
    return device_->attention_input(layer);
  }
  Result<void> attention(int layer) override {
    count();
    return device_->attention(layer);
  }
  Result<void> attention_output(int layer) override {
    count();
    return device_->attention_output(layer);
  }
  Result<void> feed_forward_input(int layer) override {
    count();
    return device_->feed_forward_input(layer);
  }
  Result<void> feed_forward_output(int layer) override {
    count();
    return device_->feed_forward_output(layer);
  }
  Result<std::span<const float>> logits() override { return device_->logits(); }
  Result<std::span<const float>> residual() override { return device_->residual(); }
  bool goes_on_behind_layers() const override { return device_->goes_on_behind_layers(); }
  void leave_off_at(const std::stop_token* stop) override { device_->leave_off_at(stop); }
  Result<void> copy_page(engine::PageIndex from, engine::PageIndex to, int tokens) override {
    return device_->copy_page(from, to, tokens);
  }
  std::string page_format() const override { return device_->page_format(); }
  Result<void> read_page(engine::PageIndex page, std::span<std::byte> bytes) override {
    return device_->read_page(page, bytes);
  }
  Result<void> write_page(engine::PageIndex page, std::span<const std::byte> bytes) override {
    return device_->write_page(page, bytes);
  }

  int gone_on = 0;  ///< steps that went on where they were stopped

 private:
  void count() {
    if (left_-- == 0) stop_.request_stop();
  }

  std::unique_ptr<engine::Backend> device_;
  std::stop_source stop_;
  int left_ = -1;
};

}  // namespace efimd::test
