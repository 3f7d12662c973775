#pragma once

#include <chrono>
#include <string>

#include "daemon/completion/budgets.h"

namespace efimd::test {

/// Of a wide window, where the first one has 300.
inline constexpr int kWide = 6000;

/// A device on which a long prompt is worth avoiding, and that has room for a wide window.
inline completion::Budgets wide_budgets() {
  completion::Budgets budgets;
  budgets.prompt_tokens_max = 300;
  budgets.near_tokens_max = 90;
  budgets.wide_tokens_max = kWide;
  budgets.costs.points = {{1, 10}, {64, 100}, {256, 400}};
  budgets.settle = std::chrono::milliseconds(0);
  return budgets;
}

/// Lines of C, numbered from `from` on.
inline std::string lines(int count, int from = 0) {
  std::string text;
  for (int i = from; i < from + count; ++i) text += "  int value_" + std::to_string(i) + " = 0;\n";
  return text;
}

}  // namespace efimd::test
