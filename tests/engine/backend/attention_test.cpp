#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <span>

#include "engine/backend/cpu/kernels/half.h"
#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/kv/attention_plan.h"
#include "engine/backend/cpu/kv/kv_memory.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/memory_model.h"

namespace efimd::test {
namespace {

using namespace engine::cpu;
using engine::Isa;
using engine::kPageTokens;
using engine::PageIndex;

constexpr int kP = kPageTokens;

/// One layer's KV of one sequence, whose pages lie in random order in a memory full of NaN.
struct Cache {
  Cache(int tokens_in, int kv_heads_in, int group_in, int width_in, float size, unsigned seed)
      : tokens(tokens_in),
        kv_heads(kv_heads_in),
        group(group_in),
        width(width_in),
        memory(*KvMemory::open({1, kv_heads_in, width_in, tokens_in / kP + 3})),
        pages(static_cast<std::size_t>(memory.pages().page_count())) {
    std::mt19937 random(seed);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), random);
    poison();
    std::normal_distribution<float> normal(0.0F, size);
    for (int c = 0; c < tokens; ++c)
      for (int head = 0; head < kv_heads; ++head) put(c, head, normal, random);
  }

  void poison() {
    const std::vector<std::uint16_t> nan(static_cast<std::size_t>(width), 0x7E00);
    for (const PageIndex page : pages)
      for (int slot = 0; slot < kP; ++slot)
        for (int head = 0; head < kv_heads; ++head)
          memory.put(0, head, page, slot, nan.data(), nan.data());
  }
  template <class Normal>
  void put(int c, int head, Normal& normal, std::mt19937& random) {
    std::vector<std::uint16_t> key;
    std::vector<std::uint16_t> value;
    for (int e = 0; e < width; ++e) {
      key.push_back(float_to_half(normal(random)));
      value.push_back(float_to_half(normal(random)));
    }
    memory.put(0, head, pages[static_cast<std::size_t>(c / kP)], c % kP, key.data(), value.data());
    keys.push_back(key);
    values.push_back(value);
  }
  double k(int c, int head, int e) const { return at(keys, c, head, e); }
  double v(int c, int head, int e) const { return at(values, c, head, e); }
  double at(const std::vector<std::vector<std::uint16_t>>& of, int c, int head, int e) const {
    return half_to_float(
        of[static_cast<std::size_t>(c * kv_heads + head)][static_cast<std::size_t>(e)]);
  }

  int tokens, kv_heads, group, width;
  KvMemory memory;
  std::vector<PageIndex> pages;
  std::vector<std::vector<std::uint16_t>> keys, values;  ///< [c][head]
};

/// The attention of `count` rows from `position`, as the device runs it.
std::vector<float> attend(Isa isa, const Cache& cache, int position, int count,
                          const std::vector<float>& q, int window = 0) {
  AttentionPlan plan(
      {cache.kv_heads, cache.group, cache.width, cache.memory.value_width(), window});
  const engine::StepSequence sequence{0, count, position, cache.pages};
  const std::vector<engine::TokenId> ids(static_cast<std::size_t>(count));
  plan.prepare({ids, {&sequence, 1}, {}});
  std::vector<float> partials(plan.partial_floats(), NAN);
  for (int i = plan.tasks() - 1; i >= 0; --i) {
    AttentionTask task = plan.task(i, q.data(), partials.data());
    task.kv = cache.memory.head(0, plan.kv_head(i));
    task.page_stride = cache.memory.page_stride();
    kernels_of(isa).attention(task);
  }
  std::vector<float> out(q.size(), NAN);
  for (int row = 0; row < count; ++row)
    plan.merge(row, partials.data(), out.data() + row * cache.kv_heads * cache.group * cache.width);
  return out;
}

