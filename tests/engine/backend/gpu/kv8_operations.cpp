#include "tests/engine/backend/gpu/kv8_operations.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/backend/cpu/kernels/half.h"
#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/kv/attention_plan.h"
#include "engine/backend/cpu/kv/kv_form.h"
#include "engine/backend/gpu/gpu_attention.h"
#include "engine/backend/gpu/gpu_kv.h"
#include "engine/backend/rope_frequencies.h"
#include "kernels/sizes.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/gpu/buffers.h"
#include "tests/engine/backend/memory_model.h"

namespace efimd::test {
namespace {

using namespace engine::gpu;
using engine::kPageTokens;
using engine::KvType;
using engine::ModelShape;
using engine::PageIndex;
using engine::RopePairs;
using engine::cpu::half_to_float;

constexpr int kP = kPageTokens;

std::size_t size(int count) { return static_cast<std::size_t>(count); }
std::uint32_t number(int count) { return static_cast<std::uint32_t>(count); }
int groups_of(int width) { return (width + 31) / 32; }

enum class Half { kKey, kValue };

/// Where a device keeps an element's quant and its scale, in bytes of a layer.
struct DeviceLayout {
  int kv_heads, width;
  std::size_t quant_bytes() const { return (size(width) + 3) / 4 * 4; }  // of a token
  std::size_t scale_bytes() const { return (size(groups_of(width)) + 1) / 2 * 4; }
  std::size_t block(PageIndex page, int head, Half half) const {
    return ((size(page) * size(kv_heads) + size(head)) * 2 + (half == Half::kKey ? 0 : 1)) *
           size(kP) * (quant_bytes() + scale_bytes());
  }
  std::size_t quant(PageIndex page, int head, Half half, int slot, int e) const {
    return block(page, head, half) + size(slot) * quant_bytes() + size(e);
  }
  std::size_t scale(PageIndex page, int head, Half half, int slot, int e) const {
    return block(page, head, half) + size(kP) * quant_bytes() + size(slot) * scale_bytes() +
           size(e / 32) * 2;
  }
};

struct Element {
  std::int8_t quant = 0;
  std::uint16_t scale = 0;
  double value() const { return quant * static_cast<double>(half_to_float(scale)); }
};

Element device_element(const std::vector<std::byte>& bytes, const DeviceLayout& layout,
                       PageIndex page, int head, Half half, int slot, int e) {
  Element element;
  std::memcpy(&element.quant, bytes.data() + layout.quant(page, head, half, slot, e), 1);
  std::memcpy(&element.scale, bytes.data() + layout.scale(page, head, half, slot, e), 2);
  return element;
}

/// The CPU's 8-bit KV of one layer.
struct CpuKv {
  CpuKv(const ModelShape& shape_in, int page_count, const std::vector<float>& bias)
      : shape(shape_in),
        form(*engine::cpu::make_kv_form(shape, engine::cpu::kernels_of(engine::Isa::kScalar),
                                        {.type = KvType::kQ8,
                                         .page_count = page_count,
                                         .step_tokens_max = 64,
                                         .key_biases = {bias}})) {
    for (PageIndex page = 0; page < page_count; ++page) form->pages().touch(page);
  }
  Element element(PageIndex page, int head, Half half, int slot, int e) const {
    const std::size_t keys = size(shape.head_width) * size(kP);
    const std::size_t values = size(form->value_width()) * size(kP);
    const std::size_t key_scales = 2 * size(groups_of(shape.head_width)) * size(kP);
    const std::size_t block = form->pages().page_bytes() / size(shape.kv_heads);
    const auto bytes = form->pages().page(page).subspan(size(head) * block);
    const bool key = half == Half::kKey;
    const std::size_t quant =
        key ? size(e * kP + slot) : keys + size(slot) * size(form->value_width()) + size(e);
    const std::size_t scale = keys + values + (key ? 0 : key_scales) + 2 * size(e / 32 * kP + slot);
    Element element;
    std::memcpy(&element.quant, &bytes[quant], 1);
    std::memcpy(&element.scale, &bytes[scale], 2);
    return element;
  }
  ModelShape shape;
  std::unique_ptr<engine::cpu::KvForm> form;
};

ModelShape shape_of(int kv_heads, int group, int width) {
  ModelShape shape = tiny_shape();
  shape.layers = 1;
  shape.kv_heads = kv_heads;
  shape.heads = kv_heads * group;
  shape.head_width = width;
  shape.rope_width = 0;
  return shape;
}

/// Rows [T][Hk][E] of which each shows another edge.
std::vector<float> edges(const ModelShape& shape, int tokens, unsigned seed) {
  const std::size_t row = size(shape.kv_heads) * size(shape.head_width);
  std::vector<float> values = random_values(size(tokens) * row, seed);
  const auto scale = [&](int token, float by) {
    for (std::size_t i = 0; i < row; ++i) values[size(token) * row + i] *= by;
  };
  scale(0, 0.0F);
  scale(1, 1e30F);  // held at 60000
  scale(2, 1e-4F);  // subnormal scales
  scale(3, 1e-9F);  // no scale is small enough
  scale(4, 3000.0F);
  values[5 * row] = INFINITY;
  values[6 * row] = 127.0F * 0.25F;  // the scale is met exactly, what else is there are ties
  for (std::size_t i = 1; i < row; ++i)
    values[6 * row + i] = (static_cast<float>(i % 64) - 31.5F) * 0.25F;
  return values;
}

void check_store(GpuDevice& device, int width) {
  constexpr int kTokens = 12, kPages = 2;
  const ModelShape shape = shape_of(2, 1, width);
  const DeviceLayout layout{shape.kv_heads, width};
  const auto k = edges(shape, kTokens, 1), v = edges(shape, kTokens, 2);
  std::vector<std::uint32_t> places;
  for (int t = 0; t < kTokens; ++t) places.push_back(number(t * 5 % (kPages * kP)));
  const std::size_t bytes = size(kPages) * layer_page_bytes(shape, KvType::kQ8);
  const std::size_t row = size(shape.kv_heads) * size(width);
  std::vector<float> qkv;
  for (int t = 0; t < kTokens; ++t) {
    qkv.resize(qkv.size() + size(shape.heads * width));
    for (const auto* half : {&k, &v}) {
      const auto from = half->begin() + static_cast<std::ptrdiff_t>(size(t) * row);
      qkv.insert(qkv.end(), from, from + static_cast<std::ptrdiff_t>(row));
    }
  }
  const Range rest = put(device, std::vector<float>(size(width)));
  const Range kv = put(device, std::vector<std::byte>(bytes, std::byte{0x55}));
  Operation operation;
  operation.kernel = Kernel::kStoreRows;
  operation.type = static_cast<std::uint32_t>(kernels::Kv::kQ8);
  operation.groups = {kTokens, number(shape.heads + 2 * shape.kv_heads), 1};
  operation.operands = {put(device, qkv), rest, rest, rest, kv, put(device, places)};
  operation.set_sizes(kernels::StoreSizes{number(shape.heads), number(shape.kv_heads),
                                          number(width), 0, 0, 0, 0, 0, 1});
  REQUIRE(device.run({&operation, 1}));
  const auto stored = get<std::byte>(device, kv, bytes);

  CpuKv cpu(shape, kPages, {});
  for (int t = 0; t < kTokens; ++t) {
    const auto page = static_cast<PageIndex>(places[size(t)] / kP);
    const int slot = static_cast<int>(places[size(t)] % kP);
    cpu.form->put(0, t, page, slot, k.data() + size(t) * row, v.data() + size(t) * row);
    for (int head = 0; head < shape.kv_heads; ++head)
      for (const Half half : {Half::kKey, Half::kValue}) {
        for (int e = 0; e < width; ++e) {
          const float value = (half == Half::kKey ? k : v)[size(t) * row + size(head * width + e)];
          const Element got = device_element(stored, layout, page, head, half, slot, e);
          const Element wanted = cpu.element(page, head, half, slot, e);
          INFO("E " << width << ", token " << t << ", element " << e << ": " << value << " as "
                    << int{got.quant} << ", on the CPU " << int{wanted.quant});
          CHECK(got.scale == wanted.scale);
          if (got.quant == wanted.quant) continue;
          // A division that is off by a bit moves a tie.
          const double level =
              static_cast<double>(value) / static_cast<double>(half_to_float(got.scale));
          CHECK(std::fabs(level - got.quant) < 0.5 + 1e-4);
        }
        for (std::size_t e = size(width); e < layout.quant_bytes(); ++e)
          CHECK(stored[layout.quant(page, head, half, slot, 0) + e] == std::byte{0});
        for (std::size_t i = 2 * size(groups_of(width)); i < layout.scale_bytes(); ++i)
          CHECK(stored[layout.scale(page, head, half, slot, 0) + i] == std::byte{0});
      }
  }
  // Other slots are left alone.
  CHECK(stored[layout.quant(0, 0, Half::kKey, 1, 0)] == std::byte{0x55});
}

struct AttentionCase {
  int width, rope_width;
  RopePairs pairs;
  float bias;  ///< its deviation; 0: none
  float query;
  int window;  ///< 0: all
};

/// A sequence of which the last rows attend.
struct Scene {
  static constexpr int kTokens = 150, kRows = 3, kPages = kTokens / kP + 1;

