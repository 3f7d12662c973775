#include "tests/bench/engine/bench_model.h"

#include <stdexcept>

#include "tests/engine/backend/weight_values.h"
#include "tests/support/model_writer.h"

namespace efimd::bench {

void write_bench_model(const std::string& type, const std::filesystem::path& path) {
  test::TinyModel model;
  model.architecture = "qwen2";
  model.layers = 24;
  model.width = 896;
  model.heads = 14;
  model.kv_heads = 2;
  model.head_width = 64;
  model.feed_forward = 4864;
  model.context = 32768;
  model.rope_base = 1e6F;
  model.tied = true;
  model.vocabulary = 151936;
  for (const engine::TensorType known : test::kWeightTypes) {
    if (engine::tensor_type_name(known) != type) continue;
    model.type = known;
    return test::tiny_model(model).write(path);
  }
  throw std::runtime_error("no such weight type: " + type);
}

}  // namespace efimd::bench
