// The CUDA device: its host side, and the kernels over a stand-in for the driver, which runs them on the CPU.
// cuda_card_test.cpp has the same checks on a card.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>

#include "engine/backend/cuda/cuda_device.h"
#include "engine/backend/gpu/gpu_backend.h"
#include "kernels/launch.h"
#include "kernels/sizes.h"
#include "tests/engine/backend/evaluate.h"
#include "tests/engine/backend/gpu/attention_operations.h"
#include "tests/engine/backend/gpu/device_models.h"
#include "tests/engine/backend/gpu/kv8_operations.h"
#include "tests/engine/backend/gpu/operations.h"
#include "tests/engine/backend/gpu/split_models.h"
#include "tests/engine/backend/gpu/tiny_backend.h"
#include "tests/engine/backend/gpu/wrapped_device.h"
#include "tests/support/fake_cuda.h"

namespace efimd::test {
namespace {

using engine::KvType;
using engine::TensorType;
using engine::cuda::CudaOptions;
using engine::cuda::open_cuda_device;

/// A function of the stand-in.
template <class Function>
Function* fake(const char* name) {
  static void* const library = ::dlopen(EFIMD_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  auto* function = reinterpret_cast<Function*>(::dlsym(library, name));
  REQUIRE(function != nullptr);
  return function;
}
#define FAKE(name) fake<decltype(name)>(#name)

std::unique_ptr<engine::gpu::GpuDevice> fake_device_with(CudaOptions options) {
  options.library = EFIMD_FAKE_CUDA;
  auto device = open_cuda_device(options);
  REQUIRE(device);
  return *std::move(device);
}
std::unique_ptr<engine::gpu::GpuDevice> fake_device() {
  return fake_device_with({.variants = engine::gpu::kAllVariants});
}
/// Without the variants that replace plain kernels.
std::unique_ptr<engine::gpu::GpuDevice> plain_device() {
  return fake_device_with({.variants = {}});
}

/// Keeps the most tokens of a product.
class MostTokens final : public WrappedDevice {
 public:
  MostTokens(std::unique_ptr<engine::gpu::GpuDevice> device, unsigned& most)
      : WrappedDevice(std::move(device)), most_(most) {}
  Result<void> run(std::span<const engine::gpu::Operation> operations) override {
    for (const auto& operation : operations) {
      if (operation.kernel != engine::gpu::Kernel::kMatmul) continue;
      kernels::MatmulSizes sizes;
      std::memcpy(&sizes, operation.sizes.data(), sizeof sizes);
      most_ = std::max(most_, sizes.tokens);
    }
    return WrappedDevice::run(operations);
  }

 private:
  unsigned& most_;
};

}  // namespace

TEST_CASE("CUDA kernels on the CPU: each operation agrees with the specification") {
  FAKE(fake_cuda_reset)();
  check_products(*fake_device());
  check_prompt_products(*fake_device());
  check_quantize(*fake_device());
  check_forms(*fake_device());
  check_halves(*fake_device());
}

TEST_CASE("CUDA kernels on the CPU: KV goes to 8 bits and is read as the specification says") {
  FAKE(fake_cuda_reset)();
  check_store_in_8_bits(*fake_device());
  check_attention_in_8_bits(*fake_device());
  FAKE(fake_cuda_run_backward)();
  check_attention_in_8_bits(*fake_device());
}

TEST_CASE(
    "CUDA kernels on the CPU: attention over f16 KV agrees with f64, with the same bits in steps "
    "of any size") {
  FAKE(fake_cuda_reset)();
  check_attention_in_halves(*fake_device());
  FAKE(fake_cuda_run_backward)();
  check_attention_in_halves(*fake_device());
}

TEST_CASE("CUDA kernels on the CPU: a product's bits are the same in steps of any size") {
  FAKE(fake_cuda_reset)();
  check_batch_invariance(*fake_device(), LargeTiles::kYes);
  FAKE(fake_cuda_run_backward)();
  check_batch_invariance(*fake_device(), LargeTiles::kNo);
}

TEST_CASE("CUDA: products of some tokens and of prompts go to tensor cores") {
  constexpr auto kMatmul = engine::gpu::Kernel::kMatmul;
  const auto name = [](kernels::Packed type, bool many, std::uint32_t rows, std::uint32_t tiles) {
    return kernels::launch_of(kMatmul, static_cast<std::uint32_t>(type), many, {rows, tiles, 1})
        .name;
  };
  using kernels::Packed;
  CHECK(name(Packed::kQ8_0, false, 8200, 64) == "matmul_3_1");  // experts
  CHECK(name(Packed::kQ8_0, true, 8200, 1) == "matmul_3_8");
  CHECK(name(Packed::kQ8_0, true, 8200, 2) == "matmul_3_8");
  CHECK(name(Packed::kQ8_0, true, 35, 3) == "matmul_3_32");
  CHECK(name(Packed::kQ8_0, true, 8129, 3) == "matmul_3_32");
  CHECK(name(Packed::kF16, true, 8200, 64) == "matmul_1_8");
  const kernels::Launch few = kernels::launch_of(kMatmul, 3, true, {8200, 2, 1});
  CHECK((few.grid[0] == 2 && few.grid[1] == 513 && few.block[1] == 8));
  const kernels::Launch launch = kernels::launch_of(kMatmul, 3, true, {8200, 9, 1});
  CHECK((launch.grid[0] == 3 && launch.grid[1] == 257 && launch.grid[2] == 1));
  CHECK((launch.block[0] == 32 && launch.block[1] == 4));
}

TEST_CASE("CUDA: attention over f16 KV goes to tensor cores, in tiles of heads of tokens") {
  constexpr auto kTiles = engine::gpu::Kernel::kAttentionTiles;
  const auto name = [](std::uint32_t splits) {
    return kernels::launch_of(kTiles, 4, false, {7, 4, splits}).name;
  };
  CHECK(name(8) == "attention_tiles_4");
  CHECK(name(1) == "attention_tiles_4_whole");
  const kernels::Launch tiles = kernels::launch_of(kTiles, 4, false, {7, 4, 8});
  CHECK((tiles.grid[0] == 7 && tiles.grid[1] == 4 && tiles.grid[2] == 8));
  CHECK((tiles.block[0] == 32 && tiles.block[1] == 4));
}

TEST_CASE("CUDA: products on halves go to tensor cores in all steps, where the card has them") {
  constexpr auto kHalves = engine::gpu::Kernel::kMatmulHalves;
  const auto told = [](bool many, std::uint32_t rows, std::uint32_t tiles) {
    const auto launch = kernels::launch_of(kHalves, 2, many, {rows, tiles, 1});
    return launch.name + " " + std::to_string(launch.grid[0]) + " " +
           std::to_string(launch.grid[1]) + " " + std::to_string(launch.block[1]);
  };
  CHECK(told(false, 896, 1) == "matmul_halves_2_8 1 56 8");
  CHECK(told(false, 100, 9) == "matmul_halves_2_8 9 7 8");  // experts
  CHECK(told(true, 896, 1) == "matmul_halves_2_8 1 56 8");
  CHECK(told(true, 896, 2) == "matmul_halves_2_8 2 56 8");
  CHECK(told(true, 896, 64) == "matmul_halves_2_64 8 14 4");
  CHECK(told(true, 4096, 64) == "matmul_halves_2_128 4 32 8");

  FAKE(fake_cuda_reset)();
  CHECK(fake_device()->limits().bf16_products);
  FAKE(fake_cuda_set_capability)(90, 75);
  CHECK(!fake_device()->limits().bf16_products);
  CHECK(fake_device()->limits().f16_products);
}

TEST_CASE("CUDA kernels on the CPU: every architecture's logits are the scalar CPU's") {
  FAKE(fake_cuda_reset)();
  check_architectures(fake_device);
}

TEST_CASE(
    "CUDA kernels on the CPU: with 8-bit KV every architecture's logits are the scalar CPU's") {
  FAKE(fake_cuda_reset)();
  check_architectures(fake_device, KvType::kQ8);
  check_huge_key_bias(fake_device);
}

TEST_CASE("CUDA kernels on the CPU: with weights of 16 bits logits are the scalar CPU's") {
  FAKE(fake_cuda_reset)();
  // Inputs are rounded to the weights' type.
  check_logits(wide(varieties()[1]), engine::TensorType::kF16, 5e-3, fake_device);
  check_logits(wide(varieties()[1]), engine::TensorType::kBF16, 4e-2, fake_device);
  for (const Variety& variety : varieties())
    if (variety.shape.experts > 0)
      check_logits(wide(variety), engine::TensorType::kF16, 5e-3, fake_device);
}

TEST_CASE("CUDA: a model that does not fit has some layers there and the others on the CPU") {
  FAKE(fake_cuda_reset)();
  check_split(fake_device);
}

TEST_CASE("CUDA: rows of two sequences in one step have the bits of each alone") {
  FAKE(fake_cuda_reset)();
  for (const KvType kv_type : {KvType::kF16, KvType::kQ8})
    check_sequences_together(fake_device, kv_type);
}

TEST_CASE("CUDA: with 8-bit KV a sequence may be longer than the device's pages") {
  FAKE(fake_cuda_reset)();
  check_repeated_pages(fake_device);
}

TEST_CASE("CUDA: pages that go to another device of the kind and back are read as they were") {
  FAKE(fake_cuda_reset)();
  for (const KvType kv_type : {KvType::kF16, KvType::kQ8}) check_pages(fake_device, kv_type);
}

TEST_CASE("CUDA kernels on the CPU: in whatever order threads run, the bits are the same") {
  FAKE(fake_cuda_reset)();
  const auto tokens = random_tokens(40, tiny_model().shape.vocabulary, 2);
  const auto forward =
      evaluate(**tiny_backend(fake_device()), tiny_model(), tokens, {64}, pages_from(0, 1));
  FAKE(fake_cuda_run_backward)();
  const auto backward =
      evaluate(**tiny_backend(fake_device()), tiny_model(), tokens, {64}, pages_from(0, 1));
  CHECK(forward == backward);
}

TEST_CASE("CUDA: unless asked for all, a device runs plain kernels and those that are confirmed") {
  FAKE(fake_cuda_reset)();
  CHECK(CudaOptions{}.variants == engine::gpu::kConfirmedVariants);
  const auto limits = plain_device()->limits();
  CHECK(limits.quantized_tile_min == 0);
  CHECK(!limits.f16_products);
  CHECK(!limits.bf16_products);
  CHECK(!limits.f16_attention);
  for (const auto& faster : {fake_device_with({})->limits(), fake_device()->limits()})
    CHECK((faster.quantized_tile_min > 1 && faster.f16_products && faster.bf16_products &&
           faster.f16_attention));
  // KV of other bits has another name on disk.
  CHECK((*tiny_backend(plain_device()))->page_format() !=
        (*tiny_backend(fake_device()))->page_format());
}

TEST_CASE("CUDA: the plain kernels alone agree with the specification and the scalar CPU") {
  FAKE(fake_cuda_reset)();
  check_products(*plain_device());
  check_attention_in_halves(*plain_device());
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kF16})
    check_logits(wide(varieties()[1]), type, type == TensorType::kF16 ? 2e-3 : 6e-2, plain_device);
  check_logits(varieties().back(), TensorType::kF32, 2e-3, plain_device);  // experts
}

