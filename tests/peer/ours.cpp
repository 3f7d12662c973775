// Our side of the comparison. Reads one job from standard input and prints one answer, both JSON:
//   {"model": PATH, "texts": [...], "prompts": [[ids]...], "count": N}
//   {"tokens": [[ids]...], "decoded": [text...], "greedy": [[{"id", "logit", "second"}...]...]}
//   second: the next best token's logit; decoded: each text's tokens as text again
// A job without prompts opens only the vocabulary.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/decode/sampler.h"
#include "engine/engine.h"
#include "engine/model/model.h"

using namespace efimd;
using namespace efimd::engine;
using nlohmann::json;

namespace {

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

void add_tokens(const json& job, json& answer) {
  const GgufFile file = must(GgufFile::open(job.at("model").get<std::string>()));
  const auto tokenizer = must(Tokenizer::from_gguf(file));
  answer["tokens"] = answer["decoded"] = json::array();
  for (const std::string text : job.at("texts")) {
    answer["tokens"].push_back(tokenizer->encode(text, Fragment::kTextStart));
    const auto tokens = tokenizer->encode(text, Fragment::kInside);
    answer["decoded"].push_back(utf8::sanitized(tokenizer->decode(tokens)));
  }
}

json chosen(std::span<const float> logits) {
  const TokenId best = Sampler({}).choose(logits);
  float second = -std::numeric_limits<float>::infinity();
  for (std::size_t id = 0; id < logits.size(); ++id)
    if (static_cast<TokenId>(id) != best) second = std::max(second, logits[id]);
  return {{"id", best}, {"logit", logits[static_cast<std::size_t>(best)]}, {"second", second}};
}

json greedy(Engine& engine, const std::vector<TokenId>& prompt, int count) {
  const SequenceId sequence = engine.open_sequence();
  must(engine.prefill(sequence, prompt, {}));
  json steps = json::array();
  for (int step = 0; step < count; ++step) {
    if (step > 0) must(engine.append(sequence, steps.back().at("id")));
    steps.push_back(chosen(engine.logits(sequence)));
  }
  engine.close_sequence(sequence);
  return steps;
}

json greedy_of(const json& job) {
  json all = json::array();
  if (job.at("prompts").empty()) return all;
  const auto model = must(Model::open(job.at("model").get<std::string>()));
  auto backend = must(make_cpu_backend(model, {.isa = std::nullopt, .page_count = 128}));
  const auto engine = must(make_engine(model, std::move(backend), {}));
  for (const json& prompt : job.at("prompts"))
    all.push_back(greedy(*engine, prompt.get<std::vector<TokenId>>(), job.at("count")));
  return all;
}

}  // namespace

int main() {
  try {
    const json job = json::parse(std::cin);
    json answer{{"greedy", greedy_of(job)}};
    add_tokens(job, answer);
    std::cout << answer.dump() << "\n";
  } catch (const std::exception& error) {
    std::cerr << "peer_ours: " << error.what() << "\n";
    return 1;
  }
}