/// softmax(q K) V of one query over tokens first .. visible - 1, in f64.
void reference_head(const Cache& cache, int first, int visible, int kv_head, const float* q,
                    std::vector<Expected>& out) {
  std::vector<double> weights;
  for (int c = first; c < visible; ++c) {
    double score = 0;
    for (int e = 0; e < cache.width; ++e) score += q[e] * cache.k(c, kv_head, e);
    weights.push_back(score);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  // A score's rounding error, in f32 over E products, multiplies its weight.
  const double tolerance = 3e-6 * std::max(1.0, std::fabs(largest));
  for (int e = 0; e < cache.width; ++e) {
    double value = 0;
    double size = 0;
    for (int c = first; c < visible; ++c) {
      const double part =
          weights[static_cast<std::size_t>(c - first)] / sum * cache.v(c, kv_head, e);
      value += part;
      size += std::fabs(part);
    }
    out.push_back({value, tolerance * (size + 1)});
  }
}

std::vector<Expected> reference(const Cache& cache, int position, int count,
                                const std::vector<float>& q, int window) {
  std::vector<Expected> expected;
  const float* query = q.data();
  for (int row = 0; row < count; ++row) {
    const int visible = position + row + 1;
    const int first = window > 0 ? std::max(0, visible - window) : 0;
    for (int head = 0; head < cache.kv_heads * cache.group; ++head, query += cache.width)
      reference_head(cache, first, visible, head / cache.group, query, expected);
  }
  return expected;
}

std::vector<float> queries(const Cache& cache, int count, float size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, size);
  std::vector<float> q(
      static_cast<std::size_t>(count * cache.kv_heads * cache.group * cache.width));
  for (float& value : q) value = normal(random);
  return q;
}

void check_attention(const Cache& cache, int position, int count, float size, int window = 0) {
  const std::vector<float> q = queries(cache, count, size, 11);
  const std::vector<Expected> expected = reference(cache, position, count, q, window);
  for (const Isa isa : isas_here()) {
    INFO(isa_name(isa) << ", " << count << " rows from " << position << ", " << cache.kv_heads
                       << " KV heads, G " << cache.group << ", E " << cache.width << ", window "
                       << window);
    check_close(attend(isa, cache, position, count, q, window), expected);
  }
}

}  // namespace

TEST_CASE("attention agrees with f64 around the borders of pages and ranges") {
  const Cache cache(1100, 2, 2, 64, 1, 1);
  for (const int tokens : {1, 2, kP - 1, kP, kP + 1, 2 * kP, 511, 512, 513, 1000, 1025})
    check_attention(cache, tokens - 1, 1, 0.125F);
}

TEST_CASE("attention agrees with f64 for steps that straddle pages and ranges") {
  const Cache cache(600, 2, 3, 32, 1, 2);
  for (const int position : {0, 20, 31, 32, 500, 511})
    for (const int count : {2, 5, 17, 33, 64}) check_attention(cache, position, count, 0.2F);
}

TEST_CASE("attention agrees with f64 for every kind of group and head") {
  for (const auto& [kv_heads, group] : {std::pair{4, 1}, {2, 7}, {1, 8}, {1, 48}, {1, 71}})
    for (const int width : {8, 16, 40, 64, 80, 128})
      check_attention(Cache(70, kv_heads, group, width, 1, 3), 60, 4, 0.1F);
}

TEST_CASE("a window hides what is behind it, around the borders of pages and ranges") {
  const Cache cache(1200, 2, 3, 32, 1, 6);
  for (const int window : {1, 2, 31, 32, 33, 100, 512, 513, 700})
    for (const int position : {0, 30, 95, 510, 1100})
      for (const int count : {1, 5, 40}) check_attention(cache, position, count, 0.2F, window);
}

TEST_CASE("attention through a window is the same bit for bit alone and in every step") {
  const Cache cache(1100, 2, 7, 64, 1, 7);
  for (const int window : {20, 64, 600}) {
    const std::vector<float> q = queries(cache, 64, 0.125F, 13);
    const std::size_t row_size = q.size() / 64;
    for (const Isa isa : isas_here()) {
      const std::vector<float> together = attend(isa, cache, 1000, 64, q, window);
      for (int row = 0; row < 64; ++row) {
        INFO(isa_name(isa) << ", window " << window << ", row " << row);
        const auto begin = q.begin() + static_cast<std::ptrdiff_t>(row_size) * row;
        const std::vector<float> one(begin, begin + static_cast<std::ptrdiff_t>(row_size));
        check_same_bits(
            attend(isa, cache, 1000 + row, 1, one, window),
            std::span(together).subspan(row_size * static_cast<std::size_t>(row), row_size));
      }
    }
  }
}

TEST_CASE("scores of thousands leave finite results") {
  const Cache cache(200, 1, 2, 64, 8, 4);
  check_attention(cache, 150, 5, 40);
}

