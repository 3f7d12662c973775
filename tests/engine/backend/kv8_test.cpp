// 8-bit KV: what a page holds, attention over it, and what it does to a model's logits.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "engine/backend/cpu/kernels/half.h"
#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/kv/key_bias.h"
#include "engine/backend/cpu/kv/kv8_memory.h"
#include "engine/backend/cpu/kv/kv_form.h"
#include "engine/backend/cpu/kv/kv_memory.h"
#include "engine/backend/cpu/rope.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/evaluate.h"
#include "tests/engine/backend/memory_model.h"

namespace efimd::test {
namespace {

using namespace engine::cpu;
using engine::Isa;
using engine::kPageTokens;
using engine::KvType;
using engine::ModelShape;
using engine::PageIndex;
using engine::RopePairs;
using engine::TokenId;

constexpr int kPage = kPageTokens;

ModelShape shape_of(int kv_heads, int group, int width, RopePairs pairs, int rope_width) {
  ModelShape shape = tiny_shape();
  shape.layers = 1;
  shape.kv_heads = kv_heads;
  shape.heads = kv_heads * group;
  shape.head_width = width;
  shape.rope_pairs = pairs;
  shape.rope_width = rope_width;
  shape.rope_magnitude = 1.2F;
  return shape;
}

/// A sequence's keys and values, in 8 bits, and as f16 of what the 8 bits say.
struct Both {
  Both(const ModelShape& shape_in, int tokens, bool biased)
      : shape(shape_in),
        bytes(*Kv8Memory::open({1, shape.kv_heads, shape.head_width, tokens / kPage + 1})),
        halves(*KvMemory::open({1, shape.kv_heads, shape.head_width, tokens / kPage + 1})),
        bias_values(biased ? random_values(shape.kv_heads * shape.head_width, 150) : no_values()),
        bias(shape, {}, {bias_values}),
        rope(shape, {}) {
    for (int page = tokens / kPage; page >= 0; --page) pages.push_back(page);
    bias.prepare(tokens);
    for (int c = 0; c < tokens; ++c) put(c);
  }

  static std::vector<float> no_values() { return {}; }
  std::vector<float> random_values(int count, float size) {
    std::normal_distribution<float> normal(0.0F, size);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(random);
    return values;
  }

  void put(int c) {
    const PageIndex page = pages[static_cast<std::size_t>(c / kPage)];
    rope.prepare({{c}});
    for (int head = 0; head < shape.kv_heads; ++head) {
      const std::vector<float> key = random_values(shape.head_width, 3);
      const std::vector<float> value = random_values(shape.head_width, 1);
      bytes.pages().touch(page);
      bytes.put(0, head, page, c % kPage, key.data(), value.data());
      std::vector<std::uint16_t> key_half, value_half;
      for (int e = 0; e < shape.head_width; ++e) {
        key_half.push_back(float_to_half(key_at(head, page, c, e)));
        value_half.push_back(float_to_half(value_at(head, page, c, e)));
        worst_key = std::max(
            worst_key, std::fabs(stored_key(head, page, c, e) - key[static_cast<std::size_t>(e)]));
      }
      halves.pages().touch(page);
      halves.put(0, head, page, c % kPage, key_half.data(), value_half.data());
    }
  }
  const std::int8_t* block(int head, PageIndex page) const {
    return reinterpret_cast<const std::int8_t*>(bytes.head(0, head)) +
           static_cast<std::size_t>(page) * bytes.pages().page_bytes();
  }
  float stored_key(int head, PageIndex page, int c, int e) const {
    const std::int8_t* k = block(head, page);
    const auto* scales = reinterpret_cast<const std::uint16_t*>(
        k + (shape.head_width + bytes.value_width()) * kPage);
    return static_cast<float>(k[e * kPage + c % kPage]) *
           half_to_float(scales[e / 32 * kPage + c % kPage]);
  }
  float key_at(int head, PageIndex page, int c, int e) const {
    float key = stored_key(head, page, c, e);
    if (!bias.has(0)) return key;
    // The bias rotated in double, by the formula of RoPE itself.
    std::vector<float> rotated(bias_values.begin() + head * shape.head_width,
                               bias_values.begin() + (head + 1) * shape.head_width);
    rope.rotate(0, rotated.data());
    return key + rotated[static_cast<std::size_t>(e)];
  }
  float value_at(int head, PageIndex page, int c, int e) const {
    const std::int8_t* v = block(head, page) + shape.head_width * kPage;
    const auto* scales = reinterpret_cast<const std::uint16_t*>(v + bytes.value_width() * kPage) +
                         (shape.head_width + 31) / 32 * kPage;
    return static_cast<float>(v[c % kPage * bytes.value_width() + e]) *
           half_to_float(scales[e / 32 * kPage + c % kPage]);
  }

