#include "tests/support/fake_backend.h"

#include <algorithm>

namespace efimd::test {
namespace {

using engine::kPageTokens;
using engine::PageIndex;
using engine::TokenId;

std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31U);
}

std::uint64_t cell_value(int layer, int position, TokenId token) {
  return mixed(
      mixed(static_cast<std::uint64_t>(layer) << 40U ^ static_cast<std::uint64_t>(position)) +
      static_cast<std::uint64_t>(token));
}

void append_logits(std::vector<float>& out, std::uint64_t hash, int vocabulary) {
  for (int id = 0; id < vocabulary; ++id) {
    hash = mixed(hash);
    out.push_back(static_cast<float>(hash >> 40U) / static_cast<float>(1U << 24U));
  }
}

}  // namespace

FakeBackend::FakeBackend(const Options& options) : options_(options) {
  cells_.resize(static_cast<std::size_t>(options.layers * options.page_count * kPageTokens));
  for (std::size_t at = 0; at < cells_.size(); ++at) cells_[at] = mixed(~at);
}

std::vector<float> FakeBackend::logits_behind(std::span<const TokenId> tokens,
                                              const Options& options) {
  std::uint64_t hash = 0;
  for (int layer = 0; layer < options.layers; ++layer)
    for (std::size_t at = 0; at < tokens.size(); ++at)
      hash = mixed(hash ^ cell_value(layer, static_cast<int>(at), tokens[at]));
  std::vector<float> logits;
  append_logits(logits, hash, options.vocabulary);
  return logits;
}

bool FakeBackend::must_fail() {
  return operations_until_failure >= 0 && operations_until_failure-- == 0;
}

Result<void> FakeBackend::operation(int number) {
  if (must_fail()) {
    spoil_step();
    return fail(Fault::kDeviceLost, "the fake device failed, as it was told to");
  }
  if (number != next_)
    return fail(Fault::kBadInput, "operation " + std::to_string(number) + " came instead of " +
                                      std::to_string(next_));
  ++next_;
  return {};
}

/// After a failure the KV of the step's rows is undefined.
void FakeBackend::spoil_step() {
  for (const engine::StepSequence& sequence : step_.sequences)
    for (int at = sequence.position; at < sequence.position + sequence.count; ++at)
      for (int layer = 0; layer < options_.layers; ++layer)
        cell(layer, sequence.page_table[static_cast<std::size_t>(at / kPageTokens)],
             at % kPageTokens) ^= 0xDEAD;
}

Result<void> FakeBackend::begin(const engine::Step& step) {
  next_ = 0;
  step_ = step;
  if (on_step) on_step(step);
  std::size_t rows_given = 0;
  for (const engine::StepSequence& sequence : step.sequences) {
    if (sequence.first != static_cast<int>(rows_given))
      return fail(Fault::kBadInput, "rows of a sequence do not follow those of the one before");
    rows_given += static_cast<std::size_t>(sequence.count);
    const int tokens = sequence.position + sequence.count;
    if (static_cast<int>(sequence.page_table.size()) * kPageTokens < tokens)
      return fail(Fault::kBadInput, "the page table is too short");
  }
  if (rows_given != step.tokens.size() ||
      step.tokens.size() > static_cast<std::size_t>(options_.step_tokens_max))
    return fail(Fault::kBadInput, "the step has the wrong number of rows");
  ++steps;
  rows += static_cast<int>(rows_given);
  return operation(0);
}

Result<void> FakeBackend::attention_input(int layer) {
  if (Result<void> done = operation(5 * layer + 1); !done) return done;
  for (const engine::StepSequence& sequence : step_.sequences) {
    for (int row = 0; row < sequence.count; ++row) {
      const int at = sequence.position + row;
      const PageIndex page = sequence.page_table[static_cast<std::size_t>(at / kPageTokens)];
      const TokenId token = step_.tokens[static_cast<std::size_t>(sequence.first + row)];
      cell(layer, page, at % kPageTokens) = cell_value(layer, at, token);
      if (layer == 0) ++writes[{page, at % kPageTokens}];
    }
  }
  return {};
}

Result<std::span<const float>> FakeBackend::logits() {
  if (Result<void> done = operation(5 * options_.layers + 1); !done)
    return tl::unexpected(std::move(done).error());
  logits_.clear();
  for (const int row : step_.logits_rows) {
    for (const engine::StepSequence& sequence : step_.sequences) {
      if (row < sequence.first || row >= sequence.first + sequence.count) continue;
      const int last = sequence.position + row - sequence.first;
      std::uint64_t hash = 0;
      for (int layer = 0; layer < options_.layers; ++layer)
        for (int at = 0; at <= last; ++at)
          hash = mixed(hash ^ cell(layer,
                                   sequence.page_table[static_cast<std::size_t>(at / kPageTokens)],
                                   at % kPageTokens));
      append_logits(logits_, hash, options_.vocabulary);
    }
  }
  return std::span<const float>(logits_);
}

Result<void> FakeBackend::read_page(PageIndex page, std::span<std::byte> bytes) {
  read.insert(page);
  if (must_fail()) return fail(Fault::kDeviceLost, "the fake device failed, as it was told to");
  for (int layer = 0; layer < options_.layers; ++layer) {
    const auto row = std::as_bytes(std::span(&cell(layer, page, 0), kPageTokens));
    std::ranges::copy(row, bytes.begin() + static_cast<std::ptrdiff_t>(row.size()) * layer);
  }
  return {};
}

Result<void> FakeBackend::write_page(PageIndex page, std::span<const std::byte> bytes) {
  if (must_fail()) return fail(Fault::kDeviceLost, "the fake device failed, as it was told to");
  for (int layer = 0; layer < options_.layers; ++layer) {
    const auto row = std::as_writable_bytes(std::span(&cell(layer, page, 0), kPageTokens));
    std::ranges::copy(bytes.subspan(row.size() * static_cast<std::size_t>(layer), row.size()),
                      row.begin());
  }
  return {};
}

Result<void> FakeBackend::copy_page(PageIndex from, PageIndex to, int tokens) {
  if (from == to || tokens < 1 || tokens >= kPageTokens)
    return fail(Fault::kBadInput, "a copy of a whole page, of none of it or onto itself");
  if (must_fail()) return fail(Fault::kDeviceLost, "the fake device failed to copy");
  ++copies;
  for (int layer = 0; layer < options_.layers; ++layer)
    for (int slot = 0; slot < tokens; ++slot) cell(layer, to, slot) = cell(layer, from, slot);
  return {};
}

std::uint64_t& FakeBackend::cell(int layer, PageIndex page, int slot) {
  const int at = (layer * options_.page_count + page) * kPageTokens + slot;
  return cells_[static_cast<std::size_t>(at)];
}

}  // namespace efimd::test
