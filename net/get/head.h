#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "engine/model/model.h"

namespace efimd::get {

/// A model file of which only the first bytes are here.
struct Head {
  std::filesystem::path file;
  std::string name;         ///< for messages
  std::uint64_t here = 0;   ///< bytes
  std::uint64_t whole = 0;  ///< bytes; 0: not known
};

/// kUnsupported if its metadata and the list of its tensors show already that efimd cannot run it,
/// so that nobody loads gigabytes in vain. All else passes, also a head that is not whole yet or
/// damaged: the check of the whole file says that.
Result<void> check_head(const Head& head, const engine::FimOverride& fim);

}  // namespace efimd::get
