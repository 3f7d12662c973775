// Panels that are made beside steps: the same tokens, whenever they are taken over, and no copy where there is no room.
#include "engine/backend/cpu/panel_store.h"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "engine/backend/cpu/available_memory.h"
#include "engine/backend/cpu/cpu_weights.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/evaluate.h"
#include "tests/engine/backend/memory_model.h"
#include "tests/support/temp_dir.h"

namespace efimd::test {
namespace {

using engine::Isa;
using engine::TensorType;
using engine::TokenId;
using engine::WeightsForm;
using engine::cpu::PanelStore;
using engine::cpu::Weights;

/// What a device says of its weights, the last of it.
class Told {
 public:
  engine::WeightsTold listener() {
    return [this](std::string text) {
      const std::lock_guard lock(mutex_);
      text_ = std::move(text);
      changed_.notify_all();
    };
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  /// Waits until no panels are being made any more.
  std::string last() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !text_.empty() && !text_.starts_with("mapped, while"); });
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
};

engine::ModelShape wide_panel_shape() {
  engine::ModelShape shape = tiny_shape();
  shape.width = 256;
  shape.heads = 8;
  shape.feed_forward = 512;
  return shape;
}

std::unique_ptr<engine::Backend> device_with(const MemoryModel& model, Isa isa, WeightsForm form,
                                             Told& told) {
  engine::CpuOptions options;
  options.isa = isa;
  options.threads = 2;
  options.page_count = 64;
  options.weights = form;
  options.weights_told = told.listener();
  auto backend = engine::make_cpu_backend(model.shape, model.weights, options);
  REQUIRE(backend);
  return *std::move(backend);
}

/// A matrix of 48 rows and its store.
struct SmallMatrix {
  SmallMatrix() {
    std::mt19937 random(1);
    weights = engine::cpu::weights_of(random_tensor(storage, TensorType::kQ4_0, 48, 64, 1, random));
  }
  std::deque<std::vector<std::byte>> storage;
  Weights weights;
};

}  // namespace

TEST_CASE("logits are the same bit for bit from the file and from panels") {
  for (const TensorType type : types_watched(kWeightTypes)) {
    const MemoryModel model(wide_panel_shape(), {type, true, 4});
    const std::vector<TokenId> tokens = random_tokens(44, model.shape.vocabulary, 2);
    for (const Isa isa : isas_here()) {
      Told mapped_told, panels_told;
      const auto mapped = device_with(model, isa, WeightsForm::kMapped, mapped_told);
      const auto panels = device_with(model, isa, WeightsForm::kPanels, panels_told);
      INFO(isa_name(isa) << ", " << tensor_type_name(type) << ", " << panels_told.last());
      const bool has_panels = is_quantized(type) && isa != Isa::kScalar;
      CHECK(panels_told.last().starts_with("panels") == has_panels);
      CHECK(mapped_told.last() == "mapped: device.weights");
      if (!has_panels) continue;  // both read the file
      const std::vector<int> steps = {33, 1, 8, 2};
      check_same_bits(evaluate(*panels, model, tokens, steps, pages_from(0, 1)),
                      evaluate(*mapped, model, tokens, steps, pages_from(0, 1)));
    }
  }
}

TEST_CASE("panels may be taken over at any step") {
  const MemoryModel model(wide_panel_shape(), {TensorType::kQ8_0, true, 4});
  const std::vector<TokenId> tokens = random_tokens(60, model.shape.vocabulary, 2);
  Told told;
  const auto mapped = device_with(model, engine::best_isa(), WeightsForm::kMapped, told);
  const std::vector<float> expected = evaluate(*mapped, model, tokens, {1}, pages_from(0, 1));
  for (int run = 0; run < 20; ++run) {
    Told changing;  // outlives the device
    const auto backend = device_with(model, engine::best_isa(), WeightsForm::kPanels, changing);
    check_same_bits(evaluate(*backend, model, tokens, {1}, pages_from(0, 1)), expected);
  }
}

