#include "engine/backend/vulkan/pipelines.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "base/digest.h"
#include "kernels/sizes.h"

namespace efimd::engine::vulkan {

namespace {

using gpu::Kernel;

constexpr std::size_t kCacheBytesMax = std::size_t{64} << 20;
constexpr std::uint32_t kHeaderVersion = 1;

/// The shader of an operation; nullptr if it has none.
struct Shader {
  Kernel kernel;
  const char* name;
};
constexpr std::array<Shader, kernels::kKernels> kShaders = {{
    {Kernel::kEmbedRows, "embed_rows"},
    {Kernel::kNormRows, "norm_rows"},
    {Kernel::kMatmul, "matmul"},
    {Kernel::kMatmulHalves, nullptr},
    {Kernel::kStoreRows, "store_rows"},
    {Kernel::kAttention, "attention"},
    {Kernel::kAttentionTiles, nullptr},
    {Kernel::kMerge, "merge"},
    {Kernel::kActivate, "activate"},
    {Kernel::kRoute, "route"},
    {Kernel::kCombine, "combine"},
    {Kernel::kCopy, nullptr},
}};
static_assert(kernels::rows_stand_at_their_kernels(kShaders));

/// The share of a workgroup: tokens in products, heads of tokens in attention.
std::uint32_t tile_of(const gpu::Operation& operation) {
  if (!operation.many) return 1;
  if (operation.kernel == Kernel::kMatmul) return kernels::kTokensOfTile;
  return operation.kernel == Kernel::kAttention ? kernels::attention_tile(operation.type) : 1;
}

}  // namespace

Pipelines::~Pipelines() {
  const VulkanApi& api = context_.api;
  for (const auto& [key, pipeline] : pipelines_)
    api.DestroyPipeline(context_.device, pipeline, nullptr);
  api.DestroyPipelineCache(context_.device, cache_, nullptr);
  api.DestroyPipelineLayout(context_.device, layout_, nullptr);
  api.DestroyDescriptorSetLayout(context_.device, operands_, nullptr);
}

Result<void> Pipelines::open() {
  const VulkanApi& api = context_.api;
  std::array<VkDescriptorSetLayoutBinding, gpu::kOperandsMax> bindings = {};
  for (std::uint32_t i = 0; i < bindings.size(); ++i)
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = bindings.size();
  set.pBindings = bindings.data();
  VkResult done = api.CreateDescriptorSetLayout(context_.device, &set, nullptr, &operands_);
  const VkPushConstantRange sizes = {VK_SHADER_STAGE_COMPUTE_BIT, 0, gpu::kSizesBytesMax};
  VkPipelineLayoutCreateInfo layout = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &operands_;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &sizes;
  if (done == VK_SUCCESS)
    done = api.CreatePipelineLayout(context_.device, &layout, nullptr, &layout_);
  const std::vector<std::byte> kept = read_file();
  VkPipelineCacheCreateInfo cache = {VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  cache.initialDataSize = kept.size();
  cache.pInitialData = kept.data();
  if (done == VK_SUCCESS) done = api.CreatePipelineCache(context_.device, &cache, nullptr, &cache_);
  if (done != VK_SUCCESS) return vulkan_failed("pipelines of " + context_.name(), done);
  read_from_file_ = !kept.empty();
  return {};
}

Result<VkPipeline> Pipelines::of(const gpu::Operation& operation) {
  const auto key = std::tuple(operation.kernel, operation.type, tile_of(operation));
  if (const auto found = pipelines_.find(key); found != pipelines_.end()) return found->second;
  auto made = make(operation);
  if (made) pipelines_.emplace(key, *made);
  return made;
}

Result<VkPipeline> Pipelines::make(const gpu::Operation& operation) {
  const char* name = kShaders[static_cast<std::size_t>(operation.kernel)].name;
  const std::span<const std::uint32_t> code = shaders::spirv(name, context_.level);
  VkShaderModuleCreateInfo info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = code.size_bytes();
  info.pCode = code.data();
  VkShaderModule module = VK_NULL_HANDLE;
  VkResult done = context_.api.CreateShaderModule(context_.device, &info, nullptr, &module);
  if (done != VK_SUCCESS) return vulkan_failed(std::string("shader ") + name, done);

  // Constants 0 to 2: the type of weights or of KV, what a workgroup takes of many, and pieces of a head.
  const std::uint32_t values[] = {operation.type & 0xFFU, tile_of(operation), operation.type >> 8U};
  const VkSpecializationMapEntry entries[] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}};
  const VkSpecializationInfo constants = {3, entries, sizeof values, values};
  VkComputePipelineCreateInfo pipeline = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  pipeline.stage.module = module;
  pipeline.stage.pName = "main";
  pipeline.stage.pSpecializationInfo = &constants;
  pipeline.layout = layout_;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroups = {
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  subgroups.requiredSubgroupSize = context_.subgroups.size_for(operation.kernel);
  if (context_.level != shaders::Level::kPlain && subgroups.requiredSubgroupSize > 0)
    pipeline.stage.pNext = &subgroups;
  VkPipeline made = VK_NULL_HANDLE;
  done = context_.api.CreateComputePipelines(context_.device, cache_, 1, &pipeline, nullptr, &made);
  context_.api.DestroyShaderModule(context_.device, module, nullptr);
  if (done != VK_SUCCESS) return vulkan_failed(std::string("pipeline ") + name, done);
  changed_ = true;
  return made;
}

std::array<std::byte, Pipelines::kHeaderBytes> Pipelines::header(
    std::span<const std::byte> data) const {
  const VkPhysicalDeviceProperties& of = context_.properties;
  const std::uint32_t numbers[] = {kHeaderVersion, of.driverVersion, of.vendorID, of.deviceID};
  const Digest digest = digest_of(data, {});
  std::array<std::byte, kHeaderBytes> bytes;
  std::memcpy(bytes.data(), "efimd-vk", 8);
  std::memcpy(bytes.data() + 8, numbers, sizeof numbers);
  std::memcpy(bytes.data() + 24, of.pipelineCacheUUID, VK_UUID_SIZE);
  std::memcpy(bytes.data() + 40, &digest, sizeof digest);
  return bytes;
}

std::vector<std::byte> Pipelines::read_file() {
  std::error_code error;
  if (file_.empty()) return {};
  const std::uintmax_t size = std::filesystem::file_size(file_, error);
  if (error || size > kCacheBytesMax) return {};
  std::ifstream stream(file_, std::ios::binary);
  std::vector<char> bytes(std::istreambuf_iterator<char>(stream), {});
  const std::span<const std::byte> all = std::as_bytes(std::span(bytes));
  if (all.size() <= kHeaderBytes) return {};
  const std::span<const std::byte> data = all.subspan(kHeaderBytes);
  const auto wanted = header(data);
  if (!std::equal(wanted.begin(), wanted.end(), all.begin())) return {};
  return {data.begin(), data.end()};
}

void Pipelines::keep() {
  if (!changed_ || file_.empty()) return;
  changed_ = false;
  std::size_t size = 0;
  const VulkanApi& api = context_.api;
  if (api.GetPipelineCacheData(context_.device, cache_, &size, nullptr) != VK_SUCCESS) return;
  std::vector<std::byte> data(size);
  if (api.GetPipelineCacheData(context_.device, cache_, &size, data.data()) != VK_SUCCESS) return;
  data.resize(size);
  const auto head = header(data);
  std::error_code error;
  std::filesystem::create_directories(file_.parent_path(), error);
  const std::filesystem::path next = file_.string() + ".new";
  std::ofstream stream(next, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(head.data()),
               static_cast<std::streamsize>(head.size()));
  stream.write(reinterpret_cast<const char*>(data.data()),
               static_cast<std::streamsize>(data.size()));
  stream.close();
  if (!stream.fail()) std::filesystem::rename(next, file_, error);
}

}  // namespace efimd::engine::vulkan
