#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"

namespace efimd::test {

/// A device whose "KV" remembers which token was written where, and whose logits are a hash of
/// everything that a row sees through its page table. Any wrong page, slot, position, layer or
/// stale row changes them.
///
/// Refuses operations out of order. Memory starts as garbage and is never cleared.
class FakeBackend final : public engine::Backend {
 public:
  struct Options {
    int page_count = 64;
    int step_tokens_max = 16;
    std::string kind = "fake";
    int layers = 2;
    int vocabulary = 61;
  };
  explicit FakeBackend(const Options& options);

  /// The logits of a row after exactly `tokens` must give.
  static std::vector<float> logits_behind(std::span<const engine::TokenId> tokens,
                                          const Options& options);

  std::string kind() const override { return options_.kind; }
  std::string name() const override { return "hash of tokens"; }
  int step_tokens_max() const override { return options_.step_tokens_max; }
  int page_count() const override { return options_.page_count; }
  std::size_t page_bytes() const override { return 1024; }  ///< at most 4 layers of cells
  std::size_t resident_bytes() const override { return 0; }

  Result<void> begin(const engine::Step& step) override;
  Result<void> begin_behind(const engine::Step& step, std::span<const float>) override {
    return begin(step);
  }
  Result<void> attention_input(int layer) override;
  Result<void> attention(int layer) override { return operation(5 * layer + 2); }
  Result<void> attention_output(int layer) override { return operation(5 * layer + 3); }
  Result<void> feed_forward_input(int layer) override { return operation(5 * layer + 4); }
  Result<void> feed_forward_output(int layer) override { return operation(5 * layer + 5); }
  Result<std::span<const float>> logits() override;
  Result<std::span<const float>> residual() override { return std::span<const float>(); }
  Result<void> copy_page(engine::PageIndex from, engine::PageIndex to, int tokens) override;
  std::string page_format() const override { return "cells"; }
  void expect_read(engine::PageIndex page) override { expected.insert(page); }
  Result<void> read_page(engine::PageIndex page, std::span<std::byte> bytes) override;
  Result<void> write_page(engine::PageIndex page, std::span<const std::byte> bytes) override;

  /// Called at each begin().
  std::function<void(const engine::Step&)> on_step;
  /// Operations and copies until one fails with kDeviceLost; negative: never.
  int operations_until_failure = -1;
  int steps = 0;
  int copies = 0;
  std::set<engine::PageIndex> expected;  ///< by expect_read()
  std::set<engine::PageIndex> read;
  int rows = 0;  ///< evaluated in all steps
  /// How often each (page, slot) was written in layer 0.
  std::map<std::pair<engine::PageIndex, int>, int> writes;

 private:
  /// Checks that `number` is due: begin 0, a layer's five 5 * layer + 1 to 5, logits 5 * layers
  /// + 1.
  Result<void> operation(int number);
  bool must_fail();
  void spoil_step();
  std::uint64_t& cell(int layer, engine::PageIndex page, int slot);

  Options options_;
  std::vector<std::uint64_t> cells_;  ///< [layer][page][slot]
  std::vector<float> logits_;
  engine::Step step_;
  int next_ = 0;  ///< number of the operation that must come now
};

}  // namespace efimd::test
