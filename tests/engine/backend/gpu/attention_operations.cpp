#include "tests/engine/backend/gpu/attention_operations.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/kernels/half.h"
#include "engine/backend/gpu/gpu_attention.h"
#include "kernels/sizes.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/gpu/buffers.h"

namespace efimd::test {
namespace {

using namespace engine::gpu;

constexpr int kP = engine::kPageTokens;
constexpr int kSplitPages = 2;

std::size_t size(int count) { return static_cast<std::size_t>(count); }
std::uint32_t number(int count) { return static_cast<std::uint32_t>(count); }

struct AttentionCase {
  int kv_heads, group, width;
  int window = 0;  ///< 0: all
  float query = 0.5F;
  float loud = 1;  ///< by what values are larger that only the last rows see
  int heads() const { return kv_heads * group; }
};

/// A row of a step: a token of one of two sequences.
struct Row {
  int sequence, position;
};

/// How a step is put to the device.
enum class Way { kRows, kSharedRows, kTiles };

/// Two sequences, and steps of rows of theirs.
class Scene {
 public:
  static constexpr int kTokens[2] = {150, 40}, kPages[2] = {5, 2}, kFirstPage[2] = {0, 5};

  Scene(GpuDevice& device, const AttentionCase& of) : device_(device), of_(of) {
    const std::size_t block = size(kP * of.width), blocks = size(7 * of.kv_heads * 2);
    const auto values = random_values(blocks * block, 5);
    kv_.resize(values.size());
    for (std::size_t i = 0; i < kv_.size(); ++i) {
      const std::size_t page = i / (size(of.kv_heads * 2) * block),
                        token = i % block / size(of.width);
      const int sequence = page < size(kPages[0]) ? 0 : 1;
      const int position =
          (static_cast<int>(page) - kFirstPage[sequence]) * kP + static_cast<int>(token);
      // Slots that hold nothing yet hold no numbers.
      const bool loud = i / block % 2 != 0 && position >= kTokens[sequence] - 8;
      kv_[i] = position < kTokens[sequence]
                   ? engine::cpu::float_to_half(values[i] * (loud ? of.loud : 1))
                   : std::uint16_t{0xFFFF};
    }
    queries_ = random_values(size(2 * kTokens[0] * of.heads() * of.width), 7);
    for (float& query : queries_) query *= of.query;
    at_kv_ = put(device_, kv_);
  }

  /// [T][H][E]
  std::vector<float> attended(const std::vector<Row>& rows, Way way, bool whole) const;
  std::vector<Expected> expected(const std::vector<Row>& rows, double tolerance) const;

 private:
  const float* query(const Row& row, int head) const {
    return queries_.data() +
           size(((row.sequence * kTokens[0] + row.position) * of_.heads() + head) * of_.width);
  }
  double element(const Row& row, int token, int head, int half, int e) const {
    const int page = kFirstPage[row.sequence] + token / kP;
    const std::size_t block = size((page * of_.kv_heads + head) * 2 + half);
    return static_cast<double>(engine::cpu::half_to_float(
        kv_[(block * size(kP) + size(token % kP)) * size(of_.width) + size(e)]));
  }

