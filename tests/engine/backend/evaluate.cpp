#include "tests/engine/backend/evaluate.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>

namespace efimd::test {

namespace {

/// KL divergence of the softmax of `other` from that of `exact`, [V] each.
double divergence(std::span<const float> exact, std::span<const float> other) {
  const auto log_sum = [](std::span<const float> logits) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - largest);
    return largest + std::log(sum);
  };
  const double of_exact = log_sum(exact), of_other = log_sum(other);
  double kl = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double log_p = exact[i] - of_exact;
    kl += std::exp(log_p) * (log_p - (other[i] - of_other));
  }
  return kl;
}

}  // namespace

using engine::Backend;
using engine::Isa;
using engine::PageIndex;
using engine::TokenId;

std::unique_ptr<Backend> device(const MemoryModel& model, Isa isa, int threads,
                                engine::KvType kv_type) {
  engine::CpuOptions options;
  options.isa = isa;
  options.threads = threads;
  options.page_count = 64;
  options.kv_type = kv_type;
  auto backend = engine::make_cpu_backend(model.shape, model.weights, options);
  REQUIRE(backend);
  return *std::move(backend);
}

void forward_layers(Backend& backend, const engine::Step& step, int layers) {
  REQUIRE(backend.begin(step));
  for (int layer = 0; layer < layers; ++layer) {
    REQUIRE(backend.attention_input(layer));
    REQUIRE(backend.attention(layer));
    REQUIRE(backend.attention_output(layer));
    REQUIRE(backend.feed_forward_input(layer));
    REQUIRE(backend.feed_forward_output(layer));
  }
}

std::vector<TokenId> random_tokens(int count, int vocabulary, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (TokenId& token : tokens)
    token = static_cast<TokenId>(random() % static_cast<unsigned>(vocabulary));
  return tokens;
}

std::vector<PageIndex> pages_from(PageIndex first, PageIndex step) {
  std::vector<PageIndex> pages(16);
  for (std::size_t i = 0; i < pages.size(); ++i)
    pages[i] = (first + static_cast<PageIndex>(i) * step) % 64;
  return pages;
}

std::vector<float> evaluate(Backend& backend, const MemoryModel& model,
                            const std::vector<TokenId>& tokens, const std::vector<int>& steps,
                            const std::vector<PageIndex>& pages) {
  std::vector<float> logits;
  int done = 0;
  for (std::size_t i = 0; done < static_cast<int>(tokens.size()); ++i) {
    const int count = std::min(steps[i % steps.size()], static_cast<int>(tokens.size()) - done);
    const engine::StepSequence sequence{0, count, done, pages};
    std::vector<int> rows(static_cast<std::size_t>(count));
    std::iota(rows.begin(), rows.end(), 0);
    forward_layers(backend,
                   {std::span(tokens).subspan(static_cast<std::size_t>(done), rows.size()),
                    {&sequence, 1},
                    rows},
                   model.shape.layers);
    const auto some = backend.logits();
    REQUIRE(some);
    logits.insert(logits.end(), some->begin(), some->end());
    done += count;
  }
  return logits;
}

double mean_divergence(std::span<const float> exact, std::span<const float> other, int vocabulary) {
  const auto width = static_cast<std::size_t>(vocabulary);
  REQUIRE(exact.size() == other.size());
  double sum = 0;
  for (std::size_t at = 0; at < exact.size(); at += width)
    sum += divergence(exact.subspan(at, width), other.subspan(at, width));
  return sum / static_cast<double>(exact.size() / width);
}

std::span<const engine::TensorType> types_watched(std::span<const engine::TensorType> types) {
#ifdef EFIMD_THREAD_SANITIZED
  static_cast<void>(types);
  static constexpr engine::TensorType kOne[] = {engine::TensorType::kQ8_0};
  return kOne;
#else
  return types;
#endif
}

}  // namespace efimd::test
