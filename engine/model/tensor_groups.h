#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/gguf.h"

namespace efimd::engine {

/// Tensors that are the same part of every layer, named as in the file: "attn_q" holds
/// blk.0.attn_q.weight, blk.1.attn_q.weight, ... Vectors of all kinds are one group, "norms and
/// biases".
struct TensorGroup {
  struct Part {
    TensorType type;
    int tensors;
    std::uint64_t bytes;
  };
  std::string name;
  std::vector<Part> parts;  ///< by type, most bytes first: files mix types within a group

  std::uint64_t bytes() const;
};

/// The groups of a model's tensors, by name.
std::vector<TensorGroup> tensor_groups(const GgufFile& file);

}  // namespace efimd::engine
