#include "engine/model/tensor_groups.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace efimd::engine {
namespace {

constexpr std::string_view kLayer = "blk.";
constexpr std::string_view kWeight = ".weight";

std::string group_of(std::string_view name, const TensorView& tensor) {
  if (tensor.rows == 1) return "norms and biases";
  if (name.starts_with(kLayer)) name = name.substr(name.find('.', kLayer.size()) + 1);
  if (name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  return std::string(name);
}

}  // namespace

std::uint64_t TensorGroup::bytes() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts) sum += part.bytes;
  return sum;
}

std::vector<TensorGroup> tensor_groups(const GgufFile& file) {
  std::map<std::string, std::map<TensorType, TensorGroup::Part>> found;
  for (const auto& [name, tensor] : file.tensors()) {
    TensorGroup::Part& part = found[group_of(name, tensor)]
                                  .try_emplace(tensor.type, TensorGroup::Part{tensor.type, 0, 0U})
                                  .first->second;
    ++part.tensors;
    part.bytes += tensor.row_bytes() * static_cast<std::uint64_t>(tensor.rows);
  }
  std::vector<TensorGroup> groups;
  for (const auto& [name, parts] : found) {
    TensorGroup& group = groups.emplace_back(TensorGroup{name, {}});
    for (const auto& [type, part] : parts) group.parts.push_back(part);
    std::ranges::stable_sort(group.parts, std::ranges::greater(), &TensorGroup::Part::bytes);
  }
  return groups;
}

}  // namespace efimd::engine
