#include "engine/backend/gpu/step_operations.h"

#include <algorithm>

#include "engine/backend/gpu/gpu_attention.h"
#include "engine/backend/gpu/packed_weights.h"
#include "engine/backend/size.h"

namespace efimd::engine::gpu {

namespace {

using namespace kernels;

constexpr u32 kEverything = u32{1} << 30U;

u32 groups_for(std::size_t elements, u32 of_group = kElementThreads) {
  return static_cast<u32>((elements + of_group - 1) / of_group);
}

}  // namespace

template <class Sizes>
Operation& StepOperations::add(Kernel kernel, std::array<std::uint32_t, 3> groups,
                               std::initializer_list<Range> operands, const Sizes& sizes) {
  Operation& operation = operations_.emplace_back();
  operation.kernel = kernel;
  operation.groups = groups;
  std::ranges::copy(operands, operation.operands.begin());
  // An operand that this step does not use stands for any memory.
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operation.operands[i].buffer == BufferId::kNone) operation.operands[i] = record_.all_rows();
  operation.set_sizes(sizes);
  return operation;
}

StepOperations::StepOperations(const GpuDevice& device, const ModelShape& shape, KvType kv_type)
    : device_(device),
      shape_(shape),
      kv_form_(kv_type == KvType::kQ8 ? Kv::kQ8 : Kv::kF16),
      split_pages_(split_pages_of(shape)) {}

Result<void> StepOperations::allocate(GpuDevice& device, int tokens_max, int page_count) {
  tokens_max_ = tokens_max;
  if (auto taken = at_.allocate(device, shape_, tokens_max); !taken) return taken;
  return record_.allocate(device, shape_, tokens_max, page_count);
}

std::string StepOperations::variants() const {
  const DeviceLimits limits = device_.limits();
  return std::string(limits.f16_products ? ", inputs of 16 bits" : "") +
         (with_tiles(limits, kv_form_, number(shape_.head_width)) ? ", in tiles" : "");
}

void StepOperations::begin(const Step& step, std::span<const double> frequencies) {
  operations_.clear();
  rows_ = static_cast<int>(step.tokens.size());
  logits_rows_ = static_cast<int>(step.logits_rows.size());
  rotated_pairs_ = static_cast<u32>(frequencies.size());
  record_.write(step, shape_, frequencies);
  splits_ = splits_of(size(rows_), shape_, record_.pages_max(), attention_partials(tokens_max_));
}

void StepOperations::send_record(const Range& bias_rope_table) {
  bias_rope_table_ = bias_rope_table;
  operations_.push_back(record_.copy());
}

void StepOperations::copy(const Range& from, const Range& to) {
  Operation& operation = operations_.emplace_back();
  operation.operands[0] = from;
  operation.operands[1] = to;
}

void StepOperations::embed(const GpuMatrix& table) {
  for (const GpuMatrix::Part& part : table.parts) {
    add(Kernel::kEmbedRows, {number(rows_), 1, 1}, {record_.tokens(), part.range, at_.x},
        EmbedSizes{part.layout, number(shape_.width), number(part.first),
                   number(part.first + part.rows), shape_.embedding_scale})
        .type = static_cast<u32>(part.type);
  }
}

void StepOperations::norm(const GpuNorm& norm, const Range& rows, int count, Forms next) {
  add(Kernel::kNormRows, {number(count), 1, 1},
      {rows, at_.x, norm.weight, norm.bias, at_.normed, at_.quants, at_.scales, at_.halves},
      NormSizes{number(shape_.width), norm.bias.bytes > 0 ? 1U : 0U, shape_.norm_epsilon, next});
}

void StepOperations::multiply(const Product& product, int rows) {
  const auto& [matrix, bias, x, out, sum, experts, share] = product;
  const bool with_experts = experts > 0;
  const DeviceLimits limits = device_.limits();
  for (const GpuMatrix::Part& part : matrix.parts) {
    const int many_min = is_quantized(part.type) ? limits.quantized_tile_min : 2;
    const bool many = !with_experts && many_min > 0 && rows >= many_min;
    const u32 outputs = number(with_experts ? part.rows / experts : part.rows);
    const std::array<u32, 3> groups = {std::min(outputs, kMatmulRowsMax),
                                       many ? groups_for(size(rows), kTokensOfTile) : number(rows),
                                       (outputs + kMatmulRowsMax - 1) / kMatmulRowsMax};
    const MatmulSizes sizes{part.layout,
                            number(matrix.cols),
                            outputs,
                            number(part.first),
                            number(matrix.rows),
                            number(rows),
                            sum == Sum::kAdds ? 1U : 0U,
                            bias.bytes > 0 ? 1U : 0U,
                            number(experts),
                            share};
    const Range& input = is_quantized(part.type) ? at_.quants : x;
    Operation& operation = part.halves
                               ? add(Kernel::kMatmulHalves, groups,
                                     {part.range, at_.halves, bias, at_.chosen, out}, sizes)
                               : add(Kernel::kMatmul, groups,
                                     {part.range, input, at_.scales, bias, at_.chosen, out}, sizes);
    operation.type = static_cast<u32>(part.type);
    operation.many = many;
  }
}

