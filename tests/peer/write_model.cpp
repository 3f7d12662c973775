// Writes a small random model and prints its path: peer_write_model ARCHITECTURE F32|F16|BF16|Q8_0 SEED FOLDER
#include <iostream>
#include <map>

#include "tests/support/model_writer.h"

int main(int count, char** values) {
  using efimd::engine::TensorType;
  static const std::map<std::string, TensorType> kTypes = {{"F32", TensorType::kF32},
                                                           {"F16", TensorType::kF16},
                                                           {"BF16", TensorType::kBF16},
                                                           {"Q8_0", TensorType::kQ8_0}};
  if (count != 5 || !kTypes.contains(values[2])) {
    std::cerr << "usage: peer_write_model ARCHITECTURE F32|F16|BF16|Q8_0 SEED FOLDER\n";
    return 2;
  }
  efimd::test::TinyModel model;
  model.architecture = values[1];
  model.type = kTypes.at(values[2]);
  model.seed = std::stoull(values[3]);
  std::cout << efimd::test::write_tiny_model(model, values[4]).string() << "\n";
}
