// What a type of KV changes is measured, and pages of other arithmetic are told apart.
#include "daemon/models/kv_error.h"

#include <catch2/catch.hpp>
#include <random>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/kv/kv_fingerprint.h"
#include "engine/model/model.h"
#include "tests/support/model_writer.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::engine;
using namespace efimd::service;

namespace {

struct Fixture {
  test::TempDir folder;

  std::shared_ptr<const Model> model(unsigned seed = 1) {
    test::TinyModel shape;
    shape.architecture = "qwen2";
    shape.type = TensorType::kQ8_0;
    shape.seed = seed;
    const std::filesystem::path own = folder / std::to_string(seed);
    std::filesystem::create_directories(own);
    return Model::open(test::write_tiny_model(shape, own)).value();
  }
};

std::unique_ptr<Backend> device(const std::shared_ptr<const Model>& model, KvType type,
                                Isa isa = best_isa(), int threads = 2) {
  return make_cpu_backend(model, {.threads = threads, .isa = isa, .page_count = 8, .kv_type = type})
      .value();
}

std::vector<std::vector<TokenId>> prompts(const Model& model, int count) {
  std::mt19937 random(3);
  std::vector<std::vector<TokenId>> all;
  for (int i = 0; i < count; ++i) {
    std::vector<TokenId>& prompt = all.emplace_back();
    for (int t = 0; t < 100; ++t)
      prompt.push_back(
          static_cast<TokenId>(random() % static_cast<unsigned>(model.shape().vocabulary)));
  }
  return all;
}

Result<KvError> measured(const std::shared_ptr<const Model>& model, Backend& exact, Backend& other,
                         int count, const KvErrorLimits& limits = {}) {
  return measure_kv_error(exact, other, model->shape().layers, model->tokenizer(),
                          prompts(*model, count), limits);
}

Digest fingerprint(const std::shared_ptr<const Model>& model, Backend& backend) {
  return kv_fingerprint(backend, model->shape().layers, model->shape().vocabulary).value();
}

}  // namespace

TEST_CASE("a device changes nothing of what it says itself") {
  Fixture fixture;
  const auto model = fixture.model();
  const auto exact = device(model, KvType::kF16), other = device(model, KvType::kF16);
  const KvError error = measured(model, *exact, *other, 3).value();
  CHECK(error.places == 3 * 25);  // of 100 tokens every fourth
  CHECK(error.same_next == error.places);
  CHECK(error.divergence < 1e-9);
  CHECK(error.completions == 3);
  CHECK(error.same_completions == 3);
  CHECK(error.is_small());
}

TEST_CASE("8-bit KV changes something, but little") {
  Fixture fixture;
  const auto model = fixture.model();
  const auto exact = device(model, KvType::kF16), other = device(model, KvType::kQ8);
  const KvError error = measured(model, *exact, *other, 3).value();
  CHECK(error.divergence > 0);
  CHECK(error.divergence < 1e-3);
  CHECK(error.same_next >= 0.9 * error.places);
}

TEST_CASE("a device that says something else is found out") {
  Fixture fixture;
  const auto model = fixture.model(1);
  const auto exact = device(model, KvType::kF16);
  const auto stranger = fixture.model(2);
  const auto other = device(stranger, KvType::kF16);
  const KvError error = measured(model, *exact, *other, 3).value();
  CHECK(error.same_next < 0.5 * error.places);
  CHECK(error.same_completions < error.completions);
  CHECK(!error.is_small());
}

TEST_CASE("each limit of what may be lost counts, and nothing compared is not enough") {
  const KvError good{
      .places = 100, .same_next = 98, .divergence = 0.01, .completions = 4, .same_completions = 3};
  CHECK(good.is_small());
  const auto with = [&](auto change) {
    KvError error = good;
    change(error);
    return error.is_small();
  };
  CHECK(!with([](KvError& each) { each.same_next = 97; }));
  CHECK(!with([](KvError& each) { each.divergence = 0.011; }));
  CHECK(!with([](KvError& each) { each.same_completions = 2; }));
  CHECK(!KvError{}.is_small());
}

TEST_CASE("measuring ends at its deadline with one prompt at least, and at a stop with none") {
  Fixture fixture;
  const auto model = fixture.model();
  const auto exact = device(model, KvType::kF16), other = device(model, KvType::kQ8);
  KvErrorLimits limits;
  limits.deadline = {};
  CHECK(measured(model, *exact, *other, 3, limits).value().completions == 1);
  std::stop_source stop;
  stop.request_stop();
  limits.stop = stop.get_token();
  const auto stopped = measured(model, *exact, *other, 3, limits);
  REQUIRE(!stopped);
  CHECK(stopped.error().fault == Fault::kStopped);
}

TEST_CASE("the same arithmetic has the same fingerprint, with any number of threads") {
  Fixture fixture;
  const auto model = fixture.model();
  const Digest one = fingerprint(model, *device(model, KvType::kF16, best_isa(), 1));
  const auto two = device(model, KvType::kF16, best_isa(), 2);
  CHECK(fingerprint(model, *two) == one);
  CHECK(fingerprint(model, *two) == one);  // what the pages held does not matter
}

TEST_CASE("kernels that round otherwise have another fingerprint, as has another type of KV") {
  Fixture fixture;
  const auto model = fixture.model();
  const Digest best = fingerprint(model, *device(model, KvType::kF16));
  if (best_isa() != Isa::kScalar)
    CHECK(fingerprint(model, *device(model, KvType::kF16, Isa::kScalar)) != best);
  CHECK(fingerprint(model, *device(model, KvType::kQ8)) != best);
  const auto other = fixture.model(2);
  CHECK(fingerprint(other, *device(other, KvType::kF16)) != best);
}