  explicit Scene(const AttentionCase& of_in)
      : of(of_in),
        shape(shape_of(2, 3, of.width)),
        bias(of.bias > 0 ? random_values(size(shape.kv_heads) * size(of.width), 4)
                         : std::vector<float>()),
        kv(with_rope(), kPages, scaled(bias)) {
    shape = kv.shape;
    for (int page = kPages; page-- > 0;) pages.push_back(page);
    kv.form->prepare(kTokens);
    const std::size_t row = size(shape.kv_heads) * size(of.width);
    auto keys = random_values(size(kTokens) * row, 5), values = random_values(keys.size(), 6);
    for (float& key : keys) key *= 3;
    for (int c = 0; c < kTokens; ++c)
      kv.form->put(0, c, pages[size(c / kP)], c % kP, keys.data() + size(c) * row,
                   values.data() + size(c) * row);
    q = random_values(size(kRows) * size(shape.heads) * size(of.width), 7);
    for (float& value : q) value *= of.query;
  }
  ModelShape with_rope() {
    shape.rope_width = of.rope_width;
    shape.rope_pairs = of.pairs;
    shape.rope_magnitude = 1.2F;
    shape.attention_window = of.window;
    return shape;
  }
  const std::vector<float>& scaled(std::vector<float>& values) const {
    for (float& value : values) value *= of.bias;
    return values;
  }

