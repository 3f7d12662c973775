#include "daemon/models/speed/machine_speed.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "daemon/config/amounts.h"
#include "engine/model/model.h"

namespace efimd::service {

using namespace engine;

namespace {

/// The shape of Qwen2.5-Coder-1.5B, with a small vocabulary.
constexpr int kLayers = 28, kWidth = 1536, kHeads = 12, kKvHeads = 2, kHeadWidth = 128;
constexpr int kFeedForward = 8960, kVocabulary = 1024;
constexpr std::int64_t kLayerParameters =
    2LL * kWidth * kWidth + 2LL * kWidth * kKvHeads * kHeadWidth + 3LL * kWidth * kFeedForward;
/// As expected_speed() measures, and a layer more.
constexpr std::uint64_t kProbeBytes = std::uint64_t{256} << 20;

/// A block of small weights; every block is the same, because speed does not depend on values.
std::vector<std::byte> block_of(TensorType type) {
  std::vector<std::byte> block(static_cast<std::size_t>(tensor_block(type).bytes));
  for (std::size_t i = 0; i < block.size(); ++i)
    block[i] = static_cast<std::byte>((i * 37 + 11) & 0x3f);
  const std::uint16_t scale = 0x1400;  // about 0.001 as f16
  std::memcpy(block.data(), &scale, sizeof scale);
  if (type == TensorType::kQ4_K) std::memcpy(block.data() + 2, &scale, sizeof scale);
  return block;
}

/// Memory for weights, handed out from its beginning.
class WeightMemory {
 public:
  WeightMemory(TensorType type, std::size_t bytes) : type_(type), bytes_(bytes) {
    const std::vector<std::byte> block = block_of(type);
    for (std::size_t at = 0; at + block.size() <= bytes_.size(); at += block.size())
      std::memcpy(bytes_.data() + at, block.data(), block.size());
  }
  TensorView matrix(std::int64_t rows, std::int64_t cols) {
    TensorView view{type_, bytes_.data() + used_, rows, cols};
    used_ += static_cast<std::size_t>(rows) * view.row_bytes();
    return view;
  }

