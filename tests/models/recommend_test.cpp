#include "daemon/models/recommend.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "daemon/models/hub_folder.h"
#include "daemon/models/offered_models.h"
#include "daemon/models/speed/machine_speed.h"
#include "engine/backend/cpu/cpu_backend.h"

namespace efimd::test {
namespace {

using service::DeviceRates;
using service::OfferedModel;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

OfferedModel offered(std::string name, std::uint64_t bytes) {
  OfferedModel model;
  model.name = std::move(name);
  model.bytes = bytes;
  model.parameters = model.active = bytes;
  model.layers = 24;
  model.kv_bytes = 12'288;
  model.weights = "Q8_0";
  model.context_tokens = 32'768;
  model.license = "Apache-2.0";
  return model;
}

/// Reads 30 GiB of weights a second: 8 tokens of 1 GiB take 270 ms.
DeviceRates device(std::string kind = "cpu", double gib_per_s = 30) {
  const double rate = gib_per_s * static_cast<double>(kGiB);
  return {std::move(kind), "made up", {rate, 100 * rate}, {rate, 100 * rate}};
}

std::string chosen(const service::Recommendation& found) {
  return found.chosen ? found.models[*found.chosen].model.name : "";
}

std::string reason(const service::Recommendation& found, std::size_t index) {
  return found.models[index].reason;
}

}  // namespace

TEST_CASE("the first of the list that answers in time is recommended") {
  const auto found = service::recommend(
      {offered("large", 4 * kGiB), offered("medium", kGiB), offered("small", kGiB / 2)}, {device()},
      32 * kGiB);
  CHECK(chosen(found) == "medium");
  CHECK(found.models[0].speed.first_answer_ms == Approx(4000.0 * 8 / 30));
  CHECK(reason(found, 0) == "too slow: 1067 ms for an answer");
  CHECK(reason(found, 1) == "the best of the list that answers within 300 ms here");
  CHECK(reason(found, 2) == "good, but a better one is fast enough");
}

TEST_CASE("a faster device makes a larger model the best") {
  const auto found = service::recommend({offered("large", 4 * kGiB), offered("small", kGiB)},
                                        {device("cuda", 500), device()}, 32 * kGiB);
  CHECK(chosen(found) == "large");
  CHECK(found.models[0].speed.device_kind == "cuda");
}

TEST_CASE("a model that needs more than its share of memory is not recommended") {
  const std::vector models = {offered("large", kGiB), offered("small", kGiB / 2)};
  const auto found = service::recommend(models, {device()}, 2 * kGiB);
  CHECK(chosen(found) == "small");
  CHECK(reason(found, 0).starts_with("needs 1.5 GiB"));
  CHECK(service::recommend(models, {device()}, 0).chosen == 0U);  // memory is not known
  CHECK_FALSE(service::recommend(models, {device()}, kGiB).chosen.has_value());
}

TEST_CASE("a model with a restricted licence is named, never recommended") {
  OfferedModel restricted = offered("restricted", kGiB / 4);
  restricted.restricted = "for research only";
  const auto found =
      service::recommend({restricted, offered("free", kGiB / 2)}, {device()}, 32 * kGiB);
  CHECK(chosen(found) == "free");
  CHECK(reason(found, 0) == "licence Apache-2.0: for research only");
  CHECK_FALSE(service::recommend({restricted}, {device()}, 32 * kGiB).chosen.has_value());
}

TEST_CASE("if none is fast, the fastest is recommended, and said to be slow") {
  const auto found = service::recommend({offered("large", 8 * kGiB), offered("small", 2 * kGiB)},
                                        {device()}, 32 * kGiB);
  CHECK(chosen(found) == "small");
  CHECK(reason(found, 1) == "the fastest of the list; none answers within 300 ms here");
}

TEST_CASE("a model that is too large for panels is judged by the CPU without them") {
  DeviceRates panels = device();
  panels.weight_bytes_max = kGiB;
  const auto found = service::recommend({offered("large", 2 * kGiB), offered("small", kGiB)},
                                        {panels, device("cpu", 10)}, 32 * kGiB);
  CHECK(found.models[0].speed.first_answer_ms == Approx(2000.0 * 8 / 10));
  CHECK(found.models[1].speed.first_answer_ms == Approx(1000.0 * 8 / 30));
}

TEST_CASE("the CPU is there for each form that the models in question would have") {
  service::Config config;
  config.device_kind = "cpu";
  const auto limits = [&](const std::vector<std::uint64_t>& bytes) {
    std::vector<std::uint64_t> found;
    for (const auto& each : service::devices_here(config, bytes)) {
      CHECK(each.kind == "cpu");
      found.push_back(each.weight_bytes_max);
    }
    return found;
  };
  const std::uint64_t huge = std::uint64_t{1} << 60;
  CHECK(limits({1}) == std::vector<std::uint64_t>{0});
  CHECK(limits({huge}) == std::vector<std::uint64_t>{0});
  const auto both = limits({1, huge});
  REQUIRE(both.size() == 2);
  CHECK(both[0] > 1);
  CHECK(both[0] < huge);
  CHECK(both[1] == 0);
  config.device_weights = engine::WeightsForm::kMapped;
  CHECK(limits({1, huge}) == std::vector<std::uint64_t>{0});
}

TEST_CASE("only models that fit into the memory count for the forms of weights") {
  const std::vector models = {offered("large", 20 * kGiB), offered("small", kGiB)};
  CHECK(service::bytes_of_fitting(models, 16 * kGiB) == std::vector{kGiB});
  CHECK(service::bytes_of_fitting(models, 0).size() == 2);  // memory is not known
}

TEST_CASE("a mixture of experts costs what its active parameters cost") {
  OfferedModel experts = offered("experts", 10 * kGiB);
  experts.active = experts.parameters / 10;
  CHECK(service::token_cost(experts).bytes == kGiB);
}

TEST_CASE("the machine's rates are those of its device") {
  service::Config config;
  config.device_threads = 1;
  const std::uint64_t bytes = 1;
  const auto devices = service::devices_here(config, {&bytes, 1});
  REQUIRE(devices.back().kind == "cpu");
  const auto rates = service::machine_speed({devices.back()});
  REQUIRE(rates.size() == 1);
  CHECK(rates[0].kind == "cpu");
  for (const service::WeightRates& each : {rates[0].eight_bits, rates[0].four_bits}) {
    CHECK(std::isfinite(each.bytes_per_s));
    CHECK(each.bytes_per_s > 1e6);
    CHECK(std::isfinite(each.parameters_per_s));
    CHECK(each.parameters_per_s > 1e6);
  }
}

TEST_CASE("a device that fails is left out of the machine's rates") {
  const service::DeviceHere broken{
      "cuda", [](const engine::ModelShape&, const engine::ModelWeights&, int) {
        return Result<std::unique_ptr<engine::Backend>>(fail(Fault::kNoMemory, "full"));
      }};
  CHECK(service::machine_speed({broken}).empty());
}

TEST_CASE("the type of weights is read from a file's name") {
  CHECK(service::weights_in_name("x-q4_k_m.gguf") == "Q4_K_M");
  CHECK(service::weights_in_name("x.Q8_0.gguf") == "Q8_0");
  CHECK(service::weights_in_name("bf16/x-BF16-00001-of-00002.gguf") == "BF16");
  CHECK(service::weights_in_name("x-UD-Q4_K_XL.gguf").empty());
  CHECK(service::weights_in_name("x.gguf").empty());
}

TEST_CASE("the catalogue that is installed is whole, and its names are its own") {
  const auto models = service::offered_models({EFIMD_SOURCE_DIR "/models"});
  REQUIRE(models);
  CHECK(models->size() >= 10);
  for (const OfferedModel& model : *models) {
    INFO(model.name);
    CHECK(service::find_offered(*models, model.name) == &model);
    CHECK(model.file.ends_with(".gguf"));
    CHECK(model.repository.find('/') != std::string::npos);
    CHECK(model.active <= model.parameters);
    CHECK(service::bits_of_weights(model.weights) > 0);
    CHECK(service::weights_in_name(model.file) == model.weights);
    // The size is what parameters of that type take, within a quarter.
    const double bits =
        8.0 * static_cast<double>(model.bytes) / static_cast<double>(model.parameters);
    CHECK(bits == Approx(service::bits_of_weights(model.weights)).epsilon(0.25));
    CHECK((model.fim == "prefix first" || model.fim == "suffix first"));
  }
}

TEST_CASE("a catalogue that is damaged is refused with the entry and the key") {
  const auto refused = [](std::string_view text) {
    const auto models = service::parse_offered_models(text, "c.toml");
    return models ? std::string() : models.error().what;
  };
  CHECK(refused("model = [").find("c.toml:1") == 0);
  CHECK(refused("").find("0 entries") != std::string::npos);
  CHECK(refused("model = [3]").find("entry 0") != std::string::npos);
  CHECK(refused("[[model]]\nname = \"x\"").find("entry 1: repository") != std::string::npos);
  CHECK(refused("[[model]]\nname = 3").find("entry 1: name") != std::string::npos);
}

TEST_CASE("parts of a split model are known by their names") {
  const auto part = service::split_part("q8/big-Q8_0-00002-of-00003.gguf");
  REQUIRE(part);
  CHECK(part->part == 2);
  CHECK(service::parts_of(*part)[2] == "q8/big-Q8_0-00003-of-00003.gguf");
  for (const char* name : {"x.gguf", "x-00000-of-00002.gguf", "x-00003-of-00002.gguf",
                           "x-00001-of-99999.gguf", "-00001-of-00002.gguf", "x-0001-of-00002.gguf"})
    CHECK_FALSE(service::split_part(name));
}

}  // namespace efimd::test