  int position(int row) const { return kTokens - kRows + row; }
  int hidden(int row) const {
    return of.window > 0 ? std::max(0, position(row) + 1 - of.window) : 0;
  }
  double element(int c, int head, Half half, int e) const {
    return kv.element(pages[size(c / kP)], head, half, c % kP, e).value();
  }
  /// The bias as RoPE rotates it for a token.
  std::vector<double> turned_bias(int c, int head) const {
    const auto* from = bias.data() + head * of.width;
    std::vector<double> turned(from, from + of.width);
    const auto frequencies = engine::rope_frequencies(shape, {});
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const bool adjacent = of.pairs == RopePairs::kAdjacent;
      const std::size_t first = adjacent ? 2 * i : i;
      const std::size_t second = adjacent ? 2 * i + 1 : i + frequencies.size();
      const double cosine = 1.2F * std::cos(c * frequencies[i]);
      const double sine = 1.2F * std::sin(c * frequencies[i]);
      const double a = turned[first], b = turned[second];
      turned[first] = a * cosine - b * sine;
      turned[second] = a * sine + b * cosine;
    }
    return turned;
  }
  /// [T][H][E] in f64.
  std::vector<double> expected() const;
  std::vector<float> of_cpu() const;
  std::vector<float> of_device(GpuDevice& device, bool whole) const;