  ModelShape shape;
  std::mt19937 random{7};
  Kv8Memory bytes;
  KvMemory halves;
  std::vector<float> bias_values;
  KeyBias bias;
  Rope rope;
  std::vector<PageIndex> pages;
  float worst_key = 0;
};

/// The attention of `count` rows from `position` over 8 bits, or over the same in f16.
std::vector<float> attend(Isa isa, const Both& kv, int position, int count,
                          const std::vector<float>& q, KvType type) {
  const ModelShape& shape = kv.shape;
  AttentionPlan plan({.kv_heads = shape.kv_heads,
                      .group = shape.heads / shape.kv_heads,
                      .head_width = shape.head_width,
                      .value_width = kv.bytes.value_width()});
  const engine::StepSequence sequence{0, count, position, kv.pages};
  const std::vector<TokenId> ids(static_cast<std::size_t>(count));
  plan.prepare({ids, {&sequence, 1}, {}});
  std::vector<float> partials(plan.partial_floats(), NAN);
  for (int i = 0; i < plan.tasks(); ++i) {
    AttentionTask task = plan.task(i, q.data(), partials.data());
    const int head = plan.kv_head(i);
    if (type == KvType::kF16) {
      task.kv = kv.halves.head(0, head);
      task.page_stride = kv.halves.page_stride();
      kernels_of(isa).attention(task);
      continue;
    }
    Kv8Source source{};
    source.kv = kv.bytes.head(0, head);
    source.head_bytes = kv.bytes.head_stride();
    source.page_stride = kv.bytes.pages().page_bytes();
    if (kv.bias.has(0)) {
      source.bias_along = kv.bias.along(0, head);
      source.bias_across = kv.bias.across(0, head);
      source.turns = kv.bias.turns(plan.range_begin(i) / kPage);
      source.pairs = kv.bias.pairs();
      source.adjacent_pairs = shape.rope_pairs == RopePairs::kAdjacent;
    }
    kernels_of(isa).attention_kv8(task, source);
  }
  std::vector<float> out(q.size(), NAN);
  for (int row = 0; row < count; ++row)
    plan.merge(row, partials.data(), out.data() + row * shape.heads * shape.head_width);
  return out;
}

void check_reads_as_f16(const ModelShape& shape, int tokens, int count, bool biased) {
  Both kv(shape, tokens, biased);
  std::vector<float> q = kv.random_values(count * shape.heads * shape.head_width, 0.1F);
  for (const Isa isa : isas_here()) {
    INFO(isa_name(isa) << ", E " << shape.head_width << ", G " << shape.heads / shape.kv_heads
                       << ", rope " << shape.rope_width << (biased ? ", bias" : ""));
    const auto eight = attend(isa, kv, tokens - count, count, q, KvType::kQ8);
    const auto half = attend(isa, kv, tokens - count, count, q, KvType::kF16);
    if (!biased) {
      check_same_bits(eight, half);
      continue;
    }
    // The rotated bias is summed in another order: now and then f16 rounds to the other side.
    std::vector<Expected> expected;
    for (const float value : half) expected.push_back({value, 4e-3 * (std::fabs(value) + 1)});
    check_close(eight, expected);
  }
}

/// Mean divergence over the tokens of a prompt with 8-bit KV from f16.
double divergence_in_8_bits(const MemoryModel& model, Isa isa) {
  const std::vector<TokenId> tokens = random_tokens(120, model.shape.vocabulary, 3);
  const auto logits = [&](KvType type) {
    return evaluate(*device(model, isa, 2, type), model, tokens, {64}, pages_from(0, 1));
  };
  const std::vector<float> half = logits(KvType::kF16), eight = logits(KvType::kQ8);
  return mean_divergence(half, eight, model.shape.vocabulary);
}

}  // namespace

TEST_CASE("attention over 8-bit KV is that over the f16 that its bytes say, bit for bit") {
  for (const int width : {8, 16, 40, 64, 80, 128, 256})
    check_reads_as_f16(shape_of(2, 3, width, RopePairs::kHalves, width), 70, 5, false);
  check_reads_as_f16(shape_of(1, 7, 64, RopePairs::kHalves, 64), 1100, 40, false);
}

TEST_CASE("keys that are kept without their bias are read with it, rotated to their place") {
  for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kAdjacent})
    for (const int rope_width : {64, 32, 0})
      check_reads_as_f16(shape_of(2, 3, 64, pairs, rope_width), 1100, 5, true);
}

TEST_CASE("no element of 8-bit KV is off by more than half a scale") {
  const Both kv(shape_of(2, 2, 80, RopePairs::kHalves, 80), 100, false);
  CHECK(kv.worst_key > 0);
  CHECK(kv.worst_key <= 0.5F * 15 / 127);  // keys reach 15 at most, five times their deviation
}