  GpuDevice& device_;
  const AttentionCase of_;
  std::vector<std::uint16_t> kv_;
  std::vector<float> queries_;
  Range at_kv_;
};

std::vector<Expected> Scene::expected(const std::vector<Row>& rows, double tolerance) const {
  std::vector<Expected> all;
  for (const Row& row : rows)
    for (int h = 0; h < of_.heads(); ++h) {
      const int head = h / of_.group;
      const int hidden = of_.window > 0 ? std::max(0, row.position + 1 - of_.window) : 0;
      std::vector<double> weights;
      for (int c = hidden; c <= row.position; ++c) {
        double score = 0;
        for (int e = 0; e < of_.width; ++e)
          score += static_cast<double>(query(row, h)[e]) * element(row, c, head, 0, e);
        weights.push_back(score);
      }
      const double most = *std::ranges::max_element(weights);
      double sum = 0;
      for (double& weight : weights) sum += weight = std::exp(weight - most);
      for (int e = 0; e < of_.width; ++e) {
        double value = 0;
        for (std::size_t i = 0; i < weights.size(); ++i)
          value += weights[i] / sum * element(row, hidden + static_cast<int>(i), head, 1, e);
        all.push_back({value, tolerance * (std::fabs(value) + 1)});
      }
    }
  return all;
}

std::vector<float> Scene::attended(const std::vector<Row>& rows, Way way, bool whole) const {
  const int count = static_cast<int>(rows.size());
  const int splits = whole ? 1 : (kPages[0] + kSplitPages - 1) / kSplitPages;
  std::vector<std::uint32_t> places, table;
  std::vector<float> qkv;  // of which attention reads no keys and values
  for (const Row& row : rows) {
    places.insert(places.end(), {number(row.position), number(kFirstPage[row.sequence])});
    qkv.insert(qkv.end(), query(row, 0), query(row, 0) + of_.heads() * of_.width);
    qkv.resize(qkv.size() + size(2 * of_.kv_heads * of_.width), NAN);
  }
  for (int page = 0; page < 7; ++page) table.push_back(number(page));
  const Range at_rows = put(device_, places);
  const Range partials =
      put(device_, std::vector<float>(size(count * of_.heads() * splits * (of_.width + 2)), NAN));
  const Range attended =
      put(device_, std::vector<float>(size(count * of_.heads() * of_.width), NAN));
  Operation operations[2];
  Operation& attention = operations[0];
  const kernels::AttentionSizes sizes{number(of_.heads()),
                                      number(of_.kv_heads),
                                      number(of_.width),
                                      of_.window > 0 ? number(of_.window) : 1U << 30U,
                                      kSplitPages,
                                      number(splits),
                                      0,
                                      0,
                                      number(count)};
  // A key's bias is not read.
  attention.operands = {put(device_, qkv), at_kv_, put(device_, table), at_rows, partials,
                        at_rows,           at_rows};
  DeviceLimits limits = device_.limits();
  limits.f16_attention = way == Way::kTiles;
  limits.shared_attention = way == Way::kSharedRows;
  set_attention(attention, kernels::Kv::kF16, sizes, limits);
  operations[1].kernel = Kernel::kMerge;
  operations[1].groups = {
      number(count),
      (number(of_.heads() * of_.width) + kernels::kFormElements - 1) / kernels::kFormElements, 1};
  operations[1].operands = {partials, at_rows, attended, attended, attended, attended};
  operations[1].set_sizes(kernels::MergeSizes{
      number(of_.heads()), number(of_.width), kSplitPages, number(splits), 1.0F, {1, 0, 0}});
  REQUIRE(device_.run(operations));
  return get<float>(device_, attended, size(count * of_.heads() * of_.width));
}

/// The last tokens of the first sequence, then some of the second, some rows in the middle of a page.
std::vector<Row> step_rows(int of_first, int of_second) {
  std::vector<Row> rows;
  for (int i = of_first; i > 0; --i) rows.push_back({0, Scene::kTokens[0] - i});
  for (int i = of_second; i > 0; --i) rows.push_back({1, Scene::kTokens[1] - 5 - i});
  return rows;
}

/// What scores are off by, weights are, too: sums in f32, or of queries and weights in f16.
double tolerance(Way way, const AttentionCase& of) {
  const double score = static_cast<double>(of.query) * std::sqrt(of.width);  // its deviation
  const bool f32 = way == Way::kRows || way == Way::kSharedRows;
  return f32 ? 1.5e-5 + 2e-6 * score : 1e-3 + 6e-4 * score;
}

void check_attention(GpuDevice& device, const AttentionCase& of) {
  const Scene scene(device, of);
  const bool tiles = device.limits().f16_attention && of.width % 32 == 0;
  INFO("Hk " << of.kv_heads << ", group " << of.group << ", E " << of.width << ", window "
             << of.window);
  const auto rows = step_rows(11, 7);
  for (const Way way : {Way::kRows, Way::kSharedRows, Way::kTiles}) {
    if (way == Way::kSharedRows && !device.limits().shared_attention) continue;
    if (way == Way::kTiles && !tiles) continue;
    INFO("way " << static_cast<int>(way));
    const auto got = scene.attended(rows, way, false);
    if (of.loud == 1) check_close(got, scene.expected(rows, tolerance(way, of)));
    check_same_bits(scene.attended(rows, way, true), got);
    if (way == Way::kSharedRows) check_same_bits(scene.attended(rows, Way::kRows, false), got);
    // One row alone.
    const std::size_t row_size = size(of.heads() * of.width);
    for (const std::size_t row : {std::size_t{0}, std::size_t{12}})
      check_same_bits(scene.attended({rows[row]}, way, true),
                      std::span(got).subspan(row * row_size, row_size));
  }
}

}  // namespace

void check_attention_in_halves(GpuDevice& device) {
  for (const int width : {6, 32, 40, 64, 80, 96, 128, 256}) check_attention(device, {2, 3, width});
  for (const int group : {1, 7, 16, 20}) check_attention(device, {2, group, 64});
  check_attention(device, {1, 8, 64, 37});
  check_attention(device, {3, 2, 64, 0, 20.0F});  // one token weighs nearly all
  // What a row does not see weighs 0, and may not take bits of a sum that it shares a product with.
  check_attention(device, {2, 3, 64, 0, 0.5F, 1e4F});
}

}  // namespace efimd::test