  AttentionCase of;
  ModelShape shape;
  std::vector<float> bias;
  CpuKv kv;
  std::vector<PageIndex> pages;
  std::vector<float> q;
};

std::vector<double> Scene::expected() const {
  std::vector<double> attended;
  for (int row = 0; row < kRows; ++row)
    for (int h = 0; h < shape.heads; ++h) {
      const int head = h / (shape.heads / shape.kv_heads);
      std::vector<double> scores;
      for (int c = hidden(row); c <= position(row); ++c) {
        const auto added =
            bias.empty() ? std::vector<double>(size(of.width)) : turned_bias(c, head);
        double score = 0;
        for (int e = 0; e < of.width; ++e)
          score += static_cast<double>(q[size((row * shape.heads + h) * of.width + e)]) *
                   (element(c, head, Half::kKey, e) + added[size(e)]);
        scores.push_back(score);
      }
      const double most = *std::ranges::max_element(scores);
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - most);
      for (int e = 0; e < of.width; ++e) {
        double value = 0;
        for (std::size_t i = 0; i < scores.size(); ++i)
          value +=
              scores[i] / sum * element(hidden(row) + static_cast<int>(i), head, Half::kValue, e);
        attended.push_back(value);
      }
    }
  return attended;
}

std::vector<float> Scene::of_cpu() const {
  using namespace engine::cpu;
  AttentionPlan plan({.kv_heads = shape.kv_heads,
                      .group = shape.heads / shape.kv_heads,
                      .head_width = of.width,
                      .value_width = kv.form->value_width(),
                      .window = of.window});
  const engine::StepSequence sequence{0, kRows, position(0), pages};
  const std::vector<engine::TokenId> ids(kRows);
  plan.prepare({ids, {&sequence, 1}, {}});
  std::vector<float> partials(plan.partial_floats()), attended(q.size());
  for (int i = 0; i < plan.tasks(); ++i) kv.form->attend(0, plan, i, q.data(), partials.data());
  for (int row = 0; row < kRows; ++row)
    plan.merge(row, partials.data(), attended.data() + row * shape.heads * of.width);
  return attended;
}