void StepOperations::attention_input(const GpuLayer& layer, const Range& kv) {
  norm(layer.attention_norm, record_.all_rows(), rows_, layer.qkv.inputs());
  multiply({layer.qkv, layer.qkv_bias, at_.normed, at_.qkv}, rows_);
  add(Kernel::kStoreRows, {number(rows_), number(shape_.heads + 2 * shape_.kv_heads), 1},
      {at_.qkv, record_.rope_table(), layer.query_norm, layer.key_norm, kv, record_.places()},
      StoreSizes{number(shape_.heads), number(shape_.kv_heads), number(shape_.head_width),
                 rotated_pairs_, shape_.rope_pairs == RopePairs::kAdjacent ? 1U : 0U,
                 layer.query_norm.bytes > 0 ? 1U : 0U, layer.key_norm.bytes > 0 ? 1U : 0U,
                 shape_.norm_epsilon, shape_.score_scale()})
      .type = static_cast<u32>(kv_form_);
}

void StepOperations::attention(const GpuLayer& layer, const Range& kv) {
  const u32 window = shape_.attention_window > 0 ? number(shape_.attention_window) : kEverything;
  const AttentionSizes sizes{number(shape_.heads),
                             number(shape_.kv_heads),
                             number(shape_.head_width),
                             window,
                             number(split_pages_),
                             splits_,
                             layer.key_bias.bytes > 0 ? rotated_pairs_ : 0,
                             shape_.rope_pairs == RopePairs::kAdjacent ? 1U : 0U,
                             number(rows_)};
  Operation& operation = add(Kernel::kAttention, {},
                             {at_.qkv, kv, record_.tables(), record_.rows(), at_.partials,
                              layer.key_bias, bias_rope_table_},
                             sizes);
  set_attention(operation, kv_form_, sizes, device_.limits());
  const int width = shape_.heads * shape_.head_width;
  add(Kernel::kMerge, {number(rows_), groups_for(size(width), kFormElements), 1},
      {at_.partials, record_.rows(), at_.attended, at_.quants, at_.scales, at_.halves},
      MergeSizes{number(shape_.heads), number(shape_.head_width), number(split_pages_), splits_,
                 shape_.residual_scale, layer.attention_output.inputs()});
}

void StepOperations::attention_output(const GpuLayer& layer) {
  multiply({layer.attention_output, layer.attention_output_bias, at_.attended, at_.x, Sum::kAdds},
           rows_);
}

void StepOperations::feed_forward_input(const GpuLayer& layer) {
  if (shape_.experts > 0) {
    experts_input(layer);
    return;
  }
  norm(layer.feed_forward_norm, record_.all_rows(), rows_, layer.gate_up.inputs());
  multiply({layer.gate_up, layer.gate_up_bias, at_.normed, at_.gate_up}, rows_);
  activate(layer, rows_);
}

void StepOperations::activate(const GpuLayer& layer, int rows) {
  add(Kernel::kActivate, {groups_for(size(shape_.feed_forward), kFormElements), number(rows), 1},
      {at_.gate_up, at_.hidden, at_.quants, at_.scales, at_.halves},
      ActivateSizes{number(shape_.feed_forward), layer.gated ? 1U : 0U,
                    shape_.activation == Activation::kGelu ? 1U : 0U, shape_.residual_scale,
                    layer.down.inputs()});
}

void StepOperations::feed_forward_output(const GpuLayer& layer) {
  if (shape_.experts > 0) return experts_output(layer);
  multiply({layer.down, layer.down_bias, at_.hidden, at_.x, Sum::kAdds}, rows_);
}

void StepOperations::experts_input(const GpuLayer& layer) {
  const u32 experts_used = number(shape_.experts_used);
  const Forms of_router = layer.router.inputs(), of_experts = layer.gate_up.inputs();
  norm(layer.feed_forward_norm, record_.all_rows(), rows_,
       {of_router.floats | of_experts.floats, of_router.quants | of_experts.quants,
        std::max(of_router.halves, of_experts.halves)});
  multiply({layer.router, {}, at_.normed, at_.router_logits}, rows_);
  add(Kernel::kRoute, {groups_for(size(rows_)), 1, 1},
      {at_.router_logits, at_.chosen, at_.expert_weights},
      RouteSizes{number(rows_), number(shape_.experts), experts_used});
  const int slots = rows_ * shape_.experts_used;
  multiply({layer.gate_up, {}, at_.normed, at_.gate_up, Sum::kIsAll, shape_.experts, experts_used},
           slots);
  activate(layer, slots);
}

void StepOperations::experts_output(const GpuLayer& layer) {
  multiply({layer.down, {}, at_.hidden, at_.expert_parts, Sum::kIsAll, shape_.experts},
           rows_ * shape_.experts_used);
  add(Kernel::kCombine, {groups_for(size(rows_) * size(shape_.width)), 1, 1},
      {at_.expert_parts, at_.expert_weights, at_.x},
      CombineSizes{number(rows_), number(shape_.width), number(shape_.experts_used)});
}

void StepOperations::logits(const GpuWeights& weights, const Range& out) {
  norm(weights.output_norm, record_.logits_rows(), logits_rows_, weights.output.inputs());
  multiply({weights.output, {}, at_.normed, out}, logits_rows_);
}

}  // namespace efimd::engine::gpu
