#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/models/speed/machine_speed.h"
#include "net/get/asked.h"
#include "net/get/hub.h"

namespace efimd::get {

/// What a user wants to know before a model is loaded.
struct Offer {
  std::string name;    ///< "ORG/NAME", or an address
  std::string commit;  ///< empty: of no hub
  std::vector<HubFile> files;
  std::uint64_t bytes = 0;                  ///< of all files
  std::uint64_t bytes_here = 0;             ///< of these, what need not be loaded
  std::optional<std::uint64_t> bytes_free;  ///< where they are put
  std::string folder;
  std::string license;     ///< empty: its page does not say
  std::string restricted;  ///< what the licence forbids, as far as the catalogue knows
  bool gated = false;
  std::string good_for;  ///< empty: not in the catalogue
  /// On each device; empty: not measured, or nothing is known of the model's size.
  std::vector<service::GuessedSpeed> speeds;
};

/// What one token costs with the asked model: by the catalogue, else by size and the type in the
/// file's name.
service::TokenCost cost_of(const Asked& asked, const std::vector<HubFile>& files);

/// Lines for a terminal.
std::string offer_text(const Offer& offer);
nlohmann::json offer_json(const Offer& offer);

}  // namespace efimd::get
