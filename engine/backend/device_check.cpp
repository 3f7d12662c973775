#include "engine/backend/device_check.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "engine/backend/size.h"

namespace efimd::engine {
namespace {

/// Tokens of steps, one after another: products of prompts and of fewer tokens have kernels of
/// their own (kernels/launch.cpp). Then single ones; all in one page.
constexpr int kStepTokens[] = {17, 4};
constexpr int kSingleTokens = 4;
static_assert(17 + 4 + kSingleTokens <= kPageTokens);
constexpr int kVocabulary = 1024;
constexpr double kErrorMax = 0.1;

/// The first layer, and the part of the vocabulary that is compared.
struct FirstLayer {
  ModelShape shape;
  ModelWeights weights;

  FirstLayer(const ModelShape& of, const ModelWeights& all) : shape(of), weights(all) {
    shape.layers = 1;
    shape.vocabulary = std::min(of.vocabulary, kVocabulary);
    weights.layers.resize(1);
    weights.token_embedding.rows = weights.output.rows = shape.vocabulary;
  }
};

/// A device's results for the tokens: x, or logits of them all.
enum class Wanted { kResidual, kLogits };

Result<std::span<const float>> evaluate(Backend& backend, std::span<const TokenId> tokens,
                                        int position, Wanted wanted) {
  const PageIndex page = 0;
  const int count = static_cast<int>(tokens.size());
  const StepSequence sequence{0, count, position, {&page, 1}};
  std::vector<int> rows;
  for (int row = 0; row < count && wanted == Wanted::kLogits; ++row) rows.push_back(row);
  const auto done =
      backend.begin({tokens, {&sequence, 1}, rows}).and_then([&] { return run_layer(backend, 0); });
  if (!done) return tl::unexpected(done.error());
  return wanted == Wanted::kLogits ? backend.logits() : backend.residual();
}

/// How far `actual` is from `expected`, as a share of its size.
double error_of(std::span<const float> actual, std::span<const float> expected) {
  double squares = 0, all = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double off = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
    squares += off * off;
    all += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  if (squares == 0) return 0;
  const double share = std::sqrt(squares / all);
  return std::isnan(share) ? INFINITY : share;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

class Comparison {
 public:
  Comparison(Backend& device, Backend& cpu, const ModelShape& shape)
      : device_(device), cpu_(cpu), shape_(shape) {}

  /// Of so many tokens after `position`, those of each token.
  Result<std::vector<double>> errors(int position, int count, Wanted wanted) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < count; ++i)
      tokens.push_back(static_cast<TokenId>((position + i + 1) * 7919 % shape_.vocabulary));
    const auto expected = evaluate(cpu_, tokens, position, wanted);
    if (!expected) return tl::unexpected(expected.error());
    const auto actual = evaluate(device_, tokens, position, wanted);
    if (!actual) return tl::unexpected(actual.error());
    const std::size_t row = expected->size() / size(count), stride = actual->size() / size(count);
    std::vector<double> errors;
    for (int i = 0; i < count; ++i)
      errors.push_back(
          error_of(actual->subspan(size(i) * stride, row), expected->subspan(size(i) * row, row)));
    return errors;
  }

 private:
  Backend& device_;
  Backend& cpu_;
  const ModelShape& shape_;
};

Result<void> must_agree(const Backend& device, const std::string& what,
                        const std::vector<double>& errors) {
  const double error = median(errors);
  if (error <= kErrorMax) return {};
  const std::string share =
      std::isfinite(error) ? std::to_string(std::lround(100 * error)) + " %" : "no numbers";
  return fail(Fault::kUnsupported,
              device.name() + " disagrees with the CPU: " + what + " off by " + share,
              "update its driver, and please report it with the output of `efimd doctor`");
}

}  // namespace

Result<void> check_device(Backend& device, const ModelShape& shape, const ModelWeights& weights,
                          const CpuOptions& of_cpu, gpu::WithOutput with_output) {
  const FirstLayer first(shape, weights);
  CpuOptions options = of_cpu;
  options.page_count = 1;
  options.weights = WeightsForm::kMapped;  // for a few steps a copy does not pay
  options.weights_told = {};
  const auto cpu = make_cpu_backend(first.shape, first.weights, options);
  if (!cpu) return {};
  Comparison comparison(device, **cpu, first.shape);
  int position = 0;
  for (const int wanted : kStepTokens) {
    const int count = std::min(wanted, device.step_tokens_max());
    const auto of_step = comparison.errors(position, count, Wanted::kResidual);
    if (!of_step) return tl::unexpected(of_step.error());
    const std::string what =
        "values after the first layer of " + std::to_string(count) + " tokens are";
    if (auto agree = must_agree(device, what, *of_step); !agree) return agree;
    position += count;
  }
  std::vector<double> of_singles, of_logits;
  for (const int behind = position + kSingleTokens; position < behind; ++position) {
    const auto single = comparison.errors(position, 1, Wanted::kResidual);
    if (!single) return tl::unexpected(single.error());
    of_singles.push_back(single->front());
    if (with_output == gpu::WithOutput::kNo) continue;
    const auto logits = comparison.errors(position, 1, Wanted::kLogits);
    if (!logits) return tl::unexpected(logits.error());
    of_logits.push_back(logits->front());
  }
  Result<void> agree = must_agree(device, "a token's values after the first layer are", of_singles);
  if (agree && !of_logits.empty()) agree = must_agree(device, "a token's logits are", of_logits);
  return agree;
}

}  // namespace efimd::engine