 private:
  TensorType type_;
  std::vector<std::byte> bytes_;
  std::size_t used_ = 0;
};

std::uint64_t bytes_of(TensorType type, std::int64_t parameters) {
  const TensorBlock block = tensor_block(type);
  return static_cast<std::uint64_t>(parameters / block.elements * block.bytes);
}

ModelShape probe_shape() {
  ModelShape shape;
  shape.architecture = "qwen2";
  shape.layers = kLayers;
  shape.width = kWidth;
  shape.heads = kHeads;
  shape.kv_heads = kKvHeads;
  shape.head_width = kHeadWidth;
  shape.feed_forward = kFeedForward;
  shape.vocabulary = kVocabulary;
  shape.context_tokens = 4096;
  shape.rope_pairs = RopePairs::kHalves;
  shape.rope_width = kHeadWidth;
  return shape;
}

LayerWeights probe_layer(WeightMemory& memory, const TensorView& norm) {
  LayerWeights layer;
  layer.attention_norm = layer.feed_forward_norm = norm;
  layer.query = memory.matrix(kHeads * kHeadWidth, kWidth);
  layer.key = memory.matrix(kKvHeads * kHeadWidth, kWidth);
  layer.value = memory.matrix(kKvHeads * kHeadWidth, kWidth);
  layer.attention_output = memory.matrix(kWidth, kHeads * kHeadWidth);
  layer.gate = memory.matrix(kFeedForward, kWidth);
  layer.up = memory.matrix(kFeedForward, kWidth);
  layer.down = memory.matrix(kWidth, kFeedForward);
  return layer;
}

Result<WeightRates> rates_of(const DeviceHere& device, TensorType type, DeviceRates& named) {
  const std::uint64_t layer_bytes = bytes_of(type, kLayerParameters);
  const std::uint64_t output_bytes = bytes_of(type, std::int64_t{kVocabulary} * kWidth);
  const std::uint64_t there = std::min<std::uint64_t>(kProbeBytes / layer_bytes + 1, kLayers);
  WeightMemory memory(type, static_cast<std::size_t>(there * layer_bytes + output_bytes));
  const std::vector<float> ones(kWidth, 1.0F);
  const TensorView norm{TensorType::kF32, std::as_bytes(std::span(ones)).data(), 1, kWidth};
  ModelWeights weights;
  for (std::uint64_t i = 0; i < there; ++i) weights.layers.push_back(probe_layer(memory, norm));
  // Layers after those that are measured are never read.
  while (weights.layers.size() < kLayers) weights.layers.push_back(weights.layers.back());
  weights.token_embedding = weights.output = memory.matrix(kVocabulary, kWidth);
  weights.output_norm = norm;
  const std::uint64_t whole = kLayers * layer_bytes + output_bytes;
  const Result<ExpectedSpeed> speed = expected_speed(probe_shape(), weights, whole, device.make);
  if (!speed) return tl::unexpected(speed.error());
  named.kind = speed->device_kind;
  named.name = speed->device_name;
  return WeightRates{speed->generation_tokens_per_s * static_cast<double>(whole),
                     speed->prompt_tokens_per_s * static_cast<double>(kLayers * kLayerParameters)};
}

struct NamedBits {
  std::string_view name;
  double bits;  ///< of a parameter, in files as they are quantized by default
};
/// Longer names first, where one begins another.
constexpr std::array<NamedBits, 26> kBits = {{
    {"IQ1_S", 2.0},   {"IQ1_M", 2.2},  {"IQ2_XXS", 2.4}, {"IQ2_XS", 2.6}, {"IQ2_M", 2.9},
    {"IQ3_XXS", 3.3}, {"IQ3_XS", 3.5}, {"IQ3_M", 3.8},   {"IQ3_S", 3.7},  {"IQ4_XS", 4.5},
    {"IQ4_NL", 4.7},  {"Q2_K", 3.2},   {"Q3_K_S", 3.6},  {"Q3_K_M", 4.0}, {"Q3_K_L", 4.3},
    {"Q4_K_S", 4.7},  {"Q4_K_M", 4.9}, {"Q4_0", 4.7},    {"Q4_1", 5.1},   {"Q5_K_S", 5.6},
    {"Q5_K_M", 5.7},  {"Q5_0", 5.6},   {"Q6_K", 6.6},    {"Q8_0", 8.5},   {"BF16", 16},
    {"F16", 16},
}};

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::vector<DeviceRates> machine_speed(const std::vector<DeviceHere>& devices) {
  std::vector<DeviceRates> found;
  for (const DeviceHere& device : devices) {
    DeviceRates rates;
    rates.weight_bytes_max = device.weight_bytes_max;
    const auto eight = rates_of(device, TensorType::kQ8_0, rates);
    const auto four = eight ? rates_of(device, TensorType::kQ4_K, rates) : eight;
    if (!four) continue;
    rates.eight_bits = *eight;
    rates.four_bits = *four;
    found.push_back(std::move(rates));
  }
  return found;
}

std::string limit_text(const DeviceRates& device) {
  if (device.weight_bytes_max == 0) return "";
  return ", for models of up to " + bytes_text(static_cast<double>(device.weight_bytes_max));
}

GuessedSpeed guessed_speed(const DeviceRates& device, const TokenCost& cost) {
  const double bits = bits_of_weights(cost.weights);
  const WeightRates& rates = bits == 0 || bits > 7 ? device.eight_bits : device.four_bits;
  GuessedSpeed speed{device.kind, device.name};
  speed.generation_tokens_per_s =
      rates.bytes_per_s / std::max(static_cast<double>(cost.bytes), 1.0);
  speed.prompt_tokens_per_s =
      rates.parameters_per_s / std::max(static_cast<double>(cost.parameters), 1.0);
  // A few typed tokens are read in one step, which costs a token's reading of the weights or more.
  const double read_s =
      std::max(1 / speed.generation_tokens_per_s, kReadTokens / speed.prompt_tokens_per_s);
  speed.first_answer_ms = 1000 * (read_s + (kWrittenTokens - 1) / speed.generation_tokens_per_s);
  return speed;
}

std::string weights_in_name(std::string_view file) {
  std::string upper(file);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const auto& [name, bits] : kBits) {
    for (std::size_t at = upper.find(name); at != std::string::npos;
         at = upper.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      if ((at == 0 || !is_of_name(upper[at - 1])) &&
          (end == upper.size() || !is_of_name(upper[end])))
        return std::string(name);
    }
  }
  return "";
}

double bits_of_weights(std::string_view weights) {
  for (const auto& [name, bits] : kBits)
    if (name == weights) return bits;
  return 0;
}

}  // namespace efimd::service