TEST_CASE("elements of any size are kept finite in 8 bits, and zeros as zeros") {
  Kv8Memory memory = *Kv8Memory::open({1, 1, 32, 1});
  memory.pages().touch(0);
  std::vector<float> key(32, 0.0F), value(32, 1e30F);
  value[1] = -1e30F;
  value[2] = 1e-30F;
  memory.put(0, 0, 0, 3, key.data(), value.data());
  const auto* k = reinterpret_cast<const std::int8_t*>(memory.head(0, 0));
  const std::int8_t* v = k + 32 * kPage;
  const auto* scales = reinterpret_cast<const std::uint16_t*>(v + 32 * kPage);
  CHECK(k[3] == 0);
  CHECK(scales[3] == 0);
  CHECK(v[3 * 32] == 127);
  CHECK(v[3 * 32 + 1] == -127);
  CHECK(v[3 * 32 + 2] == 0);
  CHECK(half_to_float(scales[kPage + 3]) * 127 < 65504);
}

TEST_CASE("a copied 8-bit page holds the first tokens of all layers and leaves the rest") {
  Kv8Memory memory = *Kv8Memory::open({2, 2, 40, 2});
  const auto fill = [&](PageIndex page, float value) {
    memory.pages().touch(page);
    for (int layer = 0; layer < 2; ++layer)
      for (int head = 0; head < 2; ++head)
        for (int slot = 0; slot < kPage; ++slot) {
          const std::vector<float> row(40, value + static_cast<float>(slot));
          memory.put(layer, head, page, slot, row.data(), row.data());
        }
  };
  fill(0, 1000);
  fill(1, 10);
  const auto bytes_of = [&](PageIndex page) {
    const auto bytes = memory.pages().page(page);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const std::vector<std::byte> source = bytes_of(0), before = bytes_of(1);
  memory.copy(0, 1, 5);
  const std::vector<std::byte> after = bytes_of(1);
  std::size_t copied = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool same = after[i] == source[i] || after[i] == before[i];
    CHECK(same);
    if (after[i] != before[i]) ++copied;
  }
  memory.copy(0, 1, kPage);
  CHECK(bytes_of(1) == source);
  // Scales: of each head 2 + 2 groups (of 40 and 48 elements), 5 tokens; the quants are all 127.
  CHECK(copied >= 4 * 4 * 5);
  CHECK(copied <= 2 * 4 * 4 * 5);
}

TEST_CASE("a page of 8-bit KV takes little more than half of f16's bytes") {
  const ModelShape shape = shape_of(2, 7, 64, RopePairs::kHalves, 64);
  CHECK(engine::cpu_page_bytes(shape, KvType::kF16) == 2U * 2 * 64 * 2 * kPage);
  CHECK(engine::cpu_page_bytes(shape, KvType::kQ8) == 2U * 2 * (64 + 4) * kPage);
  const MemoryModel model(tiny_shape(), {});
  const auto backend = device(model, isas_here().back(), 2, KvType::kQ8);
  CHECK(backend->page_bytes() == engine::cpu_page_bytes(model.shape, KvType::kQ8));
  CHECK(backend->page_format().find("q8") == 0);
}

TEST_CASE("8-bit KV hardly changes what a model says, and its results do not depend on the steps") {
  const MemoryModel model(tiny_shape(), {engine::TensorType::kQ8_0, true, 4});
  const std::vector<TokenId> tokens = random_tokens(150, model.shape.vocabulary, 2);
  for (const Isa isa : isas_here()) {
    INFO(isa_name(isa));
    CHECK(divergence_in_8_bits(model, isa) < 1e-3);
    const auto backend = device(model, isa, 2, KvType::kQ8);
    const auto whole = evaluate(*backend, model, tokens, {64}, pages_from(0, 1));
    check_same_bits(evaluate(*backend, model, tokens, {17, 1, 4, 33}, pages_from(20, 3)), whole);
  }
}

TEST_CASE("a key bias of hundreds costs 8-bit KV nothing, for it is not quantized") {
  MemoryModel model(tiny_shape(), {engine::TensorType::kF32, true, 4});
  for (auto& layer : model.weights.layers) {
    auto* bias = reinterpret_cast<float*>(const_cast<std::byte*>(layer.key_bias.data));
    for (int i = 0; i < layer.key_bias.cols; i += 8) bias[i] += i % 16 == 0 ? 300.0F : -200.0F;
  }
  const Isa isa = isas_here().back();
  // What it would be with the bias in the quants: head norms keep the two together.
  const double apart = divergence_in_8_bits(model, isa);
  INFO("divergence with the bias kept apart: " << apart);
  CHECK(apart < 2e-3);
}

TEST_CASE("heads too wide for 8-bit KV are refused with what to do") {
  ModelShape shape = tiny_shape();
  shape.head_width = 264;
  const auto refused =
      make_kv_form(shape, scalar_kernels(), {.type = KvType::kQ8, .page_count = 1});
  REQUIRE(!refused);
  CHECK(refused.error().fault == Fault::kUnsupported);
  CHECK(refused.error().message().find("f16") != std::string::npos);
}

}  // namespace efimd::test