std::vector<float> Scene::of_device(GpuDevice& device, bool whole) const {
  constexpr int kSplitPages = 2;
  const int splits = whole ? 1 : (kPages + kSplitPages - 1) / kSplitPages;
  const DeviceLayout layout{shape.kv_heads, of.width};
  // What no token was stored in may hold anything.
  std::vector<std::byte> bytes(size(kPages) * layer_page_bytes(shape, KvType::kQ8),
                               std::byte{0xFF});
  for (int c = 0; c < kTokens; ++c)
    for (int head = 0; head < shape.kv_heads; ++head)
      for (const Half half : {Half::kKey, Half::kValue}) {
        const PageIndex page = pages[size(c / kP)];
        std::memset(bytes.data() + layout.quant(page, head, half, c % kP, 0), 0,
                    layout.quant_bytes());
        for (int e = 0; e < of.width; ++e) {
          const Element element = kv.element(page, head, half, c % kP, e);
          std::memcpy(bytes.data() + layout.quant(page, head, half, c % kP, e), &element.quant, 1);
          std::memcpy(bytes.data() + layout.scale(page, head, half, c % kP, e), &element.scale, 2);
        }
      }
  std::vector<std::uint32_t> rows, table(pages.begin(), pages.end());
  for (int row = 0; row < kRows; ++row) rows.insert(rows.end(), {number(position(row)), 0});
  const auto frequencies = engine::rope_frequencies(shape, {});
  const auto rope_table = bias_rope_table(shape, frequencies, kPages);
  std::vector<float> qkv;  // of which attention reads no keys and values
  const std::size_t queries = size(shape.heads * of.width);
  for (int row = 0; row < kRows; ++row) {
    const auto from = q.begin() + static_cast<std::ptrdiff_t>(size(row) * queries);
    qkv.insert(qkv.end(), from, from + static_cast<std::ptrdiff_t>(queries));
    qkv.resize(qkv.size() + 2 * size(shape.kv_heads * of.width), NAN);
  }
  const Range at_q = put(device, qkv), at_rows = put(device, rows);
  const Range partials = put(
      device, std::vector<float>(size(kRows * shape.heads * splits) * (size(of.width) + 2), NAN));
  const Range attended = put(device, std::vector<float>(q.size(), NAN));
  Operation operations[2];
  operations[0].operands = {at_q,
                            put(device, bytes),
                            put(device, table),
                            at_rows,
                            partials,
                            bias.empty() ? at_q : put(device, bias),
                            rope_table.empty() ? at_q : put(device, rope_table)};
  set_attention(operations[0], kernels::Kv::kQ8,
                kernels::AttentionSizes{
                    number(shape.heads), number(shape.kv_heads), number(of.width),
                    of.window > 0 ? number(of.window) : 1U << 30U, kSplitPages, number(splits),
                    bias.empty() ? 0 : static_cast<std::uint32_t>(frequencies.size()),
                    of.pairs == RopePairs::kAdjacent ? 1U : 0U, kRows},
                device.limits());
  operations[1].kernel = Kernel::kMerge;
  const std::uint32_t groups =
      (number(shape.heads * of.width) + kernels::kFormElements - 1) / kernels::kFormElements;
  operations[1].groups = {kRows, groups, 1};
  operations[1].operands = {partials, at_rows, attended, attended, attended, attended};
  operations[1].set_sizes(kernels::MergeSizes{
      number(shape.heads), number(of.width), kSplitPages, number(splits), 1.0F, {1, 0, 0}});
  REQUIRE(device.run(operations));
  return get<float>(device, attended, q.size());
}

void check_attention(GpuDevice& device, const AttentionCase& of) {
  INFO("E " << of.width << ", rope " << of.rope_width << ", bias " << of.bias << ", window "
            << of.window);
  const Scene scene(of);
  const auto got = scene.of_device(device, false);
  check_same_bits(scene.of_device(device, true), got);
  // Scores are sums in f32: what they are off by, shares of values are, too.
  const double of_scores = 2e-5 + 2e-6 * static_cast<double>(of.bias * of.query) * of.width;
  std::vector<Expected> exact, cpu;
  for (const double value : scene.expected())
    exact.push_back({value, of_scores * (std::fabs(value) + 1)});
  check_close(got, exact);
  if (of.bias > 10) return;  // keys of hundreds in f16 are off by a tenth
  for (const float value : scene.of_cpu()) cpu.push_back({value, 4e-3 * (std::fabs(value) + 1)});
  check_close(got, cpu);
}

}  // namespace

void check_store_in_8_bits(GpuDevice& device) {
  for (const int width : {6, 8, 32, 40, 64, 80, 96, 128, 256}) check_store(device, width);
}

void check_attention_in_8_bits(GpuDevice& device) {
  for (const int width : {6, 8, 40, 64, 80, 128, 256})
    check_attention(device, {width, width, RopePairs::kHalves, 0, 0.1F, 0});
  for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kAdjacent})
    for (const int rope_width : {64, 32, 0})
      for (const float bias : {3.0F, 300.0F})
        check_attention(device, {64, rope_width, pairs, bias, bias > 10 ? 0.005F : 0.1F, 0});
  check_attention(device, {256, 256, RopePairs::kHalves, 300, 0.002F, 0});
  check_attention(device, {64, 64, RopePairs::kHalves, 3, 0.1F, 37});
}

}  // namespace efimd::test