TEST_CASE("panels are made if they fit, and whoever asks by name may fill all of the memory") {
  const struct {
    WeightsForm form;
    std::optional<std::size_t> available;
    bool made;
  } cases[] = {{WeightsForm::kAuto, 4000, true},    {WeightsForm::kAuto, 3000, false},
               {WeightsForm::kAuto, 0, false},      {WeightsForm::kAuto, std::nullopt, false},
               {WeightsForm::kPanels, 0, false},    {WeightsForm::kPanels, 3000, true},
               {WeightsForm::kPanels, 1000, false}, {WeightsForm::kPanels, std::nullopt, true},
               {WeightsForm::kMapped, 4000, false}};
  for (const auto& [form, available, made] : cases) {
    SmallMatrix matrix;  // its panels take 1728 bytes and what units round up
    Told told;
    PanelStore store;
    store.start({&matrix.weights}, {form, available, told.listener(), {}});
    INFO(static_cast<int>(form) << ", " << available.value_or(7) << ": " << told.last());
    CHECK(told.last().starts_with("panels") == made);
    CHECK(matrix.weights.panels == nullptr);
    store.adopt();
    CHECK((matrix.weights.panels != nullptr) == made);
  }
}

TEST_CASE("what panels hold is given back, whole panels of rows and no more") {
  std::mt19937 random(1);
  std::deque<std::vector<std::byte>> storage;
  Weights first =
      engine::cpu::weights_of(random_tensor(storage, TensorType::kQ8_0, 53, 64, 1, random));
  Weights second =
      engine::cpu::weights_of(random_tensor(storage, TensorType::kF16, 64, 64, 1, random));
  Told told;
  std::vector<std::span<const std::byte>> given;
  PanelStore store;
  store.start({&first, &second},
              {WeightsForm::kPanels, {}, told.listener(), [&](std::span<const std::byte> bytes) {
                 given.push_back(bytes);
               }});
  CHECK(told.last().starts_with("panels"));
  REQUIRE(given.size() == 1);  // f16 has no panels
  CHECK(given[0].data() == reinterpret_cast<const std::byte*>(first.data));
  CHECK(given[0].size() == 48 * first.row_bytes);
}

TEST_CASE("panels that are wanted at once are there when the start returns") {
  SmallMatrix matrix;
  Told told;
  PanelStore store;
  store.start({&matrix.weights},
              {.form = WeightsForm::kPanels, .told = told.listener(), .at_once = true});
  CHECK(told.text().starts_with("panels of"));
  store.adopt();
  CHECK(matrix.weights.panels != nullptr);
}

TEST_CASE("a store that ends early leaves matrices as they are") {
  for (int run = 0; run < 50; ++run) {
    SmallMatrix matrix;
    PanelStore store;
    store.start({&matrix.weights}, {WeightsForm::kPanels, {}, {}, {}});
  }
  SUCCEED();
}

TEST_CASE("an engine that never rests gets panels, too") {
  SmallMatrix matrix;
  Told told;
  PanelStore store;
  store.start({&matrix.weights}, {.form = WeightsForm::kPanels,
                                  .available_bytes = {},
                                  .told = told.listener(),
                                  .give_back = {},
                                  .pausing_bytes = 0});
  while (told.text().starts_with("mapped, while")) store.note_work();
  store.adopt();
  CHECK(matrix.weights.panels != nullptr);
}

TEST_CASE("available memory is the least of what the system and the control groups leave") {
  const TempDir root;
  const auto write = [&](const std::string& path, const std::string& text) {
    const auto file = root.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  CHECK(engine::cpu::available_memory(root.path()) == 0);
  write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n");
  CHECK(engine::cpu::available_memory(root.path()) == 8000 * 1024);
  write("proc/self/cgroup", "0::/user/one\n");
  write("sys/fs/cgroup/user/one/memory.max", "max\n");
  write("sys/fs/cgroup/user/one/memory.current", "50000\n");
  CHECK(engine::cpu::available_memory(root.path()) == 8000 * 1024);
  // 100000 of which 40000 are in use; 10000 of these are clean.
  write("sys/fs/cgroup/user/memory.max", "100000\n");
  write("sys/fs/cgroup/user/memory.current", "40000\n");
  write("sys/fs/cgroup/user/memory.stat", "anon 30000\ninactive_file 4000\nactive_file 6000\n");
  CHECK(engine::cpu::available_memory(root.path()) == 70000);
  write("sys/fs/cgroup/user/one/memory.max", "51000\n");
  CHECK(engine::cpu::available_memory(root.path()) == 1000);
  // The older version of control groups.
  write("proc/self/cgroup", "3:cpu:/a\n2:freezer,memory:/b\n");
  write("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "5000\n");
  write("sys/fs/cgroup/memory/b/memory.usage_in_bytes", "6000\n");
  CHECK(engine::cpu::available_memory(root.path()) == 0);
}

}  // namespace efimd::test
