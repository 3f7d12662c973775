// Our side of the comparison of distributions. Reads one job from standard input, prints one answer, both JSON:
//   {"list": true}                     {"varieties": [{"name", "spoiltBy", "types": [NAME...]}...]}
//   {"variety", "type", "folder", "spoilt": bool, "prompts": [[ids]...]}
//                                      {"model": PATH, "logits": PATH, "vocabulary": V}
// The model is written to `folder`; the logits after every token of every prompt, one prompt after the other, are
// f32 [tokens][V] in a file of their own.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/model/model.h"
#include "tests/peer/varieties.h"

using namespace efimd;
using namespace efimd::engine;
using nlohmann::json;

namespace {

constexpr TensorType kTypes[] = {TensorType::kF32,  TensorType::kF16,  TensorType::kBF16,
                                 TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1,
                                 TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ4_K,
                                 TensorType::kQ5_K, TensorType::kQ6_K};
constexpr int kPages = 16;  // of the longest prompt

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

/// Every matrix another type, as real files mix them.
constexpr std::string_view kMixed = "mixed";

json list() {
  json varieties = json::array();
  for (const test::PeerVariety& variety : test::peer_varieties()) {
    // How RoPE is scaled has nothing to do with how weights are stored.
    const bool scaled = variety.rope_scaling != test::TinyModel::RopeScaling::kNone;
    json types = json::array();
    for (const TensorType type : std::span(kTypes).first(scaled ? 4 : std::size(kTypes)))
      types.push_back(tensor_type_name(type));
    if (!scaled) types.push_back(kMixed);
    varieties.push_back(
        {{"name", variety.name}, {"spoiltBy", variety.spoilt_by}, {"types", types}});
  }
  return {{"varieties", varieties}};
}

void set_type(const std::string& name, test::TinyModel& model) {
  if (name == kMixed) {
    model.types_in_turn.assign(std::begin(kTypes), std::end(kTypes));
    return;
  }
  const auto* const type = std::ranges::find(kTypes, name, tensor_type_name);
  if (type == std::end(kTypes)) throw std::runtime_error("no type " + name);
  model.type = *type;
}

std::filesystem::path write_model(const json& job) {
  const auto* variety = test::find_peer_variety(job.at("variety").get<std::string>());
  if (variety == nullptr) throw std::runtime_error("no such variety");
  test::TinyModel model = test::peer_model(*variety);
  set_type(job.at("type"), model);
  const std::filesystem::path path =
      std::filesystem::path(job.at("folder").get<std::string>()) / "model.gguf";
  const bool spoilt = job.at("spoilt");
  (spoilt ? test::spoilt(*variety, model) : test::tiny_model(model)).write(path);
  return path;
}

/// Appends the logits after each token.
void evaluate(Backend& backend, int layers, const std::vector<TokenId>& tokens,
              std::ofstream& out) {
  std::vector<PageIndex> pages(kPages);
  std::iota(pages.begin(), pages.end(), 0);
  const int total = static_cast<int>(tokens.size());
  for (int done = 0; done < total;) {
    const int count = std::min(backend.step_tokens_max(), total - done);
    std::vector<int> rows(static_cast<std::size_t>(count));
    std::iota(rows.begin(), rows.end(), 0);
    const StepSequence part{.count = count, .position = done, .page_table = pages};
    const auto logits = must(
        forward(backend, layers,
                {.tokens = std::span(tokens).subspan(static_cast<std::size_t>(done), rows.size()),
                 .sequences = {&part, 1},
                 .logits_rows = rows}));
    out.write(reinterpret_cast<const char*>(logits.data()),
              static_cast<std::streamsize>(logits.size_bytes()));
    done += count;
  }
}

json answer(const json& job) {
  if (job.contains("list")) return list();
  const std::filesystem::path path = write_model(job);
  const std::filesystem::path logits = path.parent_path() / "logits.f32";
  const auto model = must(Model::open(path));
  const auto backend = must(make_cpu_backend(model, {.isa = std::nullopt, .page_count = kPages}));
  std::ofstream out(logits, std::ios::binary);
  for (const json& prompt : job.at("prompts"))
    evaluate(*backend, model->shape().layers, prompt.get<std::vector<TokenId>>(), out);
  return {{"model", path.string()},
          {"logits", logits.string()},
          {"vocabulary", model->shape().vocabulary}};
}

}  // namespace

int main() {
  try {
    std::cout << answer(json::parse(std::cin)).dump() << "\n";
  } catch (const std::exception& error) {
    std::cerr << "peer_distributions: " << error.what() << "\n";
    return 1;
  }
}