TEST_CASE("CUDA kernels on the CPU: 64 greedy tokens of every architecture are the CPU's") {
  FAKE(fake_cuda_reset)();
  for (const Variety& variety : varieties())
    check_greedy(variety, TensorType::kF32, 64, 1e-3, fake_device);
  check_greedy(varieties()[1], TensorType::kF32, 64, 1e-2, fake_device, KvType::kQ8);
}

TEST_CASE("CUDA: pages that are on their way are there when they are needed") {
  FAKE(fake_cuda_reset)();
  check_page_transfer(fake_device);
}

TEST_CASE("CUDA: a device that computes otherwise than the CPU is told") {
  FAKE(fake_cuda_reset)();
  check_wrong_devices(fake_device);
}

TEST_CASE("CUDA: generation repeats one graph") {
  FAKE(fake_cuda_reset)();
  const auto backend = *tiny_backend(fake_device());
  const int before = FAKE(fake_cuda_graphs_made)();
  evaluate(*backend, tiny_model(), random_tokens(30, 100, 3), {1}, pages_from(0, 1));
  CHECK(FAKE(fake_cuda_graphs_made)() - before <= 1);
}

TEST_CASE("CUDA: no driver, a driver that is too old and no card are told, and what to do") {
  FAKE(fake_cuda_reset)();
  const auto missing = open_cuda_device({.library = "libno-such-driver.so.1"});
  REQUIRE(!missing);
  CHECK(missing.error().message().find("not installed") != std::string::npos);
  FAKE(fake_cuda_set_driver_version)(11080);
  const auto old = open_cuda_device({.library = EFIMD_FAKE_CUDA});
  REQUIRE(!old);
  CHECK(old.error().message().find("11.8") != std::string::npos);
  FAKE(fake_cuda_reset)();
  FAKE(fake_cuda_fail)("cuInit", CUDA_ERROR_NO_DEVICE, 0);
  const auto none = open_cuda_device({.library = EFIMD_FAKE_CUDA});
  REQUIRE(!none);
  CHECK(none.error().fault == Fault::kNotFound);
}

