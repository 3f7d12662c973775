#include "daemon/models/kv_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/small_file.h"
#include "daemon/models/kept_json.h"
#include "daemon/models/sample_code.h"
#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"

namespace efimd::service {

namespace fs = std::filesystem;
using engine::KvType;
using engine::TokenId;
using Json = nlohmann::json;

namespace {

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;
constexpr std::size_t kBeforeTokens = 128;
constexpr std::size_t kAfterTokens = 60;
constexpr std::size_t kPromptTokensMax = kBeforeTokens + kAfterTokens + 4;
/// Text that holds no fewer tokens than these.
constexpr std::size_t kBytesPerToken = 8;

std::string key_of(const Digest& model, std::string_view kernels) {
  return fmt::format("{} {}", model.hex(), kernels);
}

std::optional<KvError> error_from(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  KvError error;
  const auto count = [&](const char* name, int& target) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number_integer()) return false;
    const auto value = found->get<std::int64_t>();
    target = static_cast<int>(value);
    return value >= 0 && value <= 1'000'000;
  };
  const auto divergence = json.find("divergence");
  if (!count("places", error.places) || !count("sameNext", error.same_next) ||
      !count("completions", error.completions) ||
      !count("sameCompletions", error.same_completions) || divergence == json.end() ||
      !divergence->is_number())
    return std::nullopt;
  error.divergence = divergence->get<double>();
  return error;
}

Json json_of(const KvError& error) {
  return {{"places", error.places},
          {"sameNext", error.same_next},
          {"divergence", error.divergence},
          {"completions", error.completions},
          {"sameCompletions", error.same_completions}};
}

std::vector<TokenId> prompt_at(const engine::Tokenizer& tokenizer, std::string_view text,
                               std::size_t cut) {
  const std::string_view front = text.substr(0, cut);
  std::vector<TokenId> before = tokenizer.encode(
      front.substr(front.size() - std::min(front.size(), kBeforeTokens * kBytesPerToken)),
      engine::Fragment::kInside);
  if (before.size() > kBeforeTokens) before.erase(before.begin(), before.end() - kBeforeTokens);
  std::vector<TokenId> after =
      tokenizer.encode(text.substr(cut, kAfterTokens * kBytesPerToken), engine::Fragment::kInside);
  after.resize(std::min(after.size(), kAfterTokens));

  const engine::FimTokens& fim = tokenizer.fim();
  const bool fills_in = fim.order == engine::FimOrder::kPsm;
  std::vector<TokenId> prompt;
  if (tokenizer.bos() != engine::kNoToken) prompt.push_back(tokenizer.bos());
  if (fills_in) prompt.push_back(fim.prefix);
  prompt.insert(prompt.end(), before.begin(), before.end());
  if (!fills_in) return prompt;
  prompt.push_back(fim.suffix);
  prompt.insert(prompt.end(), after.begin(), after.end());
  prompt.push_back(fim.middle);
  return prompt;
}

Result<KvError> measure(const std::shared_ptr<const engine::Model>& model, int threads,
                        const std::stop_token& stop) {
  engine::CpuOptions options;
  options.threads = threads;
  options.page_count =
      static_cast<int>((kPromptTokensMax + KvError::kTokens) / engine::kPageTokens + 1);
  auto exact = engine::make_cpu_backend(model, options);
  if (!exact) return tl::unexpected(exact.error());
  options.kv_type = KvType::kQ8;
  auto other = engine::make_cpu_backend(model, options);
  if (!other) return tl::unexpected(other.error());
  return measure_kv_error(
      **exact, **other, model->shape().layers, model->tokenizer(),
      kv_error_prompts(model->tokenizer()),
      {.stop = stop, .deadline = std::chrono::steady_clock::now() + kMeasuringMax});
}

}  // namespace

std::vector<std::vector<TokenId>> kv_error_prompts(const engine::Tokenizer& tokenizer) {
  std::vector<std::vector<TokenId>> prompts;
  for (const std::size_t third : {std::size_t{1}, std::size_t{2}})
    for (const std::string_view text : sample_code()) {
      const std::size_t line = text.find('\n', text.size() * third / 3);
      if (line == std::string_view::npos) continue;
      // After the indentation, because people complete there.
      const std::size_t cut = text.find_first_not_of(" \t\n", line);
      if (cut != std::string_view::npos) prompts.push_back(prompt_at(tokenizer, text, cut));
    }
  return prompts;
}

std::optional<KvError> KvErrors::find(const Digest& model, std::string_view kernels) const {
  const Json kept = read_kept_json(file_, kFileBytesMax);
  const auto found = kept.find(key_of(model, kernels));
  return found == kept.end() ? std::nullopt : error_from(*found);
}

void KvErrors::keep(const Digest& model, std::string_view kernels, const KvError& error) const {
  Json kept = read_kept_json(file_, kFileBytesMax);
  if (kept.size() >= kKeptMax) kept.clear();
  kept[key_of(model, kernels)] = json_of(error);
  static_cast<void>(replace_small_file(file_, kept.dump(1) + "\n"));
}

std::string kv_kernels() {
  return fmt::format("cpu {}", engine::arithmetic_name(engine::best_isa()));
}

std::string kv_error_text(const KvError& error) {
  return fmt::format(
      "next token as with f16 at {:.3g} % of {} places, mean divergence {:.2g}, {} of {} "
      "completions the same",
      100.0 * error.same_next / std::max(1, error.places), error.places, error.divergence,
      error.same_completions, error.completions);
}

KvChoice choose_kv_type(const std::shared_ptr<const engine::Model>& model,
                        const KvChoiceSetup& setup, const std::stop_token& stop) {
  if (setup.wanted == KvType::kF16) return {};
  const KvErrors errors(setup.errors_file);
  const std::string kernels = kv_kernels();
  std::optional<KvError> error = errors.find(model->digest(), kernels);
  if (!error) {
    const Result<KvError> measured = measure(model, setup.threads, stop);
    if (!measured) return {KvType::kF16, "8-bit KV: " + measured.error().message()};
    error = *measured;
    errors.keep(model->digest(), kernels, *error);
  }
  if (error->is_small()) return {KvType::kQ8, kv_error_text(*error)};
  return {KvType::kF16, "8-bit KV changes this model's output too much: " + kv_error_text(*error)};
}

}  // namespace efimd::service