TEST_CASE("attention of a row is the same bit for bit alone and in every step", "[one-thread]") {
  for (const int group : {1, 7}) {
    const Cache cache(1100, 2, group, 64, 1, 5);
    for (const int position : {0, 480, 1000}) {
      const std::vector<float> q = queries(cache, 64, 0.125F, 12);
      const std::size_t row_size = q.size() / 64;
      for (const Isa isa : isas_here()) {
        const std::vector<float> together = attend(isa, cache, position, 64, q);
        for (const int count : {1, 3, 32}) {
          INFO(isa_name(isa) << ", steps of " << count << " from " << position);
          for (int row = 0; row + count <= 64; row += count) {
            const std::size_t begin = static_cast<std::size_t>(row) * row_size;
            const std::size_t size = static_cast<std::size_t>(count) * row_size;
            const std::vector<float> some(q.begin() + static_cast<std::ptrdiff_t>(begin),
                                          q.begin() + static_cast<std::ptrdiff_t>(begin + size));
            check_same_bits(attend(isa, cache, position + row, count, some),
                            std::span(together).subspan(begin, size));
          }
        }
      }
    }
  }
}

TEST_CASE("a copied page holds the first tokens of all layers and leaves the rest") {
  KvMemory memory = *KvMemory::open({2, 2, 24, 3});
  const auto fill = [&](PageIndex page, std::uint16_t from) {
    memory.pages().touch(page);
    for (int layer = 0; layer < 2; ++layer)
      for (int head = 0; head < 2; ++head)
        for (int slot = 0; slot < kP; ++slot) {
          const auto mark = static_cast<std::uint16_t>(from + layer * 1000 + head * 100 + slot);
          const std::vector<std::uint16_t> row(24, mark);
          memory.put(layer, head, page, slot, row.data(), row.data());
        }
  };
  fill(0, 0);
  fill(2, 5000);
  memory.copy(0, 2, 5);
  for (int layer = 0; layer < 2; ++layer)
    for (int head = 0; head < 2; ++head)
      for (int slot = 0; slot < kP; ++slot) {
        const std::uint16_t* k = memory.head(layer, head) + 2 * memory.page_stride();
        const std::uint16_t* v = k + 24 * kP;
        const int mark = (slot < 5 ? 0 : 5000) + layer * 1000 + head * 100 + slot;
        for (int e = 0; e < 24; ++e) {
          CHECK(k[e * kP + slot] == mark);
          CHECK(v[slot * memory.value_width() + e] == mark);
        }
      }
}

TEST_CASE("a page that was given back is zeros, and its neighbours are what they were") {
  // Smaller than a page of the system, as large, and larger with odd ends.
  const std::size_t page_bytes = GENERATE(std::size_t{1024}, std::size_t{4096}, std::size_t{13312});
  PageMemory pages = *PageMemory::open(9, page_bytes);
  const auto all_are = [](std::span<const std::byte> bytes, std::byte value) {
    return std::ranges::all_of(bytes, [value](std::byte byte) { return byte == value; });
  };
  for (PageIndex page = 0; page < 9; ++page)
    std::ranges::fill(pages.page_to_write(page), std::byte{0x5a});
  for (const PageIndex page : {0, 3, 4, 8}) pages.give_back(page);
  for (PageIndex page = 0; page < 9; ++page) {
    INFO("page " << page << " of " << page_bytes << " bytes");
    const bool given = page == 0 || page == 3 || page == 4 || page == 8;
    CHECK(all_are(pages.page(page), given ? std::byte{} : std::byte{0x5a}));
  }
}

TEST_CASE("page memory is counted as it is touched and refused when there is none") {
  KvMemory memory = *KvMemory::open({2, 2, 32, 100000});
  PageMemory& pages = memory.pages();
  CHECK(pages.resident_bytes() == 0);
  pages.touch(7);
  pages.touch(7);
  CHECK(pages.resident_bytes() == pages.page_bytes());
  pages.touch(99999);
  CHECK(pages.resident_bytes() == 2 * pages.page_bytes());
  pages.give_back(7);
  pages.give_back(7);
  CHECK(pages.resident_bytes() == pages.page_bytes());

  const auto refused = KvMemory::open({1000, 1000, 1024, 2000000000});
  REQUIRE(!refused);
  CHECK(refused.error().fault == Fault::kNoMemory);
  CHECK(refused.error().what.find("2000000000 pages of") != std::string::npos);
}

}  // namespace efimd::test
