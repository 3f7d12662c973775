#include "daemon/models/kv_choice.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "daemon/models/engine_host.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "tests/support/model_writer.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;
using engine::KvType;

namespace {

const KvError kGood{
    .places = 384, .same_next = 383, .divergence = 5.5e-5, .completions = 8, .same_completions = 8};

std::shared_ptr<const engine::Model> tiny_model(const test::TempDir& folder) {
  return engine::Model::open(test::write_tiny_model({}, folder.path())).value();
}

}  // namespace

TEST_CASE("what was measured of 8-bit KV is kept by model and kernels") {
  const test::TempDir folder;
  const KvErrors errors(folder / "state/kv_errors.json");
  CHECK_FALSE(errors.find({1, 2}, "cpu avx2"));
  errors.keep({1, 2}, "cpu avx2", kGood);
  KvError worse = kGood;
  worse.same_next = 3;
  errors.keep({1, 2}, "cpu avx512", worse);
  REQUIRE(errors.find({1, 2}, "cpu avx2"));
  CHECK(errors.find({1, 2}, "cpu avx2")->same_next == 383);
  CHECK(errors.find({1, 2}, "cpu avx2")->divergence == 5.5e-5);
  CHECK(errors.find({1, 2}, "cpu avx512")->same_next == 3);
  CHECK_FALSE(errors.find({1, 3}, "cpu avx2"));
}

TEST_CASE("a damaged file of measurements counts as none, and is written anew") {
  const test::TempDir folder;
  const auto file = folder / "kv_errors.json";
  const KvErrors errors(file);
  for (const char* text :
       {"", "[1]", "{\"x\"", "{\"00000000000000020000000000000001 cpu avx2\": 7}",
        "{\"00000000000000020000000000000001 cpu avx2\": {\"places\": -4}}"}) {
    std::ofstream(file) << text;
    CHECK_FALSE(errors.find({1, 2}, "cpu avx2"));
  }
  errors.keep({1, 2}, "cpu avx2", kGood);
  CHECK(errors.find({1, 2}, "cpu avx2"));
}

TEST_CASE("8-bit KV is measured once, and used where it changes little") {
  const test::TempDir folder;
  const auto model = tiny_model(folder);
  const KvChoiceSetup setup{KvType::kQ8, 1, folder / "kv_errors.json"};
  const KvErrors errors(setup.errors_file);
  const KvChoice first = choose_kv_type(model, setup, {});
  const auto measured = errors.find(model->digest(), kv_kernels());
  REQUIRE(measured);
  CHECK(measured->completions == 8);
  CHECK((first.type == KvType::kQ8) == measured->is_small());
  // What is remembered decides from now on.
  errors.keep(model->digest(), kv_kernels(), kGood);
  const KvChoice good = choose_kv_type(model, setup, {});
  CHECK(good.type == KvType::kQ8);
  CHECK(good.reason ==
        "next token as with f16 at 99.7 % of 384 places, mean divergence 5.5e-05, 8 of 8 "
        "completions the same");
  KvError bad = kGood;
  bad.divergence = 0.5;
  errors.keep(model->digest(), kv_kernels(), bad);
  const KvChoice refused = choose_kv_type(model, setup, {});
  CHECK(refused.type == KvType::kF16);
  CHECK(refused.reason.find("output too much") != std::string::npos);
}

TEST_CASE(
    "memory that holds enough 8-bit KV but too little f16 serves the one and refuses the other") {
  const test::TempDir folder;
  const auto model = tiny_model(folder);
  const KvErrors errors(folder / "kv_errors.json");
  constexpr std::size_t pages = 9;  // 288 tokens; 256 are the least to work with
  EngineSetup setup;
  setup.model = model->path();
  setup.device_kind = "cpu";
  setup.threads = 1;
  setup.kv_budget_bytes = pages * engine::cpu_page_bytes(model->shape(), KvType::kQ8);
  setup.kv_errors_file = folder / "kv_errors.json";
  const auto opened_with = [&](KvType wanted) {
    setup.kv_type = wanted;
    const auto opened = std::make_shared<OpenedModel>();
    const auto engine = make_engine_factory(setup, opened)([](double) {}, {});
    return engine ? opened->get()->kv_type : engine.error().what;
  };
  errors.keep(model->digest(), kv_kernels(), kGood);
  CHECK(opened_with(KvType::kQ8) == "q8");
  CHECK_THAT(opened_with(KvType::kF16), Catch::Contains("for KV hold only"));
  KvError bad = kGood;
  bad.divergence = 0.5;
  errors.keep(model->digest(), kv_kernels(), bad);
  CHECK_THAT(opened_with(KvType::kQ8), Catch::Contains("for KV hold only"));
  setup.kv_budget_bytes = pages * engine::cpu_page_bytes(model->shape(), KvType::kF16);
  CHECK(opened_with(KvType::kQ8) == "f16");
}

TEST_CASE("a GPU takes 8-bit KV where it is wanted and changes little, and holds more of it") {
  const test::TempDir folder;
  const auto model = tiny_model(folder);
  EngineSetup setup;
  setup.model = model->path();
  setup.device_kind = "vulkan";
  setup.threads = 1;
  setup.kv_budget_bytes = 9 * engine::cpu_page_bytes(model->shape(), KvType::kF16);
  setup.kv_errors_file = folder / "kv_errors.json";
  KvErrors(setup.kv_errors_file).keep(model->digest(), kv_kernels(), kGood);
  const auto tokens_with = [&](KvType wanted) -> int {
    setup.kv_type = wanted;
    const auto opened = std::make_shared<OpenedModel>();
    const auto engine = make_engine_factory(setup, opened)([](double) {}, {});
    REQUIRE(engine);
    CHECK(opened->get()->kv_type == engine::kv_type_name(wanted));
    if ((*engine)->device_kind() == "vulkan") return (*engine)->window_tokens();
    WARN("SKIPPED  8-bit KV on Vulkan: " << opened->device_reason());
    return 0;
  };
  const int half = tokens_with(KvType::kF16);
  if (half > 0) CHECK(tokens_with(KvType::kQ8) > half * 3 / 2);
}

TEST_CASE("8-bit KV that nobody asked for is not measured, nor is it after a stop") {
  const test::TempDir folder;
  const auto model = tiny_model(folder);
  const auto file = folder / "kv_errors.json";
  const KvChoice plain = choose_kv_type(model, {KvType::kF16, 1, file}, {});
  CHECK(plain.type == KvType::kF16);
  CHECK(plain.reason.empty());
  std::stop_source stop;
  stop.request_stop();
  CHECK(choose_kv_type(model, {KvType::kQ8, 1, file}, stop.get_token()).type == KvType::kF16);
  CHECK_FALSE(std::filesystem::exists(file));
}