TEST_CASE(
    "CUDA: of several cards the one with most free memory is taken, and the others are left") {
  FAKE(fake_cuda_reset)();
  FAKE(fake_cuda_add_card)(std::size_t{2} << 30);
  FAKE(fake_cuda_add_card)(std::size_t{1} << 29);
  const auto held = [](int card) { return FAKE(fake_cuda_contexts_held)(card); };
  {
    const auto device = fake_device();
    CHECK(device->name().find("no card 1,") != std::string::npos);
    CHECK(std::vector{held(0), held(1), held(2)} == std::vector{0, 1, 0});
  }
  CHECK(held(1) == 0);
  FAKE(fake_cuda_reset)();
}

TEST_CASE("CUDA: a card that is too old is told apart from one whose memory is taken") {
  FAKE(fake_cuda_reset)();
  FAKE(fake_cuda_set_capability)(70, 70);
  const auto old = open_cuda_device({.library = EFIMD_FAKE_CUDA});
  REQUIRE(!old);
  CHECK(old.error().what.find("compute capability 7.0, the kernels need 7.5") != std::string::npos);
  CHECK(old.error().remedy.find("Vulkan") != std::string::npos);
  FAKE(fake_cuda_reset)();
  FAKE(fake_cuda_fail)("cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY, 0);
  const auto taken = open_cuda_device({.library = EFIMD_FAKE_CUDA});
  REQUIRE(!taken);
  CHECK(taken.error().what.find("memory of the NVIDIA device is taken") != std::string::npos);
  CHECK(taken.error().remedy.find("close programs") != std::string::npos);
  FAKE(fake_cuda_reset)();
  FAKE(fake_cuda_fail)("cuModuleLoadData", CUDA_ERROR_OUT_OF_MEMORY, 0);
  const auto full = open_cuda_device({.library = EFIMD_FAKE_CUDA});
  REQUIRE(!full);
  CHECK(full.error().fault == Fault::kNoMemory);
}

TEST_CASE("CUDA: a step has as many tokens as are evaluated in time, and never fewer than 64") {
  FAKE(fake_cuda_reset)();
  unsigned tried = 0;
  const auto most = [&](int tokens, double ms) {
    tried = 0;
    engine::gpu::GpuOptions options{16, tokens};
    options.step_ms_max = ms;
    const auto backend =
        engine::gpu::make_gpu_backend(std::make_unique<MostTokens>(fake_device(), tried),
                                      tiny_model().shape, tiny_model().weights, options);
    REQUIRE(backend);
    return (*backend)->step_tokens_max();
  };
  CHECK(most(256, 1e-9) == 64);
  CHECK(tried == 17);  // a slow device has no long step before it is ready
  CHECK(most(128, 1e9) == 128);
  CHECK(tried == 64);
  CHECK(most(128, 0) == 128);
  CHECK(most(40, 1e-9) == 40);
}

TEST_CASE("CUDA: a model that does not fit is refused with both sizes") {
  FAKE(fake_cuda_reset)();
  FAKE(fake_cuda_set_memory)(std::size_t{4} << 20);
  const auto backend = tiny_backend(fake_device());
  REQUIRE(!backend);
  CHECK(backend.error().fault == Fault::kNoMemory);
  CHECK(backend.error().what.find("MiB") != std::string::npos);
}

TEST_CASE("CUDA: whichever call fails first, it is an error and the device stays lost") {
  for (const char* function : {"cuMemcpyAsync", "cuLaunchKernel", "cuStreamEndCapture",
                               "cuGraphInstantiate", "cuGraphLaunch", "cuStreamSynchronize"}) {
    INFO(function);
    FAKE(fake_cuda_reset)();
    const auto backend = *tiny_backend(fake_device());
    FAKE(fake_cuda_fail)(function, CUDA_ERROR_ILLEGAL_ADDRESS, 0);
    const auto pages = pages_from(0, 1);
    const std::vector<engine::TokenId> tokens = {1, 2, 3, 4, 5};
    const engine::StepSequence sequence{0, 5, 0, pages};
    const int row = 4;
    const auto step = [&] {
      forward_layers(*backend, {tokens, {&sequence, 1}, {&row, 1}}, 2);
      return backend->logits();
    };
    const auto lost = step();
    REQUIRE(!lost);
    CHECK(lost.error().fault == Fault::kDeviceLost);
    CHECK(!step());
  }
}

TEST_CASE(
    "CUDA: whichever call fails under a page on its way, it is told and the device stays lost") {
  for (const char* function : {"cuMemcpyAsync", "cuEventRecord", "cuEventSynchronize"}) {
    INFO(function);
    FAKE(fake_cuda_reset)();
    const auto backend = *tiny_backend(fake_device());
    std::vector<std::byte> page(backend->page_bytes());
    FAKE(fake_cuda_fail)(function, CUDA_ERROR_ILLEGAL_ADDRESS, 0);
    backend->expect_read(1);
    static_cast<void>(backend->write_page(0, page));
    for (int i = 0; i < 2; ++i) {
      const auto read = backend->read_page(1, page);
      REQUIRE(!read);
      CHECK(read.error().fault == Fault::kDeviceLost);
    }
  }
}

TEST_CASE("CUDA: whichever allocation fails, it is an error that names the amount") {
  int before = 0;
  for (bool opened = false; !opened; before += 3) {
    INFO("after " << before << " allocations");
    FAKE(fake_cuda_reset)();
    auto device = fake_device();
    FAKE(fake_cuda_fail)("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, before);
    const auto backend = tiny_backend(std::move(device));
    opened = backend.has_value();
    if (opened) continue;
    CHECK(backend.error().fault == Fault::kNoMemory);
    CHECK(backend.error().what.find("OUT_OF_MEMORY") != std::string::npos);
  }
  CHECK(before > 20);
}

}  // namespace efimd::test
