#pragma once

#include <string>
#include <vector>

#include "tests/engine/backend/memory_model.h"

namespace efimd::test {

/// A way in which architectures differ, as a tiny model.
struct Variety {
  std::string name;
  engine::ModelShape shape = tiny_shape();
  MemoryModel::Options options = {};
};

/// What architectures differ in, each alone and as the real ones combine them: llama first, qwen2 second, the mixture of
/// experts last.
std::vector<Variety> varieties();

/// With rows that K types can have.
Variety wide(Variety variety);

}  // namespace efimd::test
