// Products of panels have the bits of products of the file's rows, which matmul_test.cpp holds against f64.
#include "engine/backend/cpu/kernels/panels.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "engine/backend/cpu/kernels/isa.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/input_rows.h"
#include "tests/engine/backend/memory_model.h"
#include "tests/engine/backend/panel_matrix.h"

namespace efimd::test {
namespace {

using namespace engine::cpu;
using engine::Isa;
using engine::TensorType;
using engine::TensorView;

constexpr float kUnwritten = std::numeric_limits<float>::quiet_NaN();

struct Asked {
  Isa isa;
  RowRange rows;
  const std::vector<float>* bias = nullptr;
  Store store = Store::kSet;
};

/// Some rows of a product, over NaN, or over numbers where it is added to them.
std::vector<float> product_of(const Weights& weights, const InputRows& inputs, const Asked& asked) {
  const float before = asked.store == Store::kAdd ? 0.375F : kUnwritten;
  std::vector<float> out(static_cast<std::size_t>(inputs.tokens * weights.rows), before);
  kernels_of(asked.isa).matmul(weights, asked.rows, inputs.inputs(),
                               {out.data(), static_cast<std::size_t>(weights.rows),
                                asked.bias == nullptr ? nullptr : asked.bias->data(), asked.store});
  return out;
}

std::string name_of(Isa isa, const TensorView& tensor, int tokens) {
  return std::string(isa_name(isa)) + ", " + std::string(tensor_type_name(tensor.type)) + ", N " +
         std::to_string(tensor.rows) + ", K " + std::to_string(tensor.cols) + ", T " +
         std::to_string(tokens);
}

/// Tables that read panels: all but the specification.
std::vector<Isa> tables_of_panels() {
  std::vector<Isa> isas = isas_here();
  std::erase(isas, Isa::kScalar);
  return isas;
}

}  // namespace

TEST_CASE("every quantized type has panels, others have none") {
  std::mt19937 random(1);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    const TensorView tensor = random_tensor(storage, type, 37, cols_of(type, 64), 1, random);
    INFO(tensor_type_name(type));
    CHECK(panel_count(weights_of(tensor)) == (is_quantized(type) ? 2 : 0));
    CHECK(panel_bytes(weights_of(tensor)) % 64 == 0);
  }
}

TEST_CASE("panels take the bytes of the file and at most three in a hundred more") {
  std::mt19937 random(1);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    if (!is_quantized(type)) continue;
    const TensorView tensor = random_tensor(storage, type, 16, 1024, 1, random);
    INFO(tensor_type_name(type));
    CHECK(panel_bytes(weights_of(tensor)) >= 16 * tensor.row_bytes());
    CHECK(panel_bytes(weights_of(tensor)) * 100 <= 103 * 16 * tensor.row_bytes());
  }
}

TEST_CASE("products of panels have the same bits at every number of tokens", "[one-thread]") {
  std::mt19937 random(2);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    // One group, a whole unit, units and a part of one; rows that fill panels or do not.
    for (const int wanted : {32, 64, 96, 800}) {
      const int cols = cols_of(type, wanted);
      const TensorView tensor = random_tensor(storage, type, 53, cols, 1, random);
      const PanelMatrix matrix(tensor);
      std::vector<unsigned char> rest;
      const Weights panels = matrix.panels_alone(rest);
      for (int tokens = 1; tokens <= 64; ++tokens) {
        const InputRows inputs(tokens, cols, random);
        for (const Isa isa : tables_of_panels()) {
          INFO(name_of(isa, tensor, tokens));
          const Asked all{isa, {0, 53}};
          check_same_bits(product_of(panels, inputs, all), product_of(matrix.mapped, inputs, all));
        }
      }
    }
  }
}

TEST_CASE("products of panels have the same bits at every number of rows") {
  std::mt19937 random(3);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    const int cols = cols_of(type, 160);
    for (const int rows : {1, 15, 16, 17, 31, 32, 33, 48, 63}) {
      const TensorView tensor = random_tensor(storage, type, rows, cols, 1, random);
      const PanelMatrix matrix(tensor);
      std::vector<unsigned char> rest;
      const Weights panels = matrix.panels_alone(rest);
      for (const int tokens : {1, 3, 9, 67}) {
        const InputRows inputs(tokens, cols, random);
        for (const Isa isa : tables_of_panels()) {
          INFO(name_of(isa, tensor, tokens));
          const Asked all{isa, {0, rows}};
          check_same_bits(product_of(panels, inputs, all), product_of(matrix.mapped, inputs, all));
        }
      }
    }
  }
}

TEST_CASE("a range of rows may begin and end inside a panel, and nothing else is written") {
  std::mt19937 random(4);
  std::deque<std::vector<std::byte>> storage;
  const RowRange ranges[] = {{0, 5}, {3, 22}, {16, 32}, {17, 31}, {15, 49}, {33, 50}, {40, 41}};
  for (const TensorType type : kWeightTypes) {
    const int cols = cols_of(type, 96);
    const TensorView tensor = random_tensor(storage, type, 50, cols, 1, random);
    const PanelMatrix matrix(tensor);
    const InputRows inputs(3, cols, random);
    for (const Isa isa : isas_here()) {
      for (const RowRange range : ranges) {
        INFO(name_of(isa, tensor, 3) << ", rows " << range.first << " to " << range.last);
        const std::vector<float> out = product_of(matrix.both, inputs, {isa, range});
        const std::vector<float> all = product_of(matrix.mapped, inputs, {isa, {0, 50}});
        int wrong = 0;
        for (std::size_t i = 0; i < out.size(); ++i) {
          const int row = static_cast<int>(i % 50);
          const bool asked = row >= range.first && row < range.last;
          wrong += asked ? out[i] != all[i] : !std::isnan(out[i]);
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("products of panels take a bias and are added as those of rows") {
  std::mt19937 random(5);
  std::deque<std::vector<std::byte>> storage;
  const std::vector<float> bias = InputRows::random_values(35, random);
  for (const TensorType type : kWeightTypes) {
    const int cols = cols_of(type, 64);
    const TensorView tensor = random_tensor(storage, type, 35, cols, 1, random);
    const PanelMatrix matrix(tensor);
    const InputRows inputs(11, cols, random);
    for (const Isa isa : isas_here()) {
      for (const Store store : {Store::kSet, Store::kAdd}) {
        INFO(name_of(isa, tensor, 11));
        const Asked asked{isa, {0, 35}, &bias, store};
        check_same_bits(product_of(matrix.both, inputs, asked),
                        product_of(matrix.mapped, inputs, asked));
      }
    }
  }
}

}  // namespace efimd::test
