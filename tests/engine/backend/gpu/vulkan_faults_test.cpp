// What goes wrong with a Vulkan device: lost, out of memory, too small, a cache of another driver.
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/backend/gpu/gpu_backend.h"
#include "engine/backend/open_backend.h"
#include "engine/backend/vulkan/render_nodes.h"
#include "engine/backend/vulkan/vulkan_api.h"
#include "engine/lasting_engine.h"
#include "engine/local_engine.h"
#include "engine/model/model.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/evaluate.h"
#include "tests/engine/backend/gpu/tiny_backend.h"
#include "tests/engine/backend/gpu/vulkan_devices.h"
#include "tests/engine/backend/varieties.h"
#include "tests/support/temp_dir.h"

namespace efimd::test {
namespace {

using engine::vulkan::VulkanApi;
using engine::vulkan::VulkanOptions;

/// Calls that still succeed; then the function below fails.
int calls_left = 0;
/// With this.
VkResult lost_with = VK_ERROR_DEVICE_LOST;
PFN_vkQueueSubmit real_submit = nullptr;
PFN_vkAllocateMemory real_allocate = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL lose_device(VkQueue queue, std::uint32_t count,
                                           const VkSubmitInfo* submits, VkFence fence) {
  return calls_left-- > 0 ? real_submit(queue, count, submits, fence) : lost_with;
}
VKAPI_ATTR VkResult VKAPI_CALL run_out(VkDevice device, const VkMemoryAllocateInfo* info,
                                       const VkAllocationCallbacks* callbacks,
                                       VkDeviceMemory* memory) {
  return calls_left-- > 0 ? real_allocate(device, info, callbacks, memory)
                          : VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

/// Counts what is submitted.
int submissions = 0;
VKAPI_ATTR VkResult VKAPI_CALL count_submissions(VkQueue queue, std::uint32_t count,
                                                 const VkSubmitInfo* submits, VkFence fence) {
  ++submissions;
  return real_submit(queue, count, submits, fence);
}

/// A driver that says what is free of its memory, which is little.
constexpr VkDeviceSize kBudget = VkDeviceSize{100} << 20U, kUsed = VkDeviceSize{40} << 20U;
PFN_vkEnumerateDeviceExtensionProperties real_extensions = nullptr;
PFN_vkGetPhysicalDeviceMemoryProperties real_memory = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL with_budget(VkPhysicalDevice device, const char* layer,
                                           std::uint32_t* count, VkExtensionProperties* found) {
  if (found == nullptr) {
    const VkResult done = real_extensions(device, layer, count, nullptr);
    ++*count;
    return done;
  }
  --*count;
  const VkResult done = real_extensions(device, layer, count, found);
  found[*count] = {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, 1};
  ++*count;
  return done;
}
VKAPI_ATTR void VKAPI_CALL budgeted(VkPhysicalDevice device,
                                    VkPhysicalDeviceMemoryProperties2* memory) {
  real_memory(device, &memory->memoryProperties);
  auto* budget = static_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(memory->pNext);
  for (std::uint32_t i = 0; i < memory->memoryProperties.memoryHeapCount; ++i)
    budget->heapBudget[i] = kBudget, budget->heapUsage[i] = kUsed;
}

/// A driver with two kinds of memory, of which the first is full.
PFN_vkGetBufferMemoryRequirements real_requirements = nullptr;

std::uint32_t real_types = 0;
VKAPI_ATTR void VKAPI_CALL two_types(VkPhysicalDevice device,
                                     VkPhysicalDeviceMemoryProperties* memory) {
  real_memory(device, memory);
  real_types = memory->memoryTypeCount;
  memory->memoryTypeCount = 2;
  memory->memoryTypes[1] = memory->memoryTypes[0];
}
VKAPI_ATTR void VKAPI_CALL either_type(VkDevice device, VkBuffer buffer,
                                       VkMemoryRequirements* needs) {
  real_requirements(device, buffer, needs);
  needs->memoryTypeBits = 3;
}
VKAPI_ATTR VkResult VKAPI_CALL first_is_full(VkDevice device, const VkMemoryAllocateInfo* info,
                                             const VkAllocationCallbacks* callbacks,
                                             VkDeviceMemory* memory) {
  if (info->memoryTypeIndex == 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  VkMemoryAllocateInfo first = *info;
  first.memoryTypeIndex = 0;
  return real_allocate(device, &first, callbacks, memory);
}

VulkanOptions losing() {
  VulkanOptions options;
  options.adjust = [](VulkanApi& api) {
    real_submit = api.QueueSubmit;
    api.QueueSubmit = lose_device;
  };
  return options;
}

/// A driver that hides every device.
VKAPI_ATTR VkResult VKAPI_CALL no_devices(VkInstance, std::uint32_t* count, VkPhysicalDevice*) {
  *count = 0;
  return VK_SUCCESS;
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_CASE("Vulkan: a step that takes too long for one submission is cut, and has the same bits") {
  const auto tokens = random_tokens(40, tiny_model().shape.vocabulary, 2);
  std::vector<std::vector<float>> told;
  std::vector<int> counts;
  for (const auto& limit : {std::chrono::nanoseconds(0), std::chrono::nanoseconds::max()}) {
    VulkanOptions options;
    options.submission_max = limit;
    options.adjust = [](VulkanApi& api) {
      real_submit = api.QueueSubmit;
      api.QueueSubmit = count_submissions;
    };
    auto device = vulkan_device(options);
    if (!device) return;
    const auto backend = tiny_backend(std::move(device));
    REQUIRE(backend);
    submissions = 0;
    const auto logits = evaluate(**backend, tiny_model(), tokens, {39, 1}, pages_from(0, 1));
    told.emplace_back(logits.begin(), logits.end());
    counts.push_back(submissions);
  }
  check_same_bits(told[0], told[1]);
  CHECK(counts[0] >= 4);
  CHECK(counts[1] == 2);
}

TEST_CASE("Vulkan: a lost device is an error of the step that met it, and of every later one") {
  // The last two are what some drivers say of a device that is gone.
  const std::pair<VkResult, std::string> answers[] = {
      {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
      {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
      {VK_ERROR_UNKNOWN, "VK_ERROR_UNKNOWN"}};
  for (const auto& [answer, name] : answers) {
    CAPTURE(name);
    calls_left = 1 << 30;
    auto device = vulkan_device(losing());
    if (!device) return;
    const auto backend = tiny_backend(std::move(device));
    REQUIRE(backend);
    calls_left = 0, lost_with = answer;
    const auto pages = pages_from(0, 1);
    const std::vector<engine::TokenId> tokens = {1, 2, 3};
    const engine::StepSequence sequence{0, 3, 0, pages};
    const int row = 2;
    for (int i = 0; i < 2; ++i) {
      forward_layers(**backend, {tokens, {&sequence, 1}, {&row, 1}}, 2);
      const auto lost = (*backend)->logits();
      REQUIRE(!lost);
      CHECK(lost.error().fault == Fault::kDeviceLost);
      CHECK(lost.error().what.find(name) != std::string::npos);
      calls_left = 1 << 30;  // a device that was lost does not come back
    }
  }
  lost_with = VK_ERROR_DEVICE_LOST;
}

TEST_CASE("Vulkan: a model whose file was cut before its weights came to the device is refused") {
  const TempDir folder;
  const std::filesystem::path path = folder.path() / "cut.gguf";
  std::filesystem::copy_file(EFIMD_TRAINED_MODEL, path);
  const auto model = engine::Model::open(path);
  REQUIRE(model);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 4);
  engine::DeviceWish wish;
  wish.kind = "vulkan";
  wish.page_count = 64;
  const auto opened = engine::open_backend(*model, wish);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().what.find("was changed while it was loaded") != std::string::npos);
}

TEST_CASE("Vulkan: a GPU that something speaks against is passed over, with the reason") {
  const auto model = engine::Model::open(EFIMD_TRAINED_MODEL);
  REQUIRE(model);
  engine::DeviceWish wish;
  wish.kind = "vulkan";
  wish.page_count = 64;
  std::vector<engine::FoundGpu> asked;
  wish.objection = [&](const engine::FoundGpu& gpu) {
    asked.push_back(gpu);
    return "the CPU answers sooner";
  };
  const auto opened = engine::open_backend(*model, wish);
  REQUIRE(opened);
  if (asked.empty()) return;  // there is none
  CHECK(asked.back().kind == "vulkan");
  CHECK_FALSE(asked.back().name.empty());
  CHECK(opened->backend->kind() == "cpu");
  CHECK(opened->reason.find("vulkan: the CPU answers sooner") != std::string::npos);
}

TEST_CASE(
    "Vulkan: an engine whose GPU is lost in mid-session goes on on the CPU with the same text") {
  calls_left = 1 << 30;
  auto device = vulkan_device(losing());
  if (!device) return;
  auto gpu = tiny_backend(std::move(device));
  REQUIRE(gpu);
  const auto local = [](std::unique_ptr<engine::Backend> backend) {
    const engine::ModelFacts facts{
        .digest = {}, .layers = 2, .vocabulary = 100, .context_tokens = 512};
    return engine::LocalEngine::make(facts, nullptr, std::move(backend), engine::EngineOptions{})
        .map([](std::unique_ptr<engine::LocalEngine> made) -> std::unique_ptr<engine::Engine> {
          return made;
        });
  };
  std::string lost_as;
  const auto engine = engine::LastingEngine::make(nullptr, [&](const Error* lost) {
    if (lost == nullptr) return local(*std::move(gpu));
    lost_as = lost->what;
    return local(efimd::test::device(tiny_model(), engine::Isa::kScalar, 2));
  });
  REQUIRE(engine);
  CHECK((*engine)->device_kind() == "vulkan");
  const auto sequence = (*engine)->open_sequence();
  REQUIRE((*engine)->prefill(sequence, random_tokens(50, 100, 4), {}));
  const std::vector<float> before((*engine)->logits(sequence, 0).begin(),
                                  (*engine)->logits(sequence, 0).end());
  calls_left = 0;
  REQUIRE((*engine)->append(sequence, 7));
  CHECK(lost_as.find("VK_ERROR_DEVICE_LOST") != std::string::npos);
  CHECK((*engine)->device_kind() == "cpu");
  CHECK((*engine)->held(sequence).size() == 51);
  CHECK(!(*engine)->logits(sequence, 0).empty());
}

TEST_CASE("Vulkan: whichever allocation fails, the model is refused and nothing leaks") {
  int succeed = 0;
  for (bool opened = false; !opened; succeed += 5) {
    INFO("after " << succeed << " allocations");
    calls_left = succeed;
    VulkanOptions options;
    options.adjust = [](VulkanApi& api) {
      real_allocate = api.AllocateMemory;
      api.AllocateMemory = run_out;
    };
    auto device = vulkan_device(options);
    if (!device) return;
    const auto backend = tiny_backend(std::move(device));
    opened = backend.has_value();
    if (opened) continue;
    CHECK(backend.error().fault == Fault::kNoMemory);
    CHECK(backend.error().what.find("VK_ERROR_OUT_OF_DEVICE_MEMORY") != std::string::npos);
  }
  CHECK(succeed > 20);
}

TEST_CASE("Vulkan: a device with too little memory is refused with both sizes") {
  auto device = vulkan_device({.memory_bytes = std::size_t{4} << 20});
  if (!device) return;
  const auto backend = tiny_backend(std::move(device));
  REQUIRE(!backend);
  CHECK(backend.error().fault == Fault::kNoMemory);
  CHECK(backend.error().what.find("has 4 MiB") != std::string::npos);
}

TEST_CASE("Vulkan: a device has the memory that its driver says is free") {
  VulkanOptions options;
  options.adjust_instance = [](VulkanApi& api) {
    real_extensions = api.EnumerateDeviceExtensionProperties;
    real_memory = api.GetPhysicalDeviceMemoryProperties;
    api.EnumerateDeviceExtensionProperties = with_budget;
    api.GetPhysicalDeviceMemoryProperties2 = budgeted;
  };
  const auto device = vulkan_device(options);
  if (!device) return;
  const std::size_t memory = device->limits().memory_bytes;
  CHECK(memory > (kBudget - kUsed) / 2);
  CHECK(memory < kBudget - kUsed);
}

TEST_CASE("Vulkan: where one kind of memory is full another is taken") {
  VulkanOptions options;
  options.adjust_instance = [](VulkanApi& api) {
    real_memory = api.GetPhysicalDeviceMemoryProperties;
    api.GetPhysicalDeviceMemoryProperties = two_types;
  };
  options.adjust = [](VulkanApi& api) {
    real_allocate = api.AllocateMemory;
    real_requirements = api.GetBufferMemoryRequirements;
    api.AllocateMemory = first_is_full;
    api.GetBufferMemoryRequirements = either_type;
  };
  auto device = vulkan_device(options);
  if (!device) return;
  if (real_types > 1) {  // then the second would not be like the first
    WARN("SKIPPED  Vulkan: this driver has several kinds of memory of its own");
    return;
  }
  CHECK(tiny_backend(std::move(device)));
}

TEST_CASE(
    "Vulkan: where there is no GPU but one that the user may not open, it is said what to do") {
  const TempDir folder;
  VulkanOptions options;
  options.adjust_instance = [](VulkanApi& api) { api.EnumeratePhysicalDevices = no_devices; };
  options.render_nodes = folder.path();
  std::ofstream(folder.path() / "renderD128").close();
  std::ofstream(folder.path() / "card0").close();
  CHECK(!engine::vulkan::refused_render_node(folder.path()));
  CHECK(!engine::vulkan::refused_render_node(folder.path() / "none"));
  const auto none = engine::vulkan::open_vulkan_device(options);
  REQUIRE(!none);
  CHECK(none.error().fault == Fault::kNotFound);
  // A node that cannot be opened, by root neither: it leads nowhere.
  std::filesystem::create_symlink("nowhere", folder.path() / "renderD129");
  CHECK(engine::vulkan::refused_render_node(folder.path()) == folder.path() / "renderD129");
  const auto refused = engine::vulkan::open_vulkan_device(options);
  REQUIRE(!refused);
  if (refused.error().fault == Fault::kNotFound) return;  // no loader
  CHECK(refused.error().fault == Fault::kIo);
  CHECK(refused.error().what.find("renderD129") != std::string::npos);
  CHECK(refused.error().remedy.find("usermod -aG render") != std::string::npos);
}

TEST_CASE("Vulkan: a damaged pipeline cache, and one of another driver, is written anew") {
  const TempDir folder;
  const auto file = folder.path() / "pipelines";
  const auto start = [&] {
    auto device = vulkan_device({.pipeline_cache = file});
    if (device) REQUIRE(tiny_backend(std::move(device)));
    return device != nullptr || std::filesystem::exists(file);
  };
  if (!start()) return;
  const std::string good = bytes_of(file);
  REQUIRE(good.size() >= 56);
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{12}, std::size_t{30}, std::size_t{45}, good.size() - 1}) {
    INFO("byte " << at);
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x55);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bad;
    start();
    CHECK(bytes_of(file).substr(0, 40) == good.substr(0, 40));
    CHECK(bytes_of(file) != bad);
  }
}

TEST_CASE("Vulkan: the validation layer is on: it tells of a copy past a buffer's end") {
  std::string told;
  VulkanOptions options;
  options.software = VulkanOptions::Software::kIfNothing;
  options.on_validation = [&](const std::string& message) { told += message; };
  const auto device = engine::vulkan::open_vulkan_device(options);
  if (!device) {
    WARN("SKIPPED  Vulkan: " << device.error().message());
    return;
  }
  const auto buffer = (*device)->allocate(64, engine::gpu::Memory::kHostWrites);
  const auto target = (*device)->allocate(64, engine::gpu::Memory::kDevice);
  REQUIRE(buffer);
  REQUIRE(target);
  engine::gpu::Operation copy;
  copy.operands[0] = {*buffer, 60, 8};
  copy.operands[1] = {*target, 0, 8};
  static_cast<void>((*device)->run({&copy, 1}));
  CHECK(told.find("vkCmdCopyBuffer") != std::string::npos);
}

}  // namespace efimd::test
