#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "tests/support/model_writer.h"

namespace efimd::test {

/// Writes the file, opens it, and removes it: the mapping keeps it alive.
Result<std::shared_ptr<const engine::Model>> open(const GgufWriter& writer);
/// As open(); a refusal fails the test.
std::shared_ptr<const engine::Model> opened(const GgufWriter& writer);
/// The file is refused with `part` in the message, its own name in front and a remedy.
void check_refused(const GgufWriter& writer, Fault fault, const std::string& part);
/// An F32 tensor of zeros.
GgufWriter::Tensor zeros(std::string name, std::vector<std::uint64_t> axes);

}  // namespace efimd::test
