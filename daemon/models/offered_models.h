#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace efimd::service {

/// A model of models/catalog.toml: one that is worth having, by a short name.
struct OfferedModel {
  std::string name;        ///< "qwen2.5-coder-1.5b"
  std::string repository;  ///< "ORGANISATION/NAME" of the hub
  std::string file;        ///< in it
  std::uint64_t bytes = 0;
  std::uint64_t parameters = 0;
  std::uint64_t active = 0;  ///< parameters that one token uses
  int layers = 0;
  std::uint64_t kv_bytes = 0;  ///< of one token in f16
  std::string weights;         ///< "Q8_0", "Q4_K_M"
  int context_tokens = 0;
  std::string fim;         ///< "prefix first" or "suffix first"
  std::string license;     ///< "Apache-2.0"
  std::string restricted;  ///< what the licence forbids; empty: nothing that is worth a warning
  std::string good_for;
};

/// The list, best first. kBadInput names the entry and the key, of a file that is not well-formed,
/// has more than kOfferedMax entries, or one without its name, repository, file or sizes.
Result<std::vector<OfferedModel>> parse_offered_models(std::string_view toml,
                                                       const std::string& file);
inline constexpr std::size_t kOfferedMax = 200;

/// catalog.toml in the first of the folders that has one. kNotFound names the folders.
Result<std::vector<OfferedModel>> offered_models(const std::vector<std::filesystem::path>& folders);

/// Null if there is none of that name.
const OfferedModel* find_offered(const std::vector<OfferedModel>& models, std::string_view name);

}  // namespace efimd::service
